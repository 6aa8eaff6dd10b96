"""`judge agree`: how far the judges of several runs agree on the same videos."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gen_eval.records import InputError
from gen_eval.records.answer import MAIN
from gen_eval.records.run import RunFolder
from gen_eval.replies import read_yes_no
from judge.agreement import Pair, Said, mean_kappa, pairs

_TRACKS = ("domain", "calibration")
_WORDS = ("yes", "no")
_READ_BY = "corrected"
"""Protocol whose reading says what a judge said; the public code's finds a word and extracts no answer."""


def agree(runs: Sequence[Path], *, store: str | None = None, resamples: int = 10_000) -> dict[str, Any]:
    """Agreement of every two judges, overall and by domain.

    An answer belongs to a sample, the seed of the generation and a question; runs on videos of different systems do not
    pair. Questions whose key is neither yes nor no are left out, and counted for each judge: a reply to them cannot be
    read as either.

    Args:
        runs: folders of ``score domain`` or ``judge calibrate``, one a judge.
        store: database URL when the rows are not in the folders.
        resamples: of the intervals, which draw whole samples.

    Raises:
        InputError: fewer than two runs, one that no judge answered in, or runs without a common question.
    """
    if len(runs) < 2:
        raise InputError(f"{len(runs)} run cannot be compared; give the runs of two judges or more")
    said: dict[str, Said] = {}
    titles: dict[str, str] = {}
    left_out: dict[str, int] = {}
    for path in runs:
        with RunFolder(path, store=store) as run:
            name, title = _judge_of(run.manifest, path)
            name = name if name not in said else f"{name} ({path.name})"
            if name in said:
                raise InputError(f"{path} is given twice; give each run once")
            said[name], left_out[name] = _said(run)
            titles[name] = title
    found = pairs(said, resamples=resamples)
    if not any(one.overall.n or one.overall.unread_a or one.overall.unread_b for one in found):
        raise InputError("these runs have no question in common; judge the same videos under the same --model label")
    return {
        "judges": titles,
        "pairs": [one.to_json() for one in found],
        "mean_kappa": mean_kappa(found),
        "left_out": left_out,
    }


def _judge_of(manifest: Mapping[str, Any], path: Path) -> tuple[str, str]:
    judge = manifest.get("judge")
    if manifest.get("track") not in _TRACKS or not isinstance(judge, dict):
        raise InputError(f"no judge answered in {path}; give runs of `score domain` or `judge calibrate`")
    return str(judge.get("name")), str(judge.get("title"))


def _said(run: RunFolder) -> tuple[Said, int]:
    """What was said to each question (yes, no, or nothing that can be read), and how many answers are left out."""
    if run.manifest["track"] == "calibration":  # all of its questions are of yes and no
        asked = (one for one in run.answers() if one.condition == MAIN and one.reason is None)
        return {(one.sample, one.member, one.question, ""): read_yes_no(one.given).value for one in asked}, 0
    found: dict[tuple[str, ...], str | None] = {}
    left_out = 0
    for row in run.rows():
        if row.protocol != _READ_BY:
            continue
        for one in row.detail.get("questions", ()):
            if one["reason"] is not None:
                continue
            if one["truth"].strip().casefold() not in _WORDS:
                left_out += 1
                continue
            said = one["said"] if one["said"] in _WORDS else None
            found[row.sample, row.member, one["uid"], row.model] = said
    return found, left_out


__all__ = ["Pair", "agree"]
