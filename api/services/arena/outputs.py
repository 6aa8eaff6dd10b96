"""Reports and plots of what the arena commands found, written as files."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from api.services.arena import arena_tables
from api.services.arena.correlating import Correlated
from api.services.arena.inspecting import AgreementOfVotes
from api.services.arena.rating import Rated
from gen_eval.arena import QUESTIONS, TRACKERS, pair_counts
from gen_eval.arena.systems import column_of
from gen_eval.records import InputError
from gen_eval.records.files import write_atomic

if TYPE_CHECKING:
    from matplotlib.figure import Figure


REPORTS = (".html", ".json", ".csv", ".tex")
"""Endings of a report of ratings or correlations."""

AGREEMENT_REPORTS = (".html", ".json")
"""Endings of a report of agreement."""


@dataclass(frozen=True)
class Outputs:
    """What can be written; nothing is made before it is asked for.

    Attributes:
        forms: ending of a report -> its bytes.
        plots: name -> figure.
    """

    forms: Mapping[str, Callable[[], bytes]]
    plots: Mapping[str, Callable[[], Figure]]


def write_output(outputs: Outputs, path: Path) -> None:
    """Write the report in the form that the ending of ``path`` names, whole or not at all.

    Raises:
        InputError: another ending, or the file cannot be written.
    """
    form = outputs.forms.get(path.suffix.lower())
    if form is None:
        raise InputError(f"no report is written as {path.name!r}; use one of {', '.join(outputs.forms)}")
    content = form()
    try:
        write_atomic(path, content)
    except OSError as error:
        raise InputError(f"the report {path} cannot be written: {error}; give another --out") from error


def write_plots(outputs: Outputs, folder: Path, form: str) -> list[Path]:
    """Write every plot into ``folder``, which is made when absent, as ``svg`` or ``png``.

    Raises:
        InputError: the folder cannot be made or written to.
    """
    from gen_eval.arena.drawing import save

    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, file_name in file_names(outputs.plots).items():
            path = folder / f"{file_name}.{form}"
            save(outputs.plots[name](), path)
            written.append(path)
    except OSError as error:
        raise InputError(f"plots cannot be written to {folder}: {error}; give another --plots") from error
    return written


def file_names(names: Iterable[str]) -> dict[str, str]:
    """Names of plots, which hold those of the user's metrics, as names of files that stay in their folder.

    No two are equal, also where large and small letters are one.

    >>> file_names(["wins-a", "wins-a/b", "wins-a b", "wins-A_b"])
    {'wins-a': 'wins-a', 'wins-a/b': 'wins-a_b', 'wins-a b': 'wins-a_b-2', 'wins-A_b': 'wins-A_b-3'}
    """
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip(".")[:100] or "plot"
        tries = (plain if place == 1 else f"{plain}-{place}" for place in itertools.count(1))
        found[name] = next(one for one in tries if one.lower() not in taken)
        taken.add(found[name].lower())
    return found


def _encoded(document: Any) -> bytes:
    return (json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1) + "\n").encode()


def rating_outputs(found: Rated) -> Outputs:
    """Report and plots of ``arena rate``."""
    from gen_eval.arena import plots

    counts = () if found.votes is None else pair_counts(found.votes)

    def html() -> bytes:
        from api.services.arena import page, studies

        return page.arena_page("gen-eval arena: ratings", studies.of_ratings(found))

    every = {**({} if found.ratings is None else {"": found.ratings}), **found.automatic}
    drawn: dict[str, Callable[[], Figure]] = {}
    for arena, ratings in every.items():
        for name, tracker in ratings.trackers.items():
            called = f"{arena}-{name}" if arena else name
            title, counted = (arena, "comparisons") if arena else (name, "votes")
            makers = {
                "ratings": plots.rating_intervals,
                **({"order": plots.order_spread} if tracker.order_spread else {}),
            }
            for kind, maker in makers.items():
                drawn[f"{kind}-{called}"] = partial(maker, tracker, real=found.real, title=title, counted=counted)
    if found.votes is not None and len(found.votes):
        for name in TRACKERS:
            if any(one.counted[name] for one in counts):
                drawn[f"wins-{name}"] = partial(plots.win_matrix, counts, name)
    return Outputs(
        {
            ".html": html,
            ".json": lambda: _encoded(found.to_json()),
            ".csv": lambda: arena_tables.ratings_csv(every),
            ".tex": lambda: arena_tables.ratings_latex(every),
        },
        drawn,
    )


def correlation_outputs(found: Correlated) -> Outputs:
    """Report and plots of ``arena correlate``."""
    from gen_eval.arena import correlation_plots as plots

    def html() -> bytes:
        from api.services.arena import page, studies

        return page.arena_page("gen-eval arena: scores and people", studies.of_correlations(found))

    drawn: dict[str, Callable[[], Figure]] = {}
    for name, pair in found.correlations.pairs.items():
        if not pair.points:
            continue
        rating, score = column_of(found.rating_columns, name), column_of(found.score_columns, name)
        drawn[f"scatter-{name}"] = partial(plots.scatter, pair, rating=rating, score=score)
        if pair.reason is None:
            drawn[f"leave-one-out-{name}"] = partial(plots.leave_one_out, pair)
    for name, comparison in found.comparisons.items():
        drawn[f"metrics-{name}"] = partial(plots.metrics_side_by_side, comparison)
    return Outputs(
        {
            ".html": html,
            ".json": lambda: _encoded(found.to_json()),
            ".csv": lambda: arena_tables.correlations_csv(found.correlations),
            ".tex": lambda: arena_tables.correlations_latex(found.correlations),
        },
        drawn,
    )


def agreement_outputs(found: AgreementOfVotes) -> Outputs:
    """Report and plots of ``arena agree``."""
    from gen_eval.arena import plots

    def html() -> bytes:
        from api.services.arena import page, studies

        return page.arena_page("gen-eval arena: agreement", studies.of_agreement(found))

    drawn: dict[str, Callable[[], Figure]] = {
        f"wins-{name}": partial(plots.win_matrix, found.balance.pairs, name)
        for name in QUESTIONS
        if name in found.questions
    }
    return Outputs({".html": html, ".json": lambda: _encoded(found.to_json())}, drawn)


__all__ = [
    "AGREEMENT_REPORTS",
    "REPORTS",
    "Outputs",
    "agreement_outputs",
    "correlation_outputs",
    "rating_outputs",
    "write_output",
    "write_plots",
]
