"""Result files of VBench and PAI-Bench: ``{name}_eval_results.json`` = ``{dimension: [total, [records]]}``.

Scales in such a file are mixed (imaging quality: 0..100 a video and 0..1 as total; dynamic degree: true or false), and
``background_consistency`` carries sums beside means. Everything is brought to one scale here, with what was written
kept beside it.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from gen_eval.data.naming import is_unicode, split_name
from gen_eval.records import InputError, Reason

FORMAT = "vbench-results"
RESULTS_SUFFIX = "_eval_results.json"
_INFO_SUFFIX = "_full_info.json"

_TOLERANCE = 1e-6  # totals were summed in float32
_LARGEST = 1e100
_SLACK = 1e-3  # cosines in half precision exceed 1 by as much
_NUMBERED = re.compile(r"(?P<prompt>.+)-(?P<index>\d+)")


@dataclass(frozen=True)
class Dimension:
    """How one dimension is written.

    Attributes:
        divisor: of a record's number, for a ratio.
        bounds: range of a record's value after scaling; ``None`` where there is none.
        boolean: whether records hold true and false.
        weighted: whether the total weighs videos by their frames when their numbers are known.
    """

    divisor: float = 1.0
    bounds: tuple[float, float] | None = (0.0, 1.0)
    boolean: bool = False
    weighted: bool = False


DIMENSIONS: Mapping[str, Dimension] = {
    "subject_consistency": Dimension(),
    "background_consistency": Dimension(weighted=True),
    "motion_smoothness": Dimension(),
    "aesthetic_quality": Dimension(bounds=None),
    "imaging_quality": Dimension(divisor=100.0, bounds=None),
    "overall_consistency": Dimension(bounds=(-1.0, 1.0)),
    "i2v_subject": Dimension(),
    "i2v_background": Dimension(),
    "temporal_flickering": Dimension(),
    "dynamic_degree": Dimension(boolean=True),
}
"""The dimensions that are metrics here too; others in a file are named and left out."""


@dataclass(frozen=True)
class VideoRecord:
    """What a file says of one video in one dimension.

    Attributes:
        place: its number in the list, from 0.
        video: file name, without folders.
        raw: the number as it was written; ``None`` when it was NaN or infinite.
        value: on the scale of the metric.
        sum: sum over frames that ``value`` is the mean of, where the file has it.
        count: how many frames that are.
        image: file name of the condition image, where the file has it.
        further: further numbers of the metric by name, ``None`` where one was left unset.
        missing: why there is no value, when the file says more than that a number is not finite.
        clips: file names of the videos that a record of a whole task is about.
    """

    place: int
    video: str
    raw: float | None
    value: float | None
    sum: float | None = None
    count: float | None = None
    image: str | None = None
    further: Mapping[str, float | None] = field(default_factory=dict)
    missing: Reason | None = None
    clips: tuple[str, ...] = ()


@dataclass(frozen=True)
class TotalCheck:
    """A file's own total against the one that follows from its records.

    Attributes:
        written: as the file has it, on the scale of the metric; ``None`` when it is no finite number.
        recomputed: from the records; ``None`` when one of them is not finite, or there are none.
        rule: how it was taken from the records.
        note: what to make of a difference; empty when the two agree.
    """

    written: float | None
    recomputed: float | None
    rule: str
    note: str = ""

    @property
    def agrees(self) -> bool:
        """Whether both are equal within rounding (1e-6)."""
        return not self.note

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "written": self.written,
            "recomputed": self.recomputed,
            "rule": self.rule,
            "agrees": self.agrees,
            "note": self.note,
        }


@dataclass(frozen=True)
class WrittenDimension:
    """One dimension of a file: its records and its total.

    Attributes:
        further: checks of totals of further numbers, by name.
        by_task: whether a record stands for all videos of a sample together.
    """

    name: str
    records: tuple[VideoRecord, ...]
    check: TotalCheck
    further: Mapping[str, TotalCheck] = field(default_factory=dict)
    by_task: bool = False


@dataclass(frozen=True)
class ResultFile:
    """A result file in memory.

    Attributes:
        dimensions: those that are metrics here, in the order of the file.
        left_out: names of the others.
        prompts: file name of a video -> its prompt, from the ``*_full_info.json`` beside, if there is one.
        track: which ``score`` command makes such numbers.
        format: which program wrote it.
    """

    path: Path
    dimensions: tuple[WrittenDimension, ...]
    left_out: tuple[str, ...] = ()
    prompts: Mapping[str, str] = field(default_factory=dict)
    track: Literal["quality", "control"] = "quality"
    format: str = FORMAT


def read_result_file(path: Path) -> ResultFile:
    """Everything in ``path``.

    Raises:
        InputError: it is no such file, or a record of it is malformed; dimension and record are named.
    """
    return result_file(path, read_json(path))


def result_file(path: Path, content: Any) -> ResultFile:
    """Everything in ``content``, which was read from ``path``; see :func:`read_result_file`."""
    if not isinstance(content, dict) or not content:
        raise InputError(f"{path} must be {{dimension: [total, [records]]}}, as VBench and PAI-Bench write it")
    known = {name: entry for name, entry in content.items() if name in DIMENSIONS}
    for name in content.keys() - known.keys():
        _split(path, name, content[name])  # a file of another kind would be taken for one with foreign dimensions only
    return ResultFile(
        path,
        tuple(_dimension(path, name, entry) for name, entry in known.items()),
        tuple(name for name in content if name not in known),
        _prompts(path),
    )


def read_json(path: Path) -> Any:
    """What ``path`` holds; NaN and infinity are read as the numbers that they are.

    Raises:
        InputError: it is no JSON, a name stands twice in one object, or a number is so large that no score is.
    """
    try:
        return json.loads(
            path.read_text(encoding="utf-8"), object_pairs_hook=_unique, parse_int=_whole, parse_float=_float
        )
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read as JSON: {error}") from error


def _whole(text: str) -> int:
    _float(text)
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if abs(value) > _LARGEST:  # sums and squares of larger ones leave what numbers can hold
        raise ValueError(f"it holds the number {short(text)}; no score is above {_LARGEST:g}")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    twice = [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]
    if twice:
        raise ValueError(f"the name {twice[0]!r} stands twice in one object")
    return dict(pairs)


def _split(path: Path, name: str, entry: Any) -> tuple[Any, list[Any]]:
    if not isinstance(entry, list) or len(entry) != 2 or not isinstance(entry[1], list):
        raise InputError(f"{path}: {name} must be [total, [records]], not {short(entry)}")
    return entry[0], entry[1]


def short(value: Any) -> str:
    """``value`` for a message."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _dimension(path: Path, name: str, entry: Any) -> WrittenDimension:
    total, given = _split(path, name, entry)
    records = tuple(_record(f"{path}: {name}, record {place}", name, place, one) for place, one in enumerate(given))
    if total is not None and not _is_number(total):
        raise InputError(f"{path}: the total of {name} must be a number, not {short(total)}")
    return WrittenDimension(name, records, _check(name, records, None if total is None else float(total)))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _record(where: str, name: str, place: int, given: Any) -> VideoRecord:
    rule = DIMENSIONS[name]
    if not isinstance(given, dict):
        raise InputError(f"{where} must be an object, not {short(given)}")
    raw = _number(where, given, "video_results", boolean=rule.boolean)
    video = file_name(where, given, "video_path")
    total, count = (_optional(where, given, key) for key in ("video_sim", "cnt_per_video"))
    if count is not None and (count <= 0 or not count.is_integer()):
        raise InputError(f"{where}: cnt_per_video must be a whole number above 0, not {count:g}")
    value = raw / rule.divisor if math.isfinite(raw) else None
    if value is not None and total is not None and count is not None:
        value = total / count  # some versions write the sum itself as video_results
    if value is not None and rule.bounds is not None:
        low, high = rule.bounds
        if not low - _SLACK <= value <= high + _SLACK:
            raise InputError(
                f"{where}: {value:g} lies outside {low:g}..{high:g}. Older versions wrote sums over frames here, which "
                "cannot be undone without cnt_per_video; leave the dimension out with --metrics, or score the videos"
            )
    image = None if given.get("image_path") is None else file_name(where, given, "image_path")
    return VideoRecord(place, video, raw if math.isfinite(raw) else None, value, total, count, image)


