"""Networks: their modules, what they see, and their loading. Importing this package does not import torch.

A metric names the checkpoint and the view in the ``measure`` section of its protocol, and gets its features from here:

* :func:`view_feature`: what the network sees, on the device; equal views are made once for all networks.
* :func:`embedding_feature`: one vector a frame.
* :func:`image_embedding_feature`: the same of the condition image.
* :func:`text_feature`: one vector of the prompt.
* :func:`distance_feature`: how different each two of several clips look, frame by frame.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from gen_eval.features.feature import Feature, parameters_of
from gen_eval.networks.placement import Placement, current, placed, placement_of
from gen_eval.networks.running import distances, embed, embed_clip, embed_text, to_device, view

# Threads that wait for each other sleep instead of spinning. Without other work on the machine that costs a few
# percent; with it, spinning threads hold up the ones they wait for, and a network can take twenty times as long. It is
# read once, when torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

VIEW_KEYS = ("resize", "side", "filter", "antialias", "rounding", "crop", "normalise")
"""Names of a measure section that say what a network sees; see :func:`gen_eval.networks.views.make`."""

PLANES = Feature("planes", to_device)
"""Frames (n, 3, H, W) uint8 on the device."""


def view_parameters(measure: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """The part of ``measure`` that describes a view, with ``changes``."""
    return {name: measure[name] for name in VIEW_KEYS if name in measure} | changes


def view_feature(measure: Mapping[str, Any]) -> Feature:
    """What the network of ``measure`` sees of frames."""
    return Feature("view", view, parameters_of(view_parameters(measure)), PLANES)


def embedding_feature(measure: Mapping[str, Any]) -> Feature:
    """What the network of ``measure`` makes of frames: (n, D) float32, not normalised."""
    return Feature("embedding", embed, (("network", measure["network"]),), view_feature(measure))


def image_embedding_feature(measure: Mapping[str, Any]) -> Feature:
    """The same of the condition image (a chunk of one), which Pillow resizes in 8 bits."""
    seen = Feature("image_view", view, parameters_of(view_parameters(measure, backend="pillow")))
    return Feature("embedding", embed, (("network", measure["network"]),), seen)


def text_feature(measure: Mapping[str, Any]) -> Feature:
    """What the network of ``measure`` makes of the prompt: (1, D) float32, and the number of tokens cut (1,)."""
    return Feature("text_embedding", embed_text, (("network", measure["network"]),))


def distance_feature(measure: Mapping[str, Any]) -> Feature:
    """What the network of ``measure`` makes of n frames of N clips: (n, N (N - 1) / 2) float64, clips in pairs."""
    return Feature("distances", distances, (("network", measure["network"]),))


__all__ = [
    "PLANES",
    "VIEW_KEYS",
    "Placement",
    "current",
    "distance_feature",
    "distances",
    "embed",
    "embed_clip",
    "embed_text",
    "embedding_feature",
    "image_embedding_feature",
    "placed",
    "placement_of",
    "text_feature",
    "to_device",
    "view",
    "view_feature",
    "view_parameters",
]
