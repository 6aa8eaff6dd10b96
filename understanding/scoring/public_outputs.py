"""What the public programs print of a set of answers (PAI-Bench-U), for comparison with their logs.

The harness task returns the overall percentage alone and logs groups with one decimal, sub-categories cut at the first
colon. The reference script prints counts with two decimals, whole sub-categories, and a line each for the categories
that start with Space and with Time. Groups come in the order in which they first appear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from understanding.scoring.outcome import SampleScore

_PREFIXES = ("Space", "Time")


@dataclass
class _Count:
    right: int = 0
    total: int = 0

    @property
    def percent(self) -> float:
        return self.right / self.total * 100


def _counts(scores: Iterable[SampleScore], key: Callable[[SampleScore], str | None]) -> dict[str, _Count]:
    found: dict[str, _Count] = {}
    for score in scores:
        if score.value is not None and (name := key(score)) is not None:
            one = found.setdefault(name, _Count())
            one.right += int(score.value == 1.0)
            one.total += 1
    return found


def _group(way: str) -> Callable[[SampleScore], str | None]:
    return lambda score: score.sample.groups.get(way)


def harness_output(scores: Sequence[SampleScore]) -> dict[str, Any]:
    """``overall`` (percent, as the harness returns it) and the lines of its ``log``; no overall without an answer."""
    whole = _counts(scores, lambda _score: "Overall").get("Overall")
    if whole is None:
        return {"overall": None, "log": []}
    lines = ["=== Overall Accuracy ===", _logged("Overall", whole)]
    for title, way in (("Category", "category"), ("Subcategory", "part")):
        lines.append(f"=== {title} Accuracy ===")
        lines += [_logged(f"{title}: {name}", one) for name, one in _counts(scores, _group(way)).items()]
    return {"overall": whole.percent, "log": lines}


def _logged(name: str, one: _Count) -> str:
    return f"{name}: {one.percent:.1f}% ({one.right}/{one.total})"


def script_output(scores: Sequence[SampleScore]) -> list[str]:
    """The lines of the reference script; none without an answer."""
    whole = _counts(scores, lambda _score: "Total").get("Total")
    if whole is None:
        return []
    lines = ["=== Category Results ==="]
    lines += [_printed(name, one) for name, one in _counts(scores, _group("category")).items()]
    for prefix in _PREFIXES:
        together = _counts(scores, partial(_starting, prefix))
        lines += [_printed(name, one) for name, one in together.items()]
    lines += ["", "=== Subcategory Results ==="]
    lines += [_printed(name, one) for name, one in _counts(scores, _group("subcategory")).items()]
    return [*lines, "", "=== Overall Results ===", _printed("Total", whole)]


def _starting(prefix: str, score: SampleScore) -> str | None:
    return prefix if score.sample.groups.get("category", "").startswith(prefix) else None


def _printed(name: str, one: _Count) -> str:
    return f"{name}: {one.right}/{one.total} = {one.percent:.2f}%"
