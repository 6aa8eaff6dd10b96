"""Result files of PAI-Bench-C's own scripts: ``{"global": {name: mean}, "per_video": [{...}]}``.

Fidelity and quality have one entry a video, diversity one a task. A number that the scripts left unset stands there as
the bare token NaN or as null; a mean leaves such entries out. Source: PAI-Bench-C, public code (output of the scorers).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gen_eval.data.result_files import (
    ResultFile,
    TotalCheck,
    VideoRecord,
    WrittenDimension,
    compared,
    file_name,
    read_json,
    result_file,
    short,
)
from gen_eval.records import InputError, Reason

FORMAT = "pai-bench-c-results"
_PARTS = {"global", "per_video"}
_SLACK = 1e-6


@dataclass(frozen=True)
class ControlDimension:
    """How one metric is written.

    Attributes:
        key: name of its number in the file.
        bounds: range of the number and of further ones, ``None`` where there is no bound.
        further: further number of the metric -> its name in the file.
        by_task: whether an entry stands for all videos of a task.
    """

    key: str
    bounds: tuple[float | None, float | None]
    further: Mapping[str, str] = field(default_factory=dict)
    by_task: bool = False


CONTROL_DIMENSIONS: Mapping[str, ControlDimension] = {
    "blur_ssim": ControlDimension("blur_ssim", (-1.0, 1.0)),
    "edge_f1": ControlDimension(
        "canny_f1_score", (0.0, 1.0), {"precision": "canny_precision", "recall": "canny_recall"}
    ),
    "depth_si_rmse": ControlDimension("depth_si_rmse", (0.0, None)),
    "mask_miou": ControlDimension("seg_m_iou", (0.0, 1.0), {"recall": "seg_recall"}),
    "visual_quality": ControlDimension("dover_tech_score", (0.0, 100.0), {"reference": "dover_tech_score_gt"}),
    "diversity": ControlDimension("diversity_score_lpips", (0.0, None), by_task=True),
}
"""Metric -> how it is written; other numbers of a file are named and left out."""

_IN_GLOBAL = frozenset({"canny_precision", "canny_recall", "seg_recall"})
"""Further numbers that the file has a mean of."""


def read_results(path: Path) -> ResultFile:
    """Everything in ``path``, whichever program wrote it.

    Raises:
        InputError: it is no result file that is known here, or an entry of it is malformed; the entry is named.
    """
    content = read_json(path)
    if not isinstance(content, dict) or not _PARTS & content.keys():
        return result_file(path, content)
    means, entries = content.get("global"), content.get("per_video")
    if not isinstance(means, dict) or not isinstance(entries, list):
        raise InputError(f'{path} must be {{"global": {{name: mean}}, "per_video": [..]}}, as PAI-Bench-C writes it')
    for place, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise InputError(f"{path}: entry {place} of per_video must be an object, not {short(entry)}")
    known = {name: rule for name, rule in CONTROL_DIMENSIONS.items() if _named(rule.key, means, entries)}
    used = {key for rule in known.values() for key in (rule.key, *rule.further.values())}
    return ResultFile(
        path,
        tuple(_dimension(path, name, rule, means, entries) for name, rule in known.items()),
        tuple(name for name in means if name not in used),
        track="control",
        format=FORMAT,
    )


def _named(key: str, means: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> bool:
    return key in means or any(key in entry for entry in entries)


def _dimension(
    path: Path, name: str, rule: ControlDimension, means: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]
) -> WrittenDimension:
    records = tuple(
        _record(f"{path}: {name}, entry {place}", rule, place, entry) for place, entry in enumerate(entries)
    )
    check = _check(path, rule.key, means, [record.value for record in records])
    further = {
        short_name: _check(path, key, means, [record.further.get(short_name) for record in records])
        for short_name, key in rule.further.items()
        if key in _IN_GLOBAL
    }
    return WrittenDimension(name, records, check, further, by_task=rule.by_task)


def _record(where: str, rule: ControlDimension, place: int, entry: Mapping[str, Any]) -> VideoRecord:
    value = _bounded(where, rule, entry, rule.key)
    clips = _clips(where, entry) if rule.by_task else ()
    return VideoRecord(
        place,
        _task(where, entry, clips) if rule.by_task else _video(where, entry),
        value,
        value,
        further={short_name: _bounded(where, rule, entry, key) for short_name, key in rule.further.items()},
        missing=Reason.REFERENCE_UNSET if value is None else None,
        clips=clips,
    )


def _bounded(where: str, rule: ControlDimension, entry: Mapping[str, Any], key: str) -> float | None:
    value, (low, high) = _number(where, entry, key), rule.bounds
    below = value is not None and low is not None and value < low - _SLACK
    if below or (value is not None and high is not None and value > high + _SLACK):
        reach = f"{low:g} or more" if high is None else f"{low:g} to {high:g}"
        raise InputError(f"{where}: {key} is {value:g}, which lies outside of its range, {reach}")
    return value


def _number(where: str, entry: Mapping[str, Any], key: str) -> float | None:
    """The number under ``key``; ``None`` when it is absent, null or not finite."""
    value = entry.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{where}: {key} must be a number, NaN or null, not {short(value)}")
    return float(value) if math.isfinite(value) else None


def _video(where: str, entry: Mapping[str, Any]) -> str:
    """File name of the video that an entry is about."""
    if entry.get("pred_video_file") is None and isinstance(entry.get("pred_video_uuid"), str):
        return file_name(where, {"pred_video_uuid": f"{entry['pred_video_uuid']}.mp4"}, "pred_video_uuid")
    return file_name(where, entry, "pred_video_file")


def _clips(where: str, entry: Mapping[str, Any]) -> tuple[str, ...]:
    """File names of the videos that an entry of diversity is about, as far as it says so."""
    listed = entry.get("input_video_file_list") or []
    if not isinstance(listed, list):
        raise InputError(f"{where}: input_video_file_list must be a list of files, not {short(listed)}")
    return tuple(file_name(where, {"input_video_file_list": one}, "input_video_file_list") for one in listed)


def _task(where: str, entry: Mapping[str, Any], clips: Sequence[str]) -> str:
    """A file name that stands for the task: its id, or one of its videos."""
    if isinstance(entry.get("video_id"), str):
        return file_name(where, {"video_id": f"{entry['video_id']}.mp4"}, "video_id")
    return clips[0] if clips else _video(where, entry)


def _check(path: Path, key: str, means: Mapping[str, Any], values: Sequence[float | None]) -> TotalCheck:
    """The file's mean against the plain mean of what is set."""
    there = [value for value in values if value is not None]
    found = math.fsum(there) / len(there) if there else None
    words = f"mean of the {len(there)} of {len(values)} entries that have a number"
    if key not in means:
        return TotalCheck(None, found, words)
    return compared(_number(f"{path}: global", means, key), found, words)
