"""What a manifest says of the networks of a run: placement, weights, package versions."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from gen_eval import weights
from gen_eval.features.plan import Measurement, Plan
from gen_eval.records import digest_of

_PACKAGES = ("torch", "torchvision", "timm", "open_clip_torch")


def network_section(plan: Plan) -> dict[str, Any] | None:
    """Everything about networks that moves a score of ``plan``; ``None`` when none is used.

    Returns:
        ``placement``, ``packages`` (version, ``None`` when not installed) and ``weights`` (checkpoint -> SHA-256 of its
        file, ``None`` when it is not there).
    """
    if not plan.networks:
        return None
    return {
        "placement": plan.placement.to_json(),
        "packages": {package: _version(package) for package in _PACKAGES},
        "weights": {name: weights.digest(name) for name in plan.networks},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def used_by(measurement: Measurement, section: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The part of a manifest's ``section`` that the values of ``measurement`` depend on."""
    if section is None or not measurement.networks:
        return None
    return {**section, "weights": {name: section["weights"][name] for name in measurement.networks}}


def weights_digest(measurement: Measurement, section: Mapping[str, Any] | None) -> str | None:
    """What a row carries: the checkpoint's digest, one digest over all where there are several, ``None`` without."""
    used = used_by(measurement, section)
    digests: dict[str, str | None] = used["weights"] if used else {}
    if not digests or any(digest is None for digest in digests.values()):
        return None
    return next(iter(digests.values())) if len(digests) == 1 else digest_of(digests)
