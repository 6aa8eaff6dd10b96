"""How each control signal of a clip is made: by the functions, or the networks, of the metric that reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from api.services.captions import SamplesOfVideos
from api.services.planning import load_metric
from gen_eval import weights
from gen_eval.data.signal_files import write_edges
from gen_eval.features.feature import ClipSignal
from gen_eval.features.plan import Plan
from gen_eval.features.rendition import Rendition, Renditions
from gen_eval.features.scratch import scratch_folder
from gen_eval.media import FALLBACK_FPS, ClipStream, open_clip, sha256_file, write_clip
from gen_eval.networks.loading import ensure
from gen_eval.networks.placement import current
from gen_eval.protocols import Preset, Protocol, load_protocol
from gen_eval.records import Group, InputError, ItemError, Reason, Sample, digest_of

METRIC_OF = {"blur": "blur_ssim", "edge": "edge_f1", "depth": "depth_si_rmse", "seg": "mask_miou"}
"""Signal -> the metric that measures by it."""

Pictures = Callable[[Path], Iterator[NDArray[np.uint8]]]

_CHUNK = 8


@dataclass(frozen=True)
class Maker:
    """Makes one signal of a clip.

    Attributes:
        protocol: whose filter, thresholds and networks are used.
        preset: how many frames.
    """

    protocol: Protocol
    preset: Preset

    @property
    def networks(self) -> tuple[str, ...]:
        """Checkpoints that it needs."""
        return ()

    def check(self) -> None:
        """Whether everything that it needs is there.

        Raises:
            ItemError: ``missing_weights``.
        """
        for name in self.networks:
            ensure(name)

    def source(self, path: Path) -> dict[str, Any]:
        """All that the files are made from."""
        return {"sha256": sha256_file(path), "parameters": self.protocol.digest, "limit": self.preset.limit}

    def make(self, path: Path, targets: list[Path]) -> Mapping[str, Any]:
        """Write the files and return what is to be said of them.

        Raises:
            ItemError: the video cannot be read, or a network has no answer.
        """
        raise NotImplementedError


class _Blur(Maker):
    def make(self, path: Path, targets: list[Path]) -> Mapping[str, Any]:
        from control_metrics.signals import blur_signal

        _write_video(path, targets[0], lambda frames: blur_signal(frames, self.protocol.measure), self.preset.limit)
        return {}


class _Edge(Maker):
    def make(self, path: Path, targets: list[Path]) -> Mapping[str, Any]:
        from control_metrics.signals import edge_signal

        maps: list[NDArray[np.bool_]] = []

        def pictures(frames: NDArray[np.uint8]) -> NDArray[np.uint8]:
            shown = edge_signal(frames, self.protocol.measure)
            maps.append(shown[..., 0] > 0)
            return shown

        _write_video(path, targets[0], pictures, self.preset.limit)
        write_edges(targets[1], np.concatenate(maps))
        return {}


@dataclass(frozen=True)
class _ByNetworks(Maker):
    """A signal that the networks of a metric make of the whole clip, shown to them as the metric shows it.

    Attributes:
        signal: how.
        pictures: its file -> frames of a video for people.
        samples: whose captions and reference clips.
    """

    signal: ClipSignal
    pictures: Pictures
    samples: SamplesOfVideos

    @property
    def networks(self) -> tuple[str, ...]:
        return self.signal.networks

    def _sample(self, path: Path) -> Sample:
        sample = self.samples.of(path)
        if self.signal.uses_prompt and not (sample.prompt or "").strip():
            raise ItemError(
                Reason.MISSING_PROMPT,
                f"objects are found by the words of the caption, and {path.name} has none; give --data, or "
                f"captions/{sample.id}.json beside the folder of videos",
            )
        return sample

    def source(self, path: Path) -> dict[str, Any]:
        """The video, what is computed of it, by which weights, and for which caption and reference."""
        sample, rendition = self._sample(path), Rendition.of(self.protocol.measure)
        parameters = [self.signal.name, [list(pair) for pair in self.signal.parameters], vars(rendition)]
        other = None if sample.reference == path or rendition.as_it_is else sample.reference
        return {
            "sha256": sha256_file(path),
            "parameters": digest_of(parameters),
            "limit": self.preset.limit,
            "dtype": current().dtype,
            "weights": {name: weights.digest(name) for name in self.networks},
            "prompt": digest_of(sample.prompt) if self.signal.uses_prompt else None,
            "reference": None if other is None else sha256_file(other),
        }

    def make(self, path: Path, targets: list[Path]) -> Mapping[str, Any]:
        """See :meth:`Maker.make`; the video is made from the file, a few frames at a time."""
        group, plan = Group("", self._sample(path), ()), Plan((), self.preset, _CHUNK)
        rendition = Rendition.of(self.protocol.measure)
        with (
            scratch_folder() as scratch,
            Renditions(group, plan, scratch).show(path, rendition) as shown,
        ):
            facts = self.signal(shown.clip, targets[0])
        write_clip(targets[1], self.pictures(targets[0]), shown.clip.info.fps or FALLBACK_FPS)
        return facts


def maker_of(signal: str, protocol: str, preset: Preset, samples: SamplesOfVideos) -> Maker:
    """What makes ``signal`` (``blur``, ``edge``, ``depth`` or ``seg``) under ``protocol``.

    Raises:
        InputError: there is no such protocol.
    """
    from control_metrics.signal_videos import depth_video, segmentation_video

    name = METRIC_OF[signal]
    rules = load_protocol(name, protocol)
    if signal == "blur":
        return _Blur(rules, preset)
    if signal == "edge":
        return _Edge(rules, preset)
    made = load_metric(name).clip_signal(rules.measure)
    if made is None:
        raise InputError(f"{name} has no network that makes {signal}")
    return _ByNetworks(rules, preset, made, depth_video if signal == "depth" else segmentation_video, samples)


def _write_video(
    path: Path, target: Path, picture: Callable[[NDArray[np.uint8]], NDArray[np.uint8]], limit: int | None
) -> None:
    with open_clip(path, limit=limit) as clip:
        write_clip(target, _pictures(clip, picture), clip.info.fps or FALLBACK_FPS)


def _pictures(
    clip: ClipStream, picture: Callable[[NDArray[np.uint8]], NDArray[np.uint8]]
) -> Iterator[NDArray[np.uint8]]:
    while True:
        frames, _ = clip.read(_CHUNK)
        if not len(frames):
            return
        yield picture(frames)
