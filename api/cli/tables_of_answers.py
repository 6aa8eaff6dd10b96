"""Tables of what answers say beside their mean, for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from api.services.wording import NO_VALUE, interval, number

if TYPE_CHECKING:
    from rich.console import Console

    from api.services.results import RunResults


def print_domain(to: Console, results: RunResults) -> None:
    """All aggregations of a run of the domain track, under the protocol that was asked for."""
    from api.services.domain.further import further_scores, looks

    judge = results.manifest["judge"]
    to.print(f"judge: {judge['title']}", markup=False, soft_wrap=True)
    protocol = str(results.manifest["protocol"])
    scores = further_scores(results)[protocol]
    table = Table(title=f"domain_score, {escape(protocol)}", title_justify="left")
    for column in ("over", "value", "95 % interval", "n of N"):
        table.add_column(column, justify="left" if column == "over" else "right")
    parts = {
        "videos (headline)": scores.video_mean,
        "questions": scores.question_pooled,
        "domains": scores.domain_macro,
        "without misc": scores.without_misc,
        **{f"domain {name}": one for name, one in scores.by_domain.items()},
        **{f"topic {name}": one for name, one in scores.by_topic_group.items()},
        **{f"seed {name}": one for name, one in scores.per_seed.items()},
    }
    for name, one in parts.items():
        table.add_row(escape(name), number(one.value, one.unit), interval(one), f"{one.n} of {one.N}")
    for word, floor in (("yes", scores.always_yes), ("no", scores.always_no)):
        value = NO_VALUE if floor.video_mean is None else number(floor.video_mean, "ratio")
        table.add_row(f"always {word}", value, NO_VALUE, NO_VALUE)
    to.print(table)
    counts = scores.coverage
    unread = ", ".join(f"{count} {name}" for name, count in counts.unparsed_by.items()) or "none"
    to.print(f"{counts.answers} answers counted; unreadable (counted wrong): {unread}", markup=False, soft_wrap=True)
    if (seen := looks(results, protocol)) is not None and seen["verdict"] == "does_not_look":
        to.print("this judge does not look: it scores no better without the video or on another one", markup=False)
