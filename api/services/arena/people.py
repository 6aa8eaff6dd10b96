"""What people say, for the report of runs: ratings, and how far the scores of these runs agree with them."""

from __future__ import annotations

from pathlib import Path

from api.services.arena.correlating import Correlated, CorrelateRequest, correlate_scores
from api.services.arena.rating import REAL, RatingRules
from api.services.reporting.fragments import Fragment, People


def people_of(
    runs: tuple[Path, ...],
    *,
    votes: Path | None = None,
    ratings: Path | None = None,
    rules: RatingRules | None = None,
    real: tuple[str, ...] = REAL,
    store: str | None = None,
) -> tuple[People, Correlated]:
    """Votes or ratings beside the scores of ``runs``.

    Args:
        runs: run folders of the report.
        votes: file of votes; rated by ``rules``.
        ratings: file of ratings; with votes, too, it is what scores are correlated with over systems.
        rules: how votes become ratings, and the protocol of the scores.
        real: systems that are real videos.
        store: database URL when the rows are not in the folders.

    Raises:
        InputError: neither votes nor ratings, or a file that cannot be read.
    """
    request = CorrelateRequest(runs, ratings=ratings, votes=votes, rules=rules or RatingRules(), real=real, store=store)
    found = correlate_scores(request)

    def fragment() -> Fragment:
        from api.services.arena import page, studies

        return page.human_section(studies.of_people(found))

    return People(fragment, found.to_json), found


__all__ = ["people_of"]
