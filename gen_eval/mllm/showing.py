"""What of a clip a model sees: frames chosen, resized and encoded as a preset says, once for all questions about it.

Which frames and which sizes follows from numbers alone (:func:`frame_indices`, :func:`shown_size`,
:func:`token_count`); :func:`show` decodes. Frames are chosen among those that can be decoded, so a header that promises
more moves nothing but a flag.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gen_eval.media import FALLBACK_FPS, ClipInfo, ClipStream, open_clip, probe, sha256_file
from gen_eval.mllm.chat import Frames, Image, Text, VideoFile
from gen_eval.mllm.entry import ModelEntry
from gen_eval.protocols.shown import Encoding, ShownPreset
from gen_eval.records import Flag, ItemError, Reason

_CHUNK = 8
_MOST_GUESSED = 1_000_000


@dataclass(frozen=True)
class Shown:
    """What a model is shown of one clip.

    Attributes:
        part: what goes into the request.
        facts: what the answer's row records (JSON values only): preset and digest, frames, indices, times, size,
            tokens, encoding, budget, and what the decoder said of the clip.
        flags: what is unusual about the clip, or about what is shown of it.
    """

    part: Frames | VideoFile
    facts: dict[str, Any]
    flags: tuple[Flag, ...]


def frame_indices(preset: ShownPreset, total: int, fps: float, *, most: int | None = None) -> list[int]:
    """The ``n`` frames that are shown: ``round(i (T - 1) / (n - 1))``, halves to even; one alone is the middle one.

    By rate: ``n = T / fps * rate``, at least ``least``, at most ``most`` and ``T`` brought down to a multiple, then
    brought to a multiple. By count: that number, brought to a multiple. A clip with fewer frames shows those it has.

    Args:
        preset: what is shown.
        total: frames of the clip, 1 or more.
        fps: its frame rate by the container.
        most: frames that the model takes; ``None`` for no limit.

    Returns:
        0-based indices, ascending, each once.

    Raises:
        ItemError: ``too_few_frames``: the preset stops at such a clip.
        ValueError: ``total`` or ``fps`` is not above 0.
    """
    if total < 1 or not fps > 0:
        raise ValueError(f"a clip must have frames and a rate above 0, not {total} frames at {fps}")
    rule = preset.counting
    allowed = total if most is None else min(total, most)
    if rule.rate is not None:
        highest = min(allowed, rule.most or allowed) // rule.multiple * rule.multiple
        wanted: float = min(max(total / fps * rule.rate, rule.least), highest)
    else:
        wanted = float(rule.count or 1) if most is None else float(min(rule.count or 1, most))
    steps = wanted / rule.multiple
    count = rule.multiple * (round(steps) if rule.rounding == "half_even" else math.floor(steps))
    if rule.short == "stop" and not rule.multiple <= count <= total:
        raise ItemError(
            Reason.TOO_FEW_FRAMES,
            f"the preset {preset.name} cannot show {count} of the clip's {total} frames",
            {"frames": total, "wanted": count, "multiple": rule.multiple},
        )
    count = min(count or max(1, rule.count or rule.multiple - 1), allowed)
    if count == 1:
        return [(total - 1) // 2]
    return [round(Fraction(step * (total - 1), count - 1)) for step in range(count)]


def factor_of(preset: ShownPreset, family: int | None) -> int:
    """What sides are multiples of: the preset's own factor, else the family's, else the preset's ``otherwise``."""
    return preset.pixels.factor or family or preset.pixels.otherwise


