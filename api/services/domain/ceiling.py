"""Real source videos under the same judge: the score that a generator cannot be expected to pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from api.services.judged import ways_differ
from judge.domain import METRIC

if TYPE_CHECKING:
    from api.services.results import RunResults

SOURCE_NAMES = frozenset({"source videos", "source"})
"""Labels of a system that is the benchmark's own real videos, in any case, with blanks, ``_`` or ``-``."""


def is_source(results: RunResults) -> bool:
    """Whether a run scores real source videos, by the label of its system."""
    return " ".join(results.model.casefold().replace("_", " ").replace("-", " ").split()) in SOURCE_NAMES


def ceiling_of(results: RunResults, every: Sequence[RunResults], protocol: str) -> tuple[RunResults | None, str]:
    """The run of real source videos that stands beside ``results``, and why there is none although one was given.

    Args:
        results: a run of the domain track.
        every: all runs that are shown together.
        protocol: under which scores are shown.
    """
    if is_source(results):
        return None, ""
    entries = [(one, one.manifest["metrics"].get(METRIC.name)) for one in every if is_source(one)]
    sources = [one for one, entry in entries if entry is not None and protocol in entry["protocols"]]
    for one in sources:
        if not list(ways_differ(results.manifest, one.manifest)):
            return one, ""
    return None, next((way for one in sources for way in ways_differ(results.manifest, one.manifest)), "")


__all__ = ["SOURCE_NAMES", "ceiling_of", "is_source"]
