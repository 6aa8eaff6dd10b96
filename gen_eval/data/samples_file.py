"""Samples as JSON lines: the generation and conditional forms (docs/files.md, "samples")."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

from gen_eval.data.benchmark import Benchmark, Rejected
from gen_eval.data.records_file import Refused, json_lines, required_text, text
from gen_eval.records import InputError, Rejection, Sample

_KNOWN = {"id", "domain", "prompt_en", "prompt", "image_name", "captions", "video", "controls", "depth", "masks"}


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
    for where, record in json_lines(path, rejected, called="the sample file"):
        try:
            sample = _sample(record, root)
            if sample.id in samples:
                raise Refused(Rejection.DUPLICATE_ID, f"id {sample.id!r} came before; the first is kept")
        except Refused as refusal:
            rejected.append(refusal.at(where))
        else:
            samples[sample.id] = sample
    if not samples:
        first = f": {rejected[0].where}: {rejected[0].message}" if rejected else ""
        raise InputError(f"{path} holds no sample that can be used{first}")
    return Benchmark("samples-file", root, tuple(samples[name] for name in sorted(samples)), tuple(rejected))


def _sample(record: dict[str, Any], root: Path) -> Sample:
    name = required_text(record, "id")
    captions = record.get("captions") or []
    if not isinstance(captions, list) or not all(isinstance(caption, str) for caption in captions):
        raise Refused(Rejection.MALFORMED_RECORD, "captions must be a list of texts, the original first")
    prompt = text(record, "prompt_en") or text(record, "prompt") or (captions[0] if captions else None)
    return Sample(
        id=name,
        domain=text(record, "domain"),
        prompt=prompt,
        captions=tuple(captions),
        condition_image=_media(record, "image_name", root),
        reference=_media(record, "video", root),
        depth=_media(record, "depth", root),
        masks=_media(record, "masks", root),
        controls=_controls(record, root),
        extra={key: value for key, value in record.items() if key not in _KNOWN},
    )


def _media(record: dict[str, Any], field: str, root: Path) -> Path | None:
    value = record.get(field)
    if isinstance(value, dict):  # the long form {"path": .., "fps": .., "n_frames": ..}
        value = value.get("path")
    if value is None:
        return None
    path = beside(root, value) if isinstance(value, str) else None
    if path is None:
        raise Refused(Rejection.MALFORMED_RECORD, f"{field} must be a relative path inside {root}, not {value!r}")
    return path


def _controls(record: dict[str, Any], root: Path) -> dict[str, Path]:
    controls = record.get("controls") or {}
    if not isinstance(controls, dict):
        raise Refused(Rejection.MALFORMED_RECORD, "controls must map edge, blur, depth or seg to a path")
    paths = {signal: _media(controls, signal, root) for signal in controls}
    return {signal: path for signal, path in paths.items() if path is not None}
