"""Samples as JSON lines: the generation and conditional forms (docs/files.md, "samples")."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from gen_eval.data.benchmark import Benchmark, Rejected
from gen_eval.data.naming import is_unicode
from gen_eval.records import InputError, Rejection, Sample

_KNOWN = {"id", "domain", "prompt_en", "prompt", "image_name", "captions", "video", "controls", "depth", "masks"}


class _Refused(Exception):  # noqa: N818 - it never leaves this module
    def __init__(self, reason: Rejection, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def beside(root: Path, name: str) -> Path | None:
    """The path ``name`` under ``root``; ``None`` when it is absolute or climbs out of it."""
    pure = PurePosixPath(name.replace("\\", "/"))
    if not name or "\0" in name or pure.is_absolute() or ".." in pure.parts or (pure.parts and ":" in pure.parts[0]):
        return None
    return root.joinpath(*pure.parts)


def load_samples_file(path: Path, *, media: Path | None = None) -> Benchmark:
    """The samples in ``path`` (``.jsonl`` or ``.jsonl.gz``).

    A line that cannot be used is listed under ``rejected`` and the others stay.

    Args:
        path: the file; media paths in it are relative to its folder and may not leave it.
        media: folder that they are relative to instead.

    Raises:
        InputError: the file cannot be read, or no line of it can be used.
    """
    root = media if media is not None else path.parent
    samples: dict[str, Sample] = {}
    rejected: list[Rejected] = []
    for number, line in _lines(path):
        try:
            sample = _sample(line, root)
            if sample.id in samples:
                raise _Refused(Rejection.DUPLICATE_ID, f"id {sample.id!r} came before; the first is kept")
        except _Refused as refusal:
            rejected.append(Rejected(f"{path.name}:{number}", refusal.reason, str(refusal)))
        else:
            samples[sample.id] = sample
    if not samples:
        first = f": {rejected[0].where}: {rejected[0].message}" if rejected else ""
        raise InputError(f"{path} holds no sample that can be used{first}")
    return Benchmark("samples-file", root, tuple(samples[name] for name in sorted(samples)), tuple(rejected))


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        with (
            gzip.open(path, "rt", encoding="utf-8")
            if path.name.endswith(".gz")
            else path.open(encoding="utf-8") as file
        ):
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise InputError(f"the sample file {path} cannot be read: {error}") from error


def _sample(line: str, root: Path) -> Sample:
    try:
        record = json.loads(line, parse_constant=_refuse_constant)
        readable = is_unicode(record)
    except (ValueError, RecursionError) as error:
        raise _Refused(Rejection.LINE_NOT_JSON, f"not JSON: {error}") from error
    if not readable:
        raise _Refused(Rejection.MALFORMED_RECORD, "a text holds half of a surrogate pair, which is no character")
    if not isinstance(record, dict):
        raise _Refused(Rejection.MALFORMED_RECORD, f"expected an object, not {type(record).__name__}")
    name = _text(record, "id", required=True)
    assert name is not None
    captions = record.get("captions") or []
    if not isinstance(captions, list) or not all(isinstance(caption, str) for caption in captions):
        raise _Refused(Rejection.MALFORMED_RECORD, "captions must be a list of texts, the original first")
    prompt = _text(record, "prompt_en") or _text(record, "prompt") or (captions[0] if captions else None)
    return Sample(
        id=name,
        domain=_text(record, "domain"),
        prompt=prompt,
        captions=tuple(captions),
        condition_image=_media(record, "image_name", root),
        reference=_media(record, "video", root),
        depth=_media(record, "depth", root),
        masks=_media(record, "masks", root),
        controls=_controls(record, root),
        extra={key: value for key, value in record.items() if key not in _KNOWN},
    )


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


def _text(record: dict[str, Any], field: str, *, required: bool = False) -> str | None:
    value = record.get(field)
    if value is None and not required:
        return None
    if value is None:
        raise _Refused(Rejection.MISSING_FIELD, f"the field {field} is missing")
    if not isinstance(value, str) or (required and not value):
        hint = f'; write "{value}" for a number' if isinstance(value, int) else ""
        raise _Refused(Rejection.MALFORMED_RECORD, f"{field} must be a text that is not empty, not {value!r}{hint}")
    if "\0" in value:
        raise _Refused(Rejection.MALFORMED_RECORD, f"{field} holds a NUL character; no file name takes one")
    return value


def _media(record: dict[str, Any], field: str, root: Path) -> Path | None:
    value = record.get(field)
    if isinstance(value, dict):  # the long form {"path": .., "fps": .., "n_frames": ..}
        value = value.get("path")
    if value is None:
        return None
    path = beside(root, value) if isinstance(value, str) else None
    if path is None:
        raise _Refused(Rejection.MALFORMED_RECORD, f"{field} must be a relative path inside {root}, not {value!r}")
    return path


def _controls(record: dict[str, Any], root: Path) -> dict[str, Path]:
    controls = record.get("controls") or {}
    if not isinstance(controls, dict):
        raise _Refused(Rejection.MALFORMED_RECORD, "controls must map edge, blur, depth or seg to a path")
    paths = {signal: _media(controls, signal, root) for signal in controls}
    return {signal: path for signal, path in paths.items() if path is not None}
