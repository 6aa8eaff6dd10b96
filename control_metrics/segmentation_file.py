"""Segmentation files: the published pickle form, read without trust, and our own JSON form.

Both hold a list of objects, each a phrase and a binary mask (T, H, W) in run lengths. Masks are decoded one at a time
when they are asked for.

The published form is a pickle of builtins only. Its bytes are first walked opcode by opcode without executing them:
anything that could name a class, call something, refer outside the file or reserve memory beyond the file's own size
ends the reading. What is left goes through an unpickler that refuses every global and every persistent id, then the
plain lists and dicts are checked field by field, and run lengths are checked to fill their mask exactly before a
mask is allocated.

Source: PAI-Bench-C, file format of a segmentation file; run lengths are COCO's compressed form.
"""

from __future__ import annotations

import io
import json
import math
import pickle  # noqa: TID251 - the one place that reads the published form; see above for what it refuses
import pickletools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from gen_eval.records import ItemError, Reason

Mask: TypeAlias = NDArray[np.bool_]
MaskObject: TypeAlias = tuple[str, Mask]
Size: TypeAlias = tuple[int, int, int]
"""Frames, height, width."""

MAX_FILE_BYTES = 2**28
MAX_OBJECTS = 10_000
MAX_MASK_PIXELS = 2**30
"""Largest T * H * W of one mask: 121 frames of 4096 x 2160."""

