"""What metrics are made of: functions of frames that are computed once and shared, and what is known of a clip."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]


@dataclass(frozen=True)
class Feature:
    """A function from a chunk of frames to something with one entry a frame, computed once and shared.

    Two features are the same when name, parameters and source are equal; ``compute`` must depend on nothing else.

    Attributes:
        name: what it is, unique for the function.
        parameters: keyword arguments of ``compute``, as sorted pairs.
        source: the feature it is made from; ``None`` for the frames themselves.
        compute: takes an array ``(n, H, W, 3)`` uint8 RGB (or the source's output) and returns an array or a tuple of
            arrays whose first axis is n.
    """

    name: str
    compute: Callable[..., Any] = field(compare=False, repr=False)
    parameters: tuple[tuple[str, Any], ...] = ()
    source: Feature | None = None

    def __call__(self, chunk: Any) -> Any:
        """Apply ``compute`` with the parameters of this feature."""
        return self.compute(chunk, **dict(self.parameters))


def _same(chunk: Any) -> Any:
    return chunk


FRAMES = Feature("frames", _same)


def constant_frames(frames: Array) -> Array:
    """Which of ``frames`` (n, H, W, 3) have one colour only: (n,) bool."""
    constant: Array = (frames == frames[:, :1, :1]).all(axis=(1, 2, 3))
    return constant


CONSTANT = Feature("constant_frames", constant_frames)


@dataclass(frozen=True)
class StreamFeature(Feature):
    """A feature that remembers earlier frames of its clip (an interpolated frame, a flow between distant frames).

    ``compute(info, **parameters)`` is called once a clip with its :class:`StreamInfo` and returns a function
    ``(chunk, times) -> values``: the chunk as for a :class:`Feature`, times (n,) float64 in seconds, and values with
    one entry a frame, NaN where a frame has none. It is called with the clip's frames in order, in chunks of any
    length, and must not remember anything of a call that ends with ``MemoryError``: it is repeated with fewer frames.

    It can be asked for by metrics with ``inputs == "single"`` only, and belongs to the clip at its own size.
    """


@dataclass(frozen=True)
class Selection:
    """Frames of a whole clip that are chosen by its length, and what is computed from them when the clip has ended.

    Attributes:
        name: what it is, unique for the functions.
        indices: frame count (at least 1) -> frame numbers in any order; a frame may be named twice.
        compute: takes the chosen frames (k, H, W, 3) uint8 RGB, or what ``prepare`` made of them, and the parameters.
        parameters: keyword arguments of ``compute``, as sorted pairs.
        prepare: takes a chosen frame (H, W, 3), its position among the chosen ones, and keyword arguments; what it
            returns is kept in place of the frame. For selections of many frames of which little is looked at.
        preparation: keyword arguments of ``prepare``, as sorted pairs.
    """

    name: str
    indices: Callable[[int], Sequence[int]] = field(compare=False, repr=False)
    compute: Callable[..., Any] = field(compare=False, repr=False)
    parameters: tuple[tuple[str, Any], ...] = ()
    prepare: Callable[..., Array] | None = field(default=None, compare=False, repr=False)
    preparation: tuple[tuple[str, Any], ...] = ()

    def __call__(self, frames: Array) -> Any:
        """Apply ``compute`` with the parameters of this selection."""
        return self.compute(frames, **dict(self.parameters))

    def prepared(self, frame: Array, slot: int) -> Array:
        """What is kept of a chosen frame, a copy."""
        if self.prepare is None:
            return frame.copy()
        return self.prepare(frame, slot, **dict(self.preparation))


def parameters_of(values: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """``values`` as a feature holds its parameters.

    >>> parameters_of({"side": 224, "filter": "bilinear"})
    (('filter', 'bilinear'), ('side', 224))
    """
    return tuple(sorted(values.items()))


@dataclass(frozen=True)
class StreamInfo:
    """What is known about a stream before its first chunk.

    Attributes:
        height: pixels of a frame as the metric sees it.
        width: likewise.
        fps: average frame rate, ``None`` when unknown.
        prompt: the sample's text, for metrics that read it.
        masks: segmentation file of the sample's reference clip that was given, for metrics of sets.
    """

    height: int
    width: int
    fps: float | None = None
    prompt: str | None = None
    masks: Path | None = None


@dataclass(frozen=True)
class ClipFrames:
    """A whole clip, as a signal is computed from it.

    Attributes:
        info: size and rate of the frames as they are shown, and the sample's prompt.
        chunks: (n, H, W, 3) uint8 RGB, in order; to be read once. An array is valid until the next one is asked for.
    """

    info: StreamInfo
    chunks: Iterable[Array]


@dataclass(frozen=True)
class ClipSignal:
    """Something that networks make of a whole clip and that is kept in a file: depth maps, segmentation.

    Two signals are the same when name and parameters are equal; ``compute`` must depend on nothing else.

    Attributes:
        name: ``depth`` or ``masks``.
        suffix: ending of the file.
        compute: ``(clip, target, **parameters) -> facts``: takes a :class:`ClipFrames`, writes the file ``target`` and
            returns JSON values that explain it.
        networks: checkpoints that it needs.
        parameters: keyword arguments of ``compute``, as sorted pairs.
        uses_prompt: whether the sample's prompt is read.
    """

    name: str
    suffix: str
    compute: Callable[..., Mapping[str, Any]] = field(compare=False, repr=False)
    networks: tuple[str, ...]
    parameters: tuple[tuple[str, Any], ...] = ()
    uses_prompt: bool = False

    def __call__(self, clip: ClipFrames, target: Path) -> Mapping[str, Any]:
        """Apply ``compute`` with the parameters of this signal."""
        return self.compute(clip, target, **dict(self.parameters))


Chunk: TypeAlias = Mapping[Feature, Any]
"""Feature -> its values for the frames of one chunk (arrays are valid until the next chunk)."""