def _number(where: str, given: Mapping[str, Any], key: str, *, boolean: bool = False) -> float:
    if key not in given:
        raise InputError(f"{where} has no {key}; it has {', '.join(map(str, given)) or 'nothing'}")
    value = given[key]
    if _is_number(value) or (boolean and isinstance(value, bool)):
        return float(value)
    raise InputError(f"{where}: {key} must be {'true, false or ' if boolean else ''}a number, not {short(value)}")


def _optional(where: str, given: Mapping[str, Any], key: str) -> float | None:
    if given.get(key) is None:
        return None
    number = _number(where, given, key)
    return number if math.isfinite(number) else None


def file_name(where: str, given: Mapping[str, Any], key: str) -> str:
    """The file that ``given[key]`` names, without folders.

    Raises:
        InputError: it names none.
    """
    value = given.get(key)
    name = re.split(r"[\\/]", value)[-1] if isinstance(value, str) else ""
    if not name or not is_unicode(name):
        raise InputError(f"{where}: {key} must name a file, not {short(value)}")
    return name


# --- totals --------------------------------------------------------------------------------------------------------


def _check(name: str, records: Sequence[VideoRecord], written: float | None) -> TotalCheck:
    rule = DIMENSIONS[name]
    weighted = rule.weighted and all(one.count is not None for one in records)
    words = "sum over frames / number of frames" if weighted else "mean of the records"
    found = _recomputed(records, weighted)
    own = written if written is not None and math.isfinite(written) else None
    check = compared(own, found, words, dict.fromkeys((1.0, rule.divisor)))
    if name == "subject_consistency" and own is not None and found is not None and not check.agrees:
        more = "a single process weighs videos by their frames, whose numbers the file does not hold"
        return TotalCheck(own, found, words, f"{check.note}; {more}")
    return check