_MAX_PHRASE = 10_000
_MAX_OPCODES = 1_000_000
_PLAIN_OPCODES = {
    *("PROTO", "FRAME", "STOP", "MARK", "POP", "POP_MARK", "DUP", "NONE", "NEWTRUE", "NEWFALSE"),
    *("EMPTY_LIST", "APPEND", "APPENDS", "LIST", "EMPTY_DICT", "SETITEM", "SETITEMS", "DICT"),
    *("EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "BININT", "BININT1", "BININT2", "LONG1", "INT", "BINFLOAT"),
    *("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "SHORT_BINBYTES", "BINBYTES", "BINBYTES8"),
    *("MEMOIZE", "BINPUT", "LONG_BINPUT", "BINGET", "LONG_BINGET"),
}
_UNPICKLING = (
    *(pickle.UnpicklingError, EOFError, TypeError, IndexError, AttributeError, KeyError, OverflowError, MemoryError),
)
_MEMO = {"BINPUT", "LONG_BINPUT"}


class _MalformedError(ValueError):
    """The content of a file is not what its form says."""


@dataclass(frozen=True)
class Segmentation(Sequence[MaskObject]):
    """The objects of one file in its order; each mask is decoded when its object is asked for.

    Attributes:
        source: file name, for messages.
        size: frames, height and width of every mask; ``None`` in a file without objects that does not say.
        phrases: phrase of each object.
    """

    source: str
    size: Size | None
    phrases: tuple[str, ...]
    _decode: tuple[Callable[[int, int], Mask], ...] = field(repr=False)

    def __len__(self) -> int:
        return len(self.phrases)

    @overload
    def __getitem__(self, index: int) -> MaskObject: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[MaskObject]: ...

    def __getitem__(self, index: int | slice) -> MaskObject | Sequence[MaskObject]:
        """Phrase and mask (T, H, W) of an object.

        Raises:
            ItemError: ``undecodable``, the run lengths do not fill the mask.
        """
        if isinstance(index, slice):
            return Segmentation(self.source, self.size, self.phrases[index], self._decode[index])
        frames = 0 if self.size is None else self.size[0]
        return self.phrases[index], self.part(index, 0, frames)

    def part(self, index: int, start: int, stop: int) -> Mask:
        """The mask of an object in the frames from ``start`` up to ``stop``.

        Our own form decodes these frames only; the published one, which is a single run over all frames, all of them.

        Raises:
            ItemError: ``undecodable``, the run lengths do not fill the mask.
        """
        try:
            return self._decode[index](start, stop)
        except ValueError as error:
            raise _undecodable(self.source, f"object {index}: {error}") from error


def read_segmentation(path: Path) -> Segmentation:
    """The objects in ``path``: ``.json`` is our form, everything else the published pickle form.

    Raises:
        ItemError: ``undecodable``, the file is absent, too large, or holds something else; the message names it.
    """
    path = Path(path)
    try:
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            raise _MalformedError(f"it has {size} bytes; files of more than {MAX_FILE_BYTES} are not read")
        content = path.read_bytes()
        return _from_json(path.name, content) if path.suffix == ".json" else _from_pickle(path.name, content)
    except (OSError, ValueError, RecursionError) as error:
        said = error.strerror if isinstance(error, OSError) else None  # not the path: rows are equal wherever data lie
        raise _undecodable(path.name, said or str(error)) from error


# --- the published form ----------------------------------------------------------------------------------------------


class _PlainUnpickler(pickle.Unpickler):
    """Unpickles numbers, text, bytes, lists, tuples and dicts."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"it names {module}.{name}; only plain lists, dicts, text and numbers are read")

    def persistent_load(self, pid: Any) -> NoReturn:
        raise pickle.UnpicklingError("it refers to an object outside of itself")


def _from_pickle(name: str, content: bytes) -> Segmentation:
    _check_opcodes(content)
    try:
        items = _PlainUnpickler(io.BytesIO(content)).load()
    except _UNPICKLING as error:
        raise _MalformedError(f"it is no pickle of plain values: {error or type(error).__name__}") from error
    if not isinstance(items, list):
        raise _MalformedError(f"it holds a {type(items).__name__}; expected a list of objects")
    _check_count(len(items))
    phrases: list[str] = []
    decoders: list[Callable[[int, int], Mask]] = []
    size: Size | None = None
    for index, item in enumerate(items):
        phrase, own, counts = _published_object(index, item)
        if size is not None and own != size:
            raise _MalformedError(f"object {index} has size {own}, those before it {size}")
        size = own
        phrases.append(phrase)
        decoders.append(partial(_column, counts, own))
    return Segmentation(name, size, tuple(phrases), tuple(decoders))


def _check_opcodes(content: bytes) -> None:
    """Walk the opcodes without executing them.

    Raises:
        ValueError: one is not needed for plain values, there are too many, or a memo index is beyond their number
            (the unpickler reserves memory up to the index).
    """
    seen = 0
    try:
        for opcode, argument, _ in pickletools.genops(content):
            seen += 1
            if opcode.name not in _PLAIN_OPCODES:
                raise _MalformedError(f"it uses the pickle instruction {opcode.name}, which plain values do not need")
            if seen > _MAX_OPCODES:
                raise _MalformedError(f"it has more than {_MAX_OPCODES} pickle instructions")
            if opcode.name in _MEMO and (argument is None or argument > seen):
                raise _MalformedError(f"it reserves memo entry {argument} after {seen} instructions")
    except (OverflowError, IndexError, TypeError) as error:
        raise _MalformedError(f"it is no pickle: {error}") from error


def _published_object(index: int, item: Any) -> tuple[str, Size, bytes]:
    code = _field(index, item, "segmentation_mask_rle", dict)
    data = _field(index, code, "data", dict)
    size = _size(_field(index, code, "mask_shape", (list, tuple)), f"mask_shape of object {index}")
    counts = data.get("counts")
    if isinstance(counts, str):
        counts = counts.encode("ascii", "replace")
    if not isinstance(counts, bytes):
        raise _MalformedError(f"counts of object {index} is a {type(counts).__name__}; expected compressed run lengths")
    stated = data.get("size")
    if not isinstance(stated, list | tuple) or list(stated) != [math.prod(size), 1]:
        raise _MalformedError(f"size of object {index} is not [{math.prod(size)}, 1], as its mask_shape {size} says")
    return _phrase(index, item), size, counts


def _column(counts: bytes, size: Size, start: int, stop: int) -> Mask:
    """Frames of a mask that is stored as one column in C order."""
    return _decoded(counts, math.prod(size), 1).reshape(size)[start:stop]


# --- our form --------------------------------------------------------------------------------------------------------


def _from_json(name: str, content: bytes) -> Segmentation:
    document = json.loads(content)
    if not isinstance(document, dict) or not isinstance(document.get("objects"), list):
        raise _MalformedError('it is not {"size": [T, H, W], "objects": [..]}')
    size = _size(document.get("size"), "size")
    _check_count(len(document["objects"]))
    phrases: list[str] = []
    decoders: list[Callable[[int, int], Mask]] = []
    for index, item in enumerate(document["objects"]):
        codes = _field(index, item, "rle", list)
        if len(codes) != size[0] or not all(code is None or isinstance(code, str) for code in codes):
            raise _MalformedError(f"rle of object {index} must be {size[0]} texts or nulls, one for each frame")
        phrases.append(_phrase(index, item))
        decoders.append(partial(_frames, codes, size))
    return Segmentation(name, size, tuple(phrases), tuple(decoders))


def _frames(codes: Sequence[str | None], size: Size, start: int, stop: int) -> Mask:
    wanted = codes[start:stop]
    mask = np.zeros((len(wanted), *size[1:]), np.bool_)
    for frame, code in zip(mask, wanted, strict=True):
        if code is not None:
            frame[:] = _decoded(code.encode("ascii", "replace"), size[1], size[2])
    return mask


# --- shared ----------------------------------------------------------------------------------------------------------


def run_lengths(counts: bytes) -> NDArray[np.int64]:
    """The run lengths in COCO's compressed form, off and on in turn.

    Each number is written in groups of five bits, lowest first, plus 48, a sixth bit saying that more follow; the last
    group's top bit is the sign. From the fourth on it is the difference to the number two before.

    Raises:
        ValueError: a byte is outside of the code, or the last number is cut.
    """
    groups = np.frombuffer(counts, np.uint8).astype(np.int64) - 48
    if not groups.size:
        return groups
    if groups.min() < 0 or groups.max() > 63:
        raise _MalformedError("its run lengths hold bytes that are no COCO code")
    last = groups & 32 == 0
    if not last[-1]:
        raise _MalformedError("its run lengths are cut in the middle of a number")
    ends = np.flatnonzero(last)
    starts = np.concatenate([[0], ends[:-1] + 1])
    lengths = ends - starts + 1
    if lengths.max() > 7:
        raise _MalformedError("its run lengths hold a number of more than 35 bits")
    places = np.arange(groups.size) - np.repeat(starts, lengths)
    numbers = np.add.reduceat((groups & 31) << (5 * places), starts)
    numbers -= np.where(groups[ends] & 16, np.int64(1) << (5 * lengths), 0)
    numbers[1::2] = np.cumsum(numbers[1::2])
    numbers[2::2] = np.cumsum(numbers[2::2])
    return np.asarray(numbers)


def _decoded(counts: bytes, height: int, width: int) -> Mask:
    """A mask (height, width) from COCO's compressed run lengths (column by column).

    Raises:
        ValueError: the run lengths do not fill the mask exactly.
    """
    lengths = run_lengths(counts)
    if lengths.size and (lengths.min() < 0 or lengths.max() > height * width):
        raise _MalformedError("its run lengths hold a negative or overlong run")
    if lengths.sum() != height * width:
        raise _MalformedError(f"its run lengths add up to {lengths.sum()}; the mask has {height * width} pixels")
    runs = np.zeros(len(lengths), np.bool_)
    runs[1::2] = True
    return np.repeat(runs, lengths).reshape(width, height).T


def _field(index: int, item: Any, name: str, kind: type | tuple[type, ...]) -> Any:
    if not isinstance(item, dict) or not isinstance(item.get(name), kind):
        found = type(item.get(name) if isinstance(item, dict) else item).__name__
        expected = kind.__name__ if isinstance(kind, type) else " or ".join(one.__name__ for one in kind)
        raise _MalformedError(f"object {index} has no {name} of type {expected} (found {found})")
    return item[name]


def _phrase(index: int, item: Any) -> str:
    phrase = _field(index, item, "phrase", str)
    if len(phrase) > _MAX_PHRASE:
        raise _MalformedError(f"the phrase of object {index} has {len(phrase)} letters; expected at most {_MAX_PHRASE}")
    try:
        phrase.encode()
    except UnicodeEncodeError as error:
        raise _MalformedError(f"the phrase of object {index} is no text that can be written down") from error
    return str(phrase)


def _size(value: Any, name: str) -> Size:
    if not isinstance(value, list | tuple) or len(value) != 3 or not all(type(one) is int and one > 0 for one in value):
        raise _MalformedError(f"{name} must be three whole numbers above 0: frames, height, width")
    if math.prod(value) > MAX_MASK_PIXELS:
        raise _MalformedError(f"{name} {list(value)} is more than the {MAX_MASK_PIXELS} pixels that are read")
    return (value[0], value[1], value[2])


def _check_count(objects: int) -> None:
    if objects > MAX_OBJECTS:
        raise _MalformedError(f"it has {objects} objects; at most {MAX_OBJECTS} are read")


def _undecodable(path: str, problem: str) -> ItemError:
    return ItemError(
        Reason.UNDECODABLE, f"{path} cannot be read as a segmentation file: {problem}", {"file": Path(path).name}
    )
