"""How a clip is shown to what looks at it whole: at its own size or the reference clip's, as it is or encoded again.

A measure section says so by ``clip_size`` (``own``, or ``reference``: frames are brought to the reference clip's size,
and those after its end are left out), ``clip_resize`` (rule of
:func:`gen_eval.features.alignment.resize_frames`), ``clip_aspect_tolerance`` (see ``check_aspect``) and ``clip_crf``
(constant rate factor of an H.264 encoding that is decoded again, ``null`` for none). Without these keys: as it is.

Source: PAI-Bench-C public code, which hands some networks clips that it has resized and encoded once more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from gen_eval.features.alignment import RESIZE_RULES, Size, check_aspect, resize_frames
from gen_eval.features.clips import of_reference
from gen_eval.features.feature import Array, ClipFrames, StreamInfo
from gen_eval.features.plan import Plan
from gen_eval.media import FALLBACK_FPS, ClipStream, open_clip, probe, write_clip
from gen_eval.protocols.values import number_above, whole_number, word_of
from gen_eval.records import Flag, Generation, Group, ItemError, Reason
from gen_eval.records.files import is_file

_WORST_CRF = 51  # of H.264
_FIELDS = ("clip_size", "clip_resize", "clip_aspect_tolerance", "clip_crf")


@dataclass(frozen=True)
class Rendition:
    """The part of a measure section that says how clips are shown.

    Attributes:
        size: ``own`` or ``reference``.
        resize: rule by which frames are brought to the reference's size.
        aspect_tolerance: how far the shapes may differ; ``None``: any.
        crf: of the encoding in between, ``None`` without one.
    """

    size: str = "own"
    resize: str = "by_pixels"
    aspect_tolerance: float | None = None
    crf: int | None = None

    @classmethod
    def of(cls, measure: Mapping[str, Any]) -> Self:
        """What ``measure`` says.

        Raises:
            InputError: a value is none that clips can be shown by.
        """
        if "clip_size" in measure:
            word_of(measure, "clip_size", ("own", "reference"))
        if "clip_resize" in measure:
            word_of(measure, "clip_resize", RESIZE_RULES)
        if measure.get("clip_aspect_tolerance") is not None:
            number_above(measure, "clip_aspect_tolerance", 0, or_equal=True)
        if measure.get("clip_crf") is not None:
            whole_number(measure, "clip_crf", most=_WORST_CRF)
        return cls(**{name.removeprefix("clip_"): measure[name] for name in _FIELDS if name in measure})

    @property
    def as_it_is(self) -> bool:
        """Whether the file itself is shown, whatever its shape."""
        return self == Rendition(resize=self.resize)


class _Frames:
    """The frames of a file, resized, and not more than ``most``; to be iterated over once."""

    def __init__(self, stream: ClipStream, chunk: int, size: Size, rule: str, most: int | None) -> None:
        self.stream, self.surplus = stream, False
        self._chunk, self._size, self._rule, self._most = chunk, size, rule, most

    @property
    def resized(self) -> bool:
        """Whether they have another size than those of the file."""
        return self._size != (self.stream.info.height, self.stream.info.width)

    def __iter__(self) -> Iterator[Array]:
        seen = 0
        while len(frames := self.stream.read(self._chunk)[0]):
            left = len(frames) if self._most is None else max(0, self._most - seen)
            self.surplus = left < len(frames)
            if left:
                yield resize_frames(frames[:left], self._size, self._rule)
            if self.surplus:
                return
            seen += len(frames)


@dataclass
class Shown:
    """A clip that is being read as a rendition.

    Attributes:
        clip: its frames.
        frames: the same, with what is known of the file.
        before: what was unusual about the file that it was encoded from.
    """

    clip: ClipFrames
    frames: _Frames
    before: tuple[Flag, ...] = ()

    @property
    def stream(self) -> ClipStream:
        """The file itself."""
        return self.frames.stream

    @property
    def flags(self) -> tuple[Flag, ...]:
        """What was unusual about the file, as far as it was read."""
        found = {Flag.RESIZED: self.frames.resized, Flag.LONG_CLIP: self.frames.surplus}
        return (*self.before, *self.stream.flags, *(flag for flag, present in found.items() if present))


@dataclass
class Renditions:
    """The clips of one group, shown as measurements ask for it.

    Attributes:
        group: whose clips.
        plan: limit and chunk.
        scratch: folder for what is encoded again.
    """

    group: Group
    plan: Plan
    scratch: Path
    _encoded: dict[tuple[Path, Rendition], Path | ItemError] = field(default_factory=dict)
    _flags: dict[tuple[Path, Rendition], tuple[Flag, ...]] = field(default_factory=dict)
    _lengths: dict[Path, int] = field(default_factory=dict)
    _reference: StreamInfo | ItemError | None = None

    @contextmanager
    def show(self, path: Path, rendition: Rendition) -> Iterator[Shown]:
        """The frames of ``path`` as ``rendition`` says, at most as many as the preset allows.

        Raises:
            ItemError: the file cannot be read, the reference's size is needed and not known, or the shapes differ.
        """
        before: tuple[Flag, ...] = ()
        if rendition.crf is not None:
            encoded, before = self.encoded(path, rendition), self._flags[path, rendition]
            path, rendition = encoded, Rendition()
        limit, chunk = self.plan.preset.limit, self.plan.chunk
        with open_clip(path, limit=limit, chunk=chunk) as stream:
            target = self._target((stream.info.height, stream.info.width), rendition)
            info = StreamInfo(*target, fps=stream.info.fps, prompt=self.group.sample.prompt)
            frames = _Frames(stream, chunk, target, rendition.resize, self._most(path, rendition))
            yield Shown(ClipFrames(info, frames), frames, before)

    def effective(self, path: Path, rendition: Rendition) -> Rendition:
        """``rendition``, or the clip as it is where that makes no difference for ``path``.

        Raises:
            ItemError: see :meth:`show`.
        """
        if rendition.crf is not None or rendition.as_it_is:
            return rendition
        info = probe(path)
        size = (info.height, info.width)
        if self._target(size, rendition) != size:
            return rendition
        most = self._most(path, rendition)
        return Rendition() if most is None or self._length(path) <= most else rendition

    def encoded(self, path: Path, rendition: Rendition) -> Path:
        """A file with the frames of ``path`` after another encoding, made once.

        Raises:
            ItemError: see :meth:`show`; the same one again.
        """
        key = (path, rendition)
        if key not in self._encoded:
            try:
                self._encoded[key] = self._encode(path, rendition)
            except ItemError as error:
                self._encoded[key] = error
        found = self._encoded[key]
        if isinstance(found, ItemError):
            raise found
        return found

    def _encode(self, path: Path, rendition: Rendition) -> Path:
        target = self.scratch / f"clip-{len(self._encoded)}.mp4"
        with self.show(path, replace(rendition, crf=None)) as shown:
            fps = self.reference_info().fps if rendition.size == "reference" else shown.clip.info.fps
            assert rendition.crf is not None
            write_clip(target, shown.clip.chunks, fps or FALLBACK_FPS, crf=rendition.crf)
            self._flags[path, rendition] = shown.flags
        return target

    def regrouped(self, rendition: Rendition) -> tuple[Group, Mapping[str, tuple[Flag, ...]]]:
        """The group with encoded files in place of its own, and what was unusual about each member's own file."""
        sample = self.group.sample
        reference = sample.reference
        if reference is not None and is_file(reference):
            try:
                reference = self.encoded(reference, rendition)
            except ItemError:  # the file itself will say what is wrong with it
                reference = sample.reference
        members = tuple(self._member(member, rendition) for member in self.group.members)
        flags = {one.member: self._flags.get((one.path, rendition), ()) for one in self.group.members if one.path}
        return replace(self.group, sample=replace(sample, reference=reference), members=members), flags

    def _member(self, member: Generation, rendition: Rendition) -> Generation:
        if member.problem is not None or member.path is None:
            return member
        try:
            return replace(member, path=self.encoded(member.path, rendition))
        except ItemError as error:
            return replace(member, path=None, problem=error.reason, detail={**error.detail, "message": error.message})

    def _most(self, path: Path, rendition: Rendition) -> int | None:
        """How many frames of ``path`` are shown, ``None`` for all."""
        reference = self.group.sample.reference
        if rendition.size == "own" or reference is None or path == reference:
            return None
        return self._length(reference)

    def _length(self, path: Path) -> int:
        """Frames of a clip, counted: headers may be wrong."""
        if path not in self._lengths:
            with open_clip(path, limit=self.plan.preset.limit, chunk=self.plan.chunk) as stream:
                while len(stream.read(self.plan.chunk)[0]):
                    pass
                self._lengths[path] = stream.decoded_frames
        return self._lengths[path]

    def _target(self, size: Size, rendition: Rendition) -> Size:
        """Size that frames of ``size`` are shown at, after the check of their shape."""
        if rendition.size == "own" and rendition.aspect_tolerance is None:
            return size
        try:
            reference = self.reference_info()
        except ItemError:
            if rendition.size == "own":  # without a reference clip there is no shape to differ from
                return size
            raise
        check_aspect(size, (reference.height, reference.width), rendition.aspect_tolerance)
        return size if rendition.size == "own" else (reference.height, reference.width)

    def reference_info(self) -> StreamInfo:
        """Size and rate of the reference clip.

        Raises:
            ItemError: ``missing_ground_truth``, or it cannot be read.
        """
        if self._reference is None:
            self._reference = _probed(self.group.sample.reference)
        if isinstance(self._reference, ItemError):
            raise self._reference
        return self._reference


def _probed(path: Path | None) -> StreamInfo | ItemError:
    if path is None or not is_file(path):
        said = "the clip is shown at the size of the reference clip, and the sample has none; name it with --data"
        return ItemError(Reason.MISSING_GROUND_TRUTH, said)
    try:
        info = probe(path)
    except ItemError as error:
        return of_reference(error)
    return StreamInfo(info.height, info.width, info.fps)