def compared(own: float | None, found: float | None, words: str, divisors: Iterable[float] = (1.0,)) -> TotalCheck:
    """The file's total ``own`` against ``found``.

    Args:
        own: as written; ``None`` when it is no finite number.
        found: from the records; ``None`` when none follows from them.
        words: how it was found.
        divisors: scales on which the file may have written it.
    """
    if own is None or found is None:
        return TotalCheck(own, found, words, "" if own is found else _no_number(own))
    for divisor in divisors:
        if abs(own / divisor - found) <= _TOLERANCE * max(1.0, abs(found)):
            return TotalCheck(own / divisor, found, words)
    return TotalCheck(own, found, words, f"the file says {own:.9g}, its records give {found:.9g} ({words})")


def _recomputed(records: Sequence[VideoRecord], weighted: bool) -> float | None:
    values = [one.value for one in records if one.value is not None]
    if not values or len(values) < len(records):
        return None
    if not weighted:
        return math.fsum(values) / len(values)
    counts = [one.count for one in records if one.count is not None]
    return math.fsum(value * count for value, count in zip(values, counts, strict=True)) / math.fsum(counts)


def _no_number(written: float | None) -> str:
    if written is None:
        return "the file has no finite total, though its records give one"
    return "the file has a total, though a record is not finite or there is none"


# --- names ---------------------------------------------------------------------------------------------------------


def place_of(
    name: str, ids: Container[str] | None, *, numbered: bool, bare_member: str = "default"
) -> tuple[str, str] | None:
    """Sample and member of a video of a result file.

    Args:
        name: file name.
        ids: known sample ids; ``None`` when any name is taken.
        numbered: whether ``prompt-index.mp4`` (VBench's names) is read too; such a prompt is then the sample.
        bare_member: member of a video that is named by the id alone.

    Returns:
        ``None`` when no reading fits.

    Example:
        >>> place_of("av_1__3.mp4", None, numbered=False), place_of("a cat runs-4.mp4", None, numbered=True)
        (('av_1', '3'), ('a cat runs', '4'))
    """
    stem = name.rsplit(".", 1)[0] if "." in name else name
    match = _NUMBERED.fullmatch(stem) if numbered and "__" not in stem else None
    if match and (ids is None or (match["prompt"] in ids and stem not in ids)):
        return match["prompt"], match["index"]
    return split_name(stem, ids, bare_member=bare_member)


def is_numbered(names: Sequence[str]) -> bool:
    """Whether the videos are named as VBench does: all of them end in ``-index``, and none holds ``__``."""
    stems = [name.rsplit(".", 1)[0] for name in names]
    return bool(stems) and all(_NUMBERED.fullmatch(stem) and "__" not in stem for stem in stems)


def label_of_file(path: Path) -> str:
    """What a file is called without its ending: the label of a model when nobody gives one."""
    return path.name.removesuffix(RESULTS_SUFFIX) if path.name.endswith(RESULTS_SUFFIX) else path.stem


def _prompts(path: Path) -> dict[str, str]:
    info = path.with_name(label_of_file(path) + _INFO_SUFFIX)
    if not path.name.endswith(RESULTS_SUFFIX) or not info.is_file():
        return {}
    content = read_json(info)
    if not isinstance(content, list):
        raise InputError(f"{info} beside the results must be a JSON list of objects with prompt_en and video_list")
    return dict(_listed_prompts(content))


def _listed_prompts(content: Sequence[Any]) -> Iterator[tuple[str, str]]:
    for entry in content:
        prompt = entry.get("prompt_en") if isinstance(entry, dict) else None
        videos = entry.get("video_list") if isinstance(entry, dict) else None
        if isinstance(prompt, str) and is_unicode(prompt) and isinstance(videos, list):
            yield from ((re.split(r"[\\/]", video)[-1], prompt) for video in videos if isinstance(video, str))