def shown_size(
    preset: ShownPreset, height: int, width: int, *, family: int | None = None, most: int | None = None
) -> tuple[int, int]:
    """Height and width of a shown frame: near to the clip's own, multiples of the factor, the area within the bounds.

    Args:
        preset: what is shown.
        height: of the clip.
        width: of the clip.
        family: factor of the model family.
        most: largest area in pixels, in the place of the preset's.
    """
    factor = factor_of(preset, family)
    least, largest = preset.pixels.bounds(factor)
    largest = largest if most is None else most

    def snapped(scale: float, to: Callable[[float], int]) -> tuple[int, int]:
        high, wide = (max(1, to(side * scale / factor)) * factor for side in (height, width))
        return high, wide

    high, wide = snapped(1.0, round)
    if high * wide > largest:
        high, wide = snapped(math.sqrt(largest / (height * width)), math.floor)
        longest = max(factor, largest // min(high, wide) // factor * factor)  # one side may have been raised to 1 patch
        return min(high, longest), min(wide, longest)
    if high * wide < least:
        return snapped(math.sqrt(least / (height * width)), math.ceil)
    return high, wide


def token_count(frames: int, height: int, width: int, *, factor: int, frames_per_token: int = 1) -> int:
    """Tokens of ``frames`` pictures of this size: one for each square of ``factor`` and each group of frames."""
    return math.ceil(frames / frames_per_token) * max(1, round(height / factor)) * max(1, round(width / factor))


@dataclass(frozen=True)
class _Plan:
    """Frames and size for a clip of so many frames."""

    indices: tuple[int, ...]
    fps: float
    height: int
    width: int
    tokens: int | None
    budget: dict[str, Any]


@dataclass(frozen=True)
class _Rule:
    """A preset for one model and one amount of room."""

    preset: ShownPreset
    entry: ModelEntry
    context: int | None
    reserve: int

    @property
    def form(self) -> str:
        """``video``, ``images`` or ``file``."""
        form = "images" if self.preset.form == "images" else str(self.entry.sees.form)
        return "images" if form == "file" and self.preset.counting.rate is None else form

    @property
    def group(self) -> int:
        """Frames that share their tokens."""
        return self.entry.sees.frames_per_token if self.form == "video" else 1

    def plan(self, total: int, info: ClipInfo) -> _Plan:
        """What is shown of a clip of ``total`` frames."""
        sees = self.entry.sees
        fps = info.fps or (total / info.duration if info.duration else FALLBACK_FPS)
        indices = frame_indices(self.preset, total, fps, most=sees.most_frames)
        if len(indices) == 1 and self.form == "video" and not sees.single_frame:
            said = f"{self.entry.name} takes no video of one frame, and the clip has {total}"
            raise ItemError(Reason.TOO_FEW_FRAMES, said, {"frames": total})
        return _Plan(tuple(indices), fps, *self._fitted(len(indices), info.height, info.width))

    def _fitted(self, frames: int, height: int, width: int) -> tuple[int, int, int | None, dict[str, Any]]:
        """Height, width, tokens, and the bound that they were chosen under."""
        family = self.entry.sees.patch_factor
        least, most = self.preset.pixels.bounds(factor_of(self.preset, family))
        steps = math.ceil(frames / self.group)
        marks, needed = steps * self.preset.fit.marks + self.reserve, 0
        for lowered, bound in enumerate(_bounds(least, most, self.preset.fit.shrink)):
            size = shown_size(self.preset, height, width, family=family, most=bound)
            budget = {"pixels": bound, "largest": most, "smallest": least, "lowered": lowered}
            budget["checked"] = family is not None  # tokens of other families are not known here
            if family is None:
                return *size, None, budget
            needed = token_count(frames, *size, factor=family, frames_per_token=self.group)
            if self.context is None or needed + marks <= self.context:
                return *size, needed, budget
        raise ItemError(
            Reason.CONTEXT_OVERFLOW,
            f"{frames} frames need {needed + marks} tokens even at {size[1]}x{size[0]} pixels, and {self.entry.name} "
            f"takes {self.context}; show fewer frames or give it a larger context",
            {"frames": frames, "tokens": needed, "marks_and_reserve": marks, "context": self.context},
        )


def _bounds(least: int, most: int, shrink: float) -> Iterator[int]:
    """Ever smaller largest areas, the smallest one last."""
    bound = most
    while bound > least:
        yield bound
        bound = int(bound * shrink)
    yield least


def show(
    path: str | os.PathLike[str],
    preset: ShownPreset,
    entry: ModelEntry,
    *,
    frames: int | None = None,
    context: int | None = None,
    reserve: int = 0,
) -> Shown:
    """What the model ``entry`` is shown of the clip ``path``: one pass over the file, only the wanted frames in memory.

    A model that takes files gets the file itself where the preset goes by a rate. A clip with fewer frames than the
    preset wants shows those it has; a single one is flagged ``few_frames``. In the video form of a family whose frames
    share tokens the last frame is repeated up to whole groups (``frames_repeated``). Where the tokens do not fit into
    the context, the largest area is lowered step by step (``fit`` of the preset) before anything is asked.

    Args:
        path: the clip.
        preset: what is shown.
        entry: the model.
        frames: another number of frames, 1 or more; for presets by count. Nothing at all is not shown by this function.
        context: tokens of prompt and reply that are to fit, where that is less than the entry's.
        reserve: tokens of that which text and reply need.

    Raises:
        ItemError: ``missing_video``, ``undecodable``, ``decode_timeout``, ``size_changes``, ``too_few_frames``,
            ``context_overflow``.
        InputError: ``frames`` does not suit the preset.
    """
    preset = preset if frames is None else preset.with_frames(frames)
    rule = _Rule(preset, entry, min(filter(None, (context, entry.context)), default=None), reserve)
    if rule.form == "file":
        return _show_file(Path(path), preset)
    plan, pictures, stream = _decode(path, rule)
    extra = -len(plan.indices) % rule.group
    order = [*plan.indices, *plan.indices[-1:] * extra]
    part = Frames(
        pictures=tuple(pictures[index] for index in order),
        times=tuple(float(stream.times[index]) for index in order),
        indices=tuple(order),
        source_fps=plan.fps,
        total_frames=stream.decoded_frames,
        form="video" if rule.form == "video" else "images",
        stamps=preset.stamps,
    )
    return Shown(part, _facts(rule, plan, part, stream), _flags(plan, stream, extra))


def _flags(plan: _Plan, stream: ClipStream, extra: int) -> tuple[Flag, ...]:
    info = stream.info
    found = {
        Flag.FEW_FRAMES: len(plan.indices) == 1,
        Flag.FRAMES_REPEATED: extra > 0,
        Flag.ENLARGED: plan.height * plan.width > info.height * info.width and plan.height > info.height,
    }
    return (*stream.flags, *(flag for flag, present in found.items() if present))


def _facts(rule: _Rule, plan: _Plan, part: Frames, stream: ClipStream) -> dict[str, Any]:
    preset = rule.preset
    return {
        "preset": preset.name,
        "digest": preset.digest,
        "form": part.form,
        "stamps": part.stamps,
        "frames": len(plan.indices),
        "repeated": len(part.indices) - len(plan.indices),
        "indices": list(part.indices),
        "times": list(part.times),
        "height": plan.height,
        "width": plan.width,
        "tokens": plan.tokens,
        "budget": {**plan.budget, "context": rule.context, "reserve": rule.reserve},
        "encoding": {**asdict(preset.encoding), "filter": preset.pixels.filter},
        "total_frames": part.total_frames,
        "source_fps": part.source_fps,
        "source_height": stream.info.height,
        "source_width": stream.info.width,
        "clip": stream.detail(),
    }


def _show_file(path: Path, preset: ShownPreset) -> Shown:
    info = probe(path)
    part = VideoFile(path, sha256_file(path), preset.counting.rate)
    facts = {
        "preset": preset.name,
        "digest": preset.digest,
        "form": "file",
        "sampled_by": "backend",
        "rate": preset.counting.rate,
        "sha256": part.sha256,
        "source_fps": info.fps,
        "source_height": info.height,
        "source_width": info.width,
        "clip": {"declared_frames": info.declared_frames, "duration": info.duration, "codec": info.codec},
    }
    return Shown(part, facts, info.flags)


def _decode(path: str | os.PathLike[str], rule: _Rule) -> tuple[_Plan, dict[int, Image], ClipStream]:
    """The plan for the frames that the clip really has, its pictures by index, and the clip at its end.

    The header's count tells what to keep; where it is wrong, a second pass fetches the right frames.
    """
    with open_clip(path) as stream:
        guess = _guessed(rule, stream.info)
        pictures = _encoded(stream, guess, rule.preset, None)
        plan = rule.plan(stream.decoded_frames, stream.info)
    same_size = guess is not None and (guess.height, guess.width) == (plan.height, plan.width)
    if not same_size or not pictures.keys() >= set(plan.indices):
        with open_clip(path) as again:
            pictures = _encoded(again, plan, rule.preset, plan.indices[-1] + 1)
    return plan, pictures, stream


def _guessed(rule: _Rule, info: ClipInfo) -> _Plan | None:
    count = info.declared_frames or (round(info.duration * info.fps) if info.duration and info.fps else 0)
    if not 0 < count <= _MOST_GUESSED:
        return None
    try:
        return rule.plan(count, info)
    except ItemError:  # the header may be wrong; what can be decoded decides
        return None


def _encoded(stream: ClipStream, plan: _Plan | None, preset: ShownPreset, limit: int | None) -> dict[int, Image]:
    """Pictures of the planned frames by index; the clip is read to its end, or up to ``limit`` frames."""
    wanted = list(plan.indices) if plan else []
    stream.select(wanted, limit)
    pictures: dict[int, Image] = {}
    while True:
        frames, _ = stream.read(_CHUNK)
        for frame in frames:
            assert plan is not None
            pictures[wanted[len(pictures)]] = encode(frame, plan.height, plan.width, preset)
        if len(frames) < _CHUNK:
            return pictures


def encode(frame: NDArray[np.uint8], height: int, width: int, preset: ShownPreset) -> Image:
    """A frame (H, W, 3) uint8 RGB at another size and encoded, as the preset says."""
    from PIL import Image as Pillow

    picture = Pillow.fromarray(frame)
    if (picture.height, picture.width) != (height, width):
        picture = picture.resize((width, height), Pillow.Resampling[preset.pixels.filter.upper()])
    with io.BytesIO() as buffer:
        picture.save(buffer, **_saving(preset.encoding))
        return Image(buffer.getvalue(), f"image/{preset.encoding.format}", height, width)


def _saving(encoding: Encoding) -> dict[str, Any]:
    if encoding.format == "png":
        return {"format": "PNG", "compress_level": 1}
    return {"format": "JPEG", "quality": encoding.quality, "subsampling": encoding.subsampling}


def loose_parts(frames: Frames) -> list[Text | Image]:
    """Frames as loose pictures, each preceded by its time where that was asked for."""
    parts: list[Text | Image] = []
    for picture, time in zip(frames.pictures, frames.times, strict=True):
        parts += [Text(f"<{time:.1f} seconds>"), picture] if frames.stamps else [picture]
    return parts
