"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from api.services.network_facts import models_of, networks_of, networks_ran, not_for_commercial_use
from api.services.systems import judges_line, systems_of
from api.services.wording import NO_VALUE, counted, ends, interval, number, placement
from gen_eval.records import Status

if TYPE_CHECKING:
    from rich.console import Console

    from api.services.comparison import Against, Comparison
    from api.services.forecast import Forecast
    from api.services.results import RunResults

_SHOWN_PROBLEMS = 20


def print_summary(to: Console, results: RunResults) -> None:
    """One line a metric and protocol."""
    table = Table(title=f"{escape(results.model)}: run {results.run[:12]}", title_justify="left")
    for column in ("metric", "protocol"):
        table.add_column(column)
    for column in ("value", "95 % interval", "n of N", "videos", "gaps as 0", "without a value"):
        table.add_column(column, justify="right")
    for metric, protocols in results.aggregate.items():
        for protocol, one in protocols.items():
            main = one.main
            table.add_row(
                metric,
                protocol,
                number(main.value, main.unit),
                interval(main),
                f"{main.n} of {main.N}",
                f"{main.members.n} of {main.members.N}",
                number(main.mean_missing_as_zero, main.unit),
                ", ".join(f"{count} {reason}" for reason, count in one.reasons.items()) or NO_VALUE,
            )
    to.print(table)
    _print_totals(to, results)
    _print_caveats(to, results.aggregate)
    if (networks := results.manifest.get("networks")) and networks_ran(networks):
        to.print(f"networks ran on: {placement(networks['placement'])}")
    for used in not_for_commercial_use(networks_of(results.manifest)):
        to.print(f"licence: {used.title} ({used.terms})", markup=False, soft_wrap=True)
    for model in models_of(results.manifest):
        if model.restricted:
            to.print(f"licence: {model.role} {model.name} ({model.terms})", markup=False, soft_wrap=True)


def print_published(to: Console, results: Sequence[RunResults]) -> None:
    """Models and conditions by the columns that their benchmark prints, under the protocols that were asked for."""
    from api.services.reporting.published import blocks_of

    protocols = list(dict.fromkeys(str(run.manifest["protocol"]) for run in results))
    for block in blocks_of(results, protocols):
        table = Table(title=escape(block.caption), title_justify="left")
        domains = len(block.groups) > 1
        for column in ("model", *(["given"] if block.conditions else []), *(["domain"] if domains else [])):
            table.add_column(column)
        for head in block.heads:
            table.add_column(head, justify="right")
        for domain, lines in block.groups:
            for line, cells in lines:
                names = [line.model, *([line.condition or NO_VALUE] if block.conditions else [])]
                texts = [
                    NO_VALUE if cell is None else "\n".join(filter(None, (cell.value, cell.interval, cell.coverage)))
                    for cell in cells
                ]
                table.add_row(*map(Text, [*names, *([domain or "all"] if domains else []), *texts]))
            table.add_section()
        to.print(table)


def _print_totals(to: Console, results: RunResults) -> None:
    """One line a total and protocol: the mean of its parts, or what is missing of it."""
    if not results.totals:
        return
    table = Table(title="totals", title_justify="left")
    for column in ("total", "protocol"):
        table.add_column(column)
    for column in ("value", "95 % interval", "parts", "mean of those there"):
        table.add_column(column, justify="right")
    table.add_column("without")
    for name, protocols in results.totals.items():
        for protocol, total in protocols.items():
            table.add_row(
                name,
                protocol,
                number(total.value, total.unit),
                ends(total.lower, total.upper, total.unit),
                f"{total.n} of {total.N}",
                NO_VALUE if total.partial is None else number(total.partial.value, total.unit),
                ", ".join(total.missing) or NO_VALUE,
            )
    to.print(table)


def _print_caveats(to: Console, metrics: Iterable[str]) -> None:
    from api.services.facts import facts_of

    for metric in metrics:
        if caveat := facts_of(metric).caveat:
            to.print(f"{metric} ranks nothing alone: {caveat}", soft_wrap=True, markup=False)


def print_problems(to: Console, results: RunResults) -> None:
    """What failed, was skipped or was left out, each kind once with its advice."""
    kinds: dict[tuple[str, str, str], list[str]] = {}
    protocol = results.manifest["protocol"]
    for row in results.rows:
        if row.protocol == protocol and row.status in {Status.FAILED, Status.SKIPPED, Status.REFUSED}:
            where = f"{row.sample}, {row.member}" if row.status is not Status.SKIPPED else row.metric
            kind = (f"{row.status}: {row.reason}", where, str(row.detail.get("message", "")))
            kinds.setdefault(kind, []).append(row.metric)
    for (what, where, message), metrics in list(kinds.items())[:_SHOWN_PROBLEMS]:
        some = "" if where in metrics or set(metrics) == set(results.aggregate) else f"; {', '.join(metrics)}"
        to.print(f"{what} ({where}{some}): {message}", soft_wrap=True, markup=False)
    if len(kinds) > _SHOWN_PROBLEMS:
        to.print(f"… and {len(kinds) - _SHOWN_PROBLEMS} more; all are in the report")
    _print_flags(to, results)
    manifest = results.manifest
    _print_uneven(to, manifest)
    _print_left_out(to, manifest["unknown_videos"], manifest["not_asked_videos"], manifest["rejected"])


