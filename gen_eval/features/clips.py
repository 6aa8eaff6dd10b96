"""The clips of a group while they are read: the current chunk, its views, and what is known of the stream."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from gen_eval.features.alignment import Size, check_aspect, resize_frames
from gen_eval.features.extraction import ChunkFeatures, ChunkSizes, StreamMemory
from gen_eval.features.feature import StreamInfo
from gen_eval.features.plan import Plan
from gen_eval.media import ClipStream, open_clip
from gen_eval.records import Flag, Generation, ItemError, Reason
from gen_eval.records.files import is_file

_NO_FRAMES: Any = ()

REFERENCE = "reference"
"""What the reference clip is called among the clips of a group, and its value among those of a row."""


def problem_of(member: Generation) -> ItemError:
    """The problem that was known of ``member`` before any decoding."""
    assert member.problem is not None
    detail = dict(member.detail)
    message = detail.pop(
        "message",
        f"no video of sample {member.sample!r}, member {member.member!r}, was found; it belongs into the video folder "
        f"as {member.sample}__{member.member}.mp4",
    )
    return ItemError(member.problem, message, detail)


def of_reference(error: ItemError) -> ItemError:
    """A problem of the reference clip, as it reads in a row of a generated clip."""
    return ItemError(error.reason, f"reference clip: {error.message}", {**error.detail, "side": REFERENCE})


class Reader:
    """A stream that may have failed, and its current chunk."""

    def __init__(
        self, member: str, stream: ClipStream | None, error: ItemError | None, path: Path | None = None
    ) -> None:
        self._stream = stream
        self.member = member
        self.path = path
        self.error = error
        self.frames: Any = _NO_FRAMES
        self.length = 0
        self.decoded = 0
        self.times: Any = ()
        self._sizes = ChunkSizes()
        self._memory = StreamMemory(self.stream_info(None))
        self._views: dict[tuple[str | None, int], ChunkFeatures] = {}

    @property
    def size(self) -> Size:
        """Height and width; (0, 0) without a stream."""
        return (self._stream.info.height, self._stream.info.width) if self._stream is not None else (0, 0)

    @property
    def fps(self) -> float | None:
        """Average frame rate."""
        return self._stream.info.fps if self._stream is not None else None

    @property
    def flags(self) -> tuple[Flag, ...]:
        """What was unusual about the file."""
        return self._stream.flags if self._stream is not None else ()

    @property
    def detail(self) -> dict[str, Any]:
        """Decoded and declared counts, rate, decoder."""
        return self._stream.detail() if self._stream is not None else {}

    def next_chunk(self, count: int, sizes: ChunkSizes) -> int:
        """Decode up to ``count`` frames; a stream that breaks ends with ``error`` set."""
        self.length, self.frames = 0, _NO_FRAMES
        self._views.clear()
        self._sizes = sizes
        if self._stream is not None and self.error is None:
            try:
                self.frames, self.times = self._stream.read(count)
                self.length = len(self.frames)
                self.decoded += self.length
            except ItemError as error:
                self.error = error
        return self.length

    def view(self, rule: str | None, count: int, size: Size | None = None) -> ChunkFeatures:
        """The first ``count`` frames of the chunk, resized by ``rule`` to ``size`` unless it is ``None``."""
        key = (rule, count)
        if key not in self._views:
            frames = self.frames[:count]
            if rule is not None and size is not None:
                frames = resize_frames(frames, size, rule)
            whole = rule is None and count == self.length
            self._views[key] = ChunkFeatures(
                frames, self._sizes, times=self.times[:count], memory=self._memory if whole else None
            )
        return self._views[key]

    @property
    def expected_frames(self) -> int | None:
        """Frames that the header counts, ``None`` when it counts none."""
        return self._stream.info.declared_frames if self._stream is not None else None

    def stream_info(self, prompt: str | None) -> StreamInfo:
        """What a meter is told before the first chunk."""
        return StreamInfo(*self.size, fps=self.fps, prompt=prompt)


def _opened(path: Path, plan: Plan, stack: ExitStack) -> tuple[ClipStream | None, ItemError | None]:
    try:
        return stack.enter_context(open_clip(path, limit=plan.preset.limit, chunk=plan.chunk)), None
    except ItemError as error:
        return None, error


class Clip(Reader):
    """A generated clip."""

    @classmethod
    def open(cls, generation: Generation, plan: Plan, stack: ExitStack) -> Self:
        """Start reading; a file that cannot be read gives a clip with its error set."""
        if generation.problem is not None or generation.path is None:
            return cls(generation.member, None, problem_of(generation))
        return cls(generation.member, *_opened(generation.path, plan, stack), generation.path)

    def read(self, count: int, sizes: ChunkSizes) -> int:
        """Decode the next chunk and return its length."""
        return self.next_chunk(count, sizes)


class ReferenceClip(Reader):
    """The real clip that generated ones are compared with, or the reason why there is none."""

    @classmethod
    def open(cls, path: Path | None, plan: Plan, stack: ExitStack) -> Self:
        """Start reading."""
        if path is None or not is_file(path):
            said = "the sample has no reference video; name it with --data"
            return cls(REFERENCE, None, ItemError(Reason.MISSING_GROUND_TRUTH, said))
        return cls(REFERENCE, *_opened(path, plan, stack), path)

    def read(self, count: int, sizes: ChunkSizes) -> ChunkFeatures | None:
        """The next chunk, ``None`` after the end."""
        return self.view_all() if self.next_chunk(count, sizes) else None

    def view_all(self) -> ChunkFeatures:
        """The whole chunk; its features are shared by all members that compare with it."""
        return self.view(None, self.length)

    def refusal(self, member: Size, measure: Mapping[str, Any]) -> ItemError | None:
        """Why a clip of size ``member`` cannot be compared with this one, ``None`` when it can."""
        if self.error is not None:
            return self.as_item()
        try:
            check_aspect(member, self.size, measure["aspect_tolerance"])
        except ItemError as error:
            return error
        return None

    def as_item(self) -> ItemError:
        """The error as it reads in a row of a generated clip."""
        assert self.error is not None
        if self.error.reason is Reason.MISSING_GROUND_TRUTH:
            return self.error
        return of_reference(self.error)