def _print_uneven(to: Console, manifest: Mapping[str, Any]) -> None:
    """Without --seeds nobody said how many videos a sample has; a sample with fewer than others is worth a word."""
    counts = {len(sample["members"]) for sample in manifest["samples"]}
    if manifest["seeds"] is None and len(counts) > 1 and "imported" not in manifest:
        to.print(f"samples have {min(counts)} to {max(counts)} videos; --seeds says which each of them should have")


def _print_flags(to: Console, results: RunResults) -> None:
    """What was unusual about videos that have a value: each flag with the number of videos that carry it."""
    flagged: dict[str, set[tuple[str, str]]] = {}
    for row in results.rows:
        for flag in row.flags:
            flagged.setdefault(str(flag), set()).add((row.sample, row.member))
    if flagged:
        counts = ", ".join(f"{flag} ({counted(len(videos), 'video')})" for flag, videos in sorted(flagged.items()))
        to.print(f"unusual: {counts}", soft_wrap=True, markup=False)


def _print_left_out(
    to: Console, unknown: Sequence[str], not_asked: Sequence[str], rejected: Iterable[Mapping[str, str]]
) -> None:
    _print_list(to, "belongs to no sample, not scored", unknown)
    _print_list(to, "not asked for, not scored", not_asked)
    for entry in rejected:
        to.print(f"not used: {entry['where']} ({entry['reason']}): {entry['message']}", soft_wrap=True, markup=False)


def _print_list(to: Console, what: str, files: Sequence[str]) -> None:
    if files:
        more = f" and {len(files) - 5} more" if len(files) > 5 else ""
        to.print(f"{what}: {', '.join(files[:5])}{more}", soft_wrap=True, markup=False)


def print_forecast(to: Console, expected: Forecast) -> None:
    """What a run would do."""
    table = Table(title="dry run: nothing was scored or written", title_justify="left")
    for column in ("metric", "protocols", "to be scored", "will have no value", "why"):
        table.add_column(column)
    for line in expected.metrics:
        why = "; ".join(f"{count} {reason}" for reason, count in line.without.items()) or "-"
        table.add_row(line.metric, ", ".join(line.protocols), str(line.videos), str(sum(line.without.values())), why)
    to.print(table)
    if expected.absent_weights:
        command = f"gen-eval weights fetch {' '.join(expected.absent_weights)}"
        to.print(f"weights that are not here: `{command}`", markup=False, soft_wrap=True)
    to.print(f"samples: {expected.samples} ({expected.settled} scored before), videos: {expected.videos}")
    _print_left_out(to, expected.unknown, expected.not_asked, expected.rejected)
    to.print(
        "files are not opened here: damaged videos show in the run (`gen-eval data verify` opens those of the data)"
    )
    if expected.seconds is None:
        to.print(
            "time: nothing to measure on" if expected.settled < expected.samples else "time: nothing is left to do"
        )
    else:
        processes = counted(expected.workers, "process", "processes")
        where = f" on {placement(expected.placement)}" if expected.placement else ""
        to.print(f"time: about {expected.seconds:.0f} s with {processes}{where} ({expected.basis})", markup=False)


def print_leaderboard(to: Console, runs: list[RunResults]) -> None:
    """Models side by side: a line a metric, under the protocol that was asked for."""
    models = list(dict.fromkeys(run.model for run in runs))
    table = Table(title="models side by side, corrected protocol (mean, n of N samples)", title_justify="left")
    table.add_column("metric")
    for model in models:
        table.add_column(escape(model), justify="right")
    cells: dict[str, dict[str, str]] = {}
    for run in runs:
        for metric, protocols in run.aggregate.items():
            main = protocols[run.manifest["protocol"]].main
            of = f"{main.n} of {main.N}"
            if main.members.n < main.members.N:
                of += f", {main.members.n} of {main.members.N} videos"
            cells.setdefault(metric, {})[run.model] = f"{number(main.value, main.unit)} ({of})"
    for metric, by_model in cells.items():
        table.add_row(metric, *(by_model.get(model, "-") for model in models))
    to.print(table)
    if by := judges_line(systems_of(runs)):
        to.print(by, markup=False, soft_wrap=True)
    _print_caveats(to, cells)


def print_comparison(to: Console, found: Comparison, other: Against) -> None:
    """What differs between two runs, then the differences of their scores."""
    to.print(f"{other.model} ({other.run[:12]}) against {found.model} ({found.run[:12]})", markup=False)
    for one in other.differences:
        expected = " (expected)" if one.expected else ""
        to.print(f"  differs: {one.text}{expected}", markup=False, soft_wrap=True)
    if not other.differences:
        to.print("  the manifests do not differ")
    table = Table()
    for column in ("metric", "protocol", found.label, other.label, "difference", "95 % interval", "n", "p", "verdict"):
        table.add_column(Text(column))
    for row in other.lines:
        table.add_row(*map(Text, row.cells()))
    if other.lines:
        to.print(table)
    for compared in other.lines:
        for line in compared.remarks():
            to.print(f"  {line}", markup=False, soft_wrap=True)
    for left in other.not_compared:
        to.print(f"  not compared: {left.metric} ({left.protocol}): {left.why}", markup=False, soft_wrap=True)
