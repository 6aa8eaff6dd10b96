"""The HTML page: what it says is gathered here, how it looks is in ``templates/``.

One file that asks nothing of the network: style, script, drawings and pictures stand in it, and its content security
policy forbids everything else. Templates escape all they are given; the only text that is not escaped is the style and
the script that belong to this package.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from api.services import wording
from api.services.answer_tables import AnswerTable, ReadAnswer, answer_tables, read_answers
from api.services.comparison import Comparison, compare
from api.services.network_facts import UsedNetwork, models_of, networks_of, networks_ran, not_for_commercial_use
from api.services.reporting.charts import HEIGHT, Histogram, IntervalChart
from api.services.reporting.fragments import Fragment
from api.services.reporting.limits import Limits
from api.services.reporting.problems import Problem, problems_of
from api.services.reporting.published import Block, blocks_of
from api.services.reporting.summary import (
    DomainTable,
    SummaryTable,
    domain_charts,
    domain_tables,
    histograms,
    leaderboard,
    protocol_charts,
    summary_table,
    system_charts,
)
from api.services.reporting.totals import TotalTable, run_totals, system_totals
from api.services.reporting.videos import VideoTable, video_table
from api.services.results import RunResults
from api.services.systems import protocols_of, systems_of
from gen_eval.records import Reason

if TYPE_CHECKING:
    from jinja2 import Environment

_FILES = 200


@dataclass(frozen=True)
class Listing:
    """Names that are listed, and how many more there are."""

    names: tuple[str, ...]
    more: int

    @classmethod
    def of(cls, names: Sequence[str]) -> Listing:
        """The first of ``names``."""
        return cls(tuple(names[:_FILES]), max(0, len(names) - _FILES))


@dataclass(frozen=True)
class RunView:
    """Everything that the page says about one run.

    Attributes:
        anchor: name of its section within the page.
        alike: whether another run of the page has the same model and track.
        facts: names and values of what was asked, for the collapsed block.
        rules: metric, protocol, version and digest.
        absent: rows that are not there yet.
    """

    anchor: str
    alike: bool
    model: str
    condition: str | None
    run: str
    track: str
    protocol: str
    samples: int
    statuses: tuple[tuple[str, int], ...]
    published: tuple[Block, ...]
    totals: tuple[TotalTable, ...]
    summary: SummaryTable
    charts: tuple[IntervalChart, ...]
    histograms: tuple[Histogram, ...]
    domains: tuple[DomainTable, ...]
    without_domain: int
    domain_charts: tuple[IntervalChart, ...]
    videos: VideoTable
    answers: tuple[AnswerTable, ...]
    replies: tuple[ReadAnswer, ...]
    more_replies: int
    problems: tuple[Problem, ...]
    unknown: Listing
    not_asked: Listing
    rejected: tuple[Mapping[str, Any], ...]
    absent: int
    absent_samples: str
    imported: tuple[str, ...]
    networks: tuple[UsedNetwork, ...]
    restricted: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    rules: tuple[tuple[str, str, str, str], ...]


def to_html(results: Sequence[RunResults], limits: Limits, people: Fragment | None = None) -> bytes:
    """The page for one or several runs, with what people say where that is given."""
    share = limits.shared(len(results))
    names = [_name(run) for run in results]
    views = [
        _run_view(f"run-{place}", run, share, results, alike=names.count(_name(run)) > 1)
        for place, run in enumerate(results, start=1)
    ]
    models = list(dict.fromkeys(run.model for run in results))
    style, script = asset("style.css"), asset("script.js")
    if people is not None:
        style += f"\n{people.style}"
    context = {
        "title": f"gen-eval: {wording.listed(models)}",
        "models": models,
        "runs": views,
        "boards": _boards(results) if len(results) > 1 else (),
        "comparisons": _comparisons(results) if len(results) > 1 else (),
        "people": () if people is None else people.sections,
        "style": style,
        "script": script,
        "policy": (
            f"default-src 'none'; img-src data:; style-src {content_hash(style)}; script-src {content_hash(script)}"
        ),
    }
    return environment().get_template("page.html.j2").render(context).encode()


def _name(run: RunResults) -> tuple[str, str, str]:
    return run.model, str(run.manifest["track"]), run.condition or ""


def _run_view(anchor: str, run: RunResults, limits: Limits, every: Sequence[RunResults], *, alike: bool) -> RunView:
    manifest = run.manifest
    counts: dict[str, int] = {}
    for row in run.rows:
        counts[str(row.status)] = counts.get(str(row.status), 0) + 1
    replies, more = read_answers(run)
    return RunView(
        anchor=anchor,
        alike=alike,
        model=run.model,
        condition=run.condition,
        run=run.run,
        track=str(manifest["track"]),
        protocol=str(manifest["protocol"]),
        samples=len(manifest["samples"]),
        statuses=tuple(sorted(counts.items())),
        published=blocks_of([run]),
        totals=run_totals(run),
        summary=summary_table(run),
        charts=protocol_charts(run),
        histograms=histograms(run),
        domains=domain_tables(run),
        without_domain=sum(domain is None for domain in run.domains.values()),
        domain_charts=domain_charts(run),
        videos=video_table(run, limits),
        answers=answer_tables(run, every),
        replies=replies,
        more_replies=more,
        problems=problems_of(run),
        unknown=Listing.of(manifest["unknown_videos"]),
        not_asked=Listing.of(manifest["not_asked_videos"]),
        rejected=tuple(manifest["rejected"]),
        absent=len(run.absent),
        absent_samples=wording.listed(list(dict.fromkeys(key[1] for key in run.absent))),
        imported=tuple(_imported(run)),
        networks=networks_of(manifest),
        restricted=(
            *(f"{one.title} ({one.terms})" for one in not_for_commercial_use(networks_of(manifest))),
            *(f"{one.role} {one.name} ({one.terms})" for one in models_of(manifest) if one.restricted),
        ),
        facts=tuple(_facts(run)),
        rules=tuple(_rules(manifest)),
    )


def _facts(run: RunResults) -> Sequence[tuple[str, str]]:
    manifest = run.manifest
    members = sum(len(sample["members"]) for sample in manifest["samples"])
    facts = [
        ("run", run.run),
        ("model", run.model),
        ("track", str(manifest["track"])),
        *([("given to the generator", run.condition or "not said")] if "condition" in manifest else []),
        ("gen-eval", str(manifest["gen_eval"])),
        ("layout of the data", str(manifest["layout"])),
        ("samples", f"{len(manifest['samples']):,}"),
        ("videos expected", f"{members:,}"),
        ("protocol asked for", str(manifest["protocol"])),
        ("preset", _preset(manifest["preset"])),
        ("seeds asked for", _names(manifest["seeds"], "those that are there")),
        ("domains asked for", _names(manifest["domains"], "all")),
        ("limit", "none" if manifest["limit"] is None else f"the first {wording.counted(manifest['limit'], 'sample')}"),
        *([] if "judge" in manifest else [("frames held at a time", str(manifest["chunk"] or "not known"))]),
        *_judge(manifest),
    ]
    versions = sorted((str(name), str(value)) for name, value in manifest["environment"].items())
    return [*facts, *_networks(manifest), *versions]


def _preset(preset: Mapping[str, Any]) -> str:
    """Name of what was shown, and what it is as far as it is said in a word."""
    if "digest" in preset:
        return str(preset["name"])
    limit = preset.get("limit")
    return f"{preset['name']}: {'all frames' if limit is None else 'the first ' + wording.counted(limit, 'frame')}"


def _judge(manifest: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    """Who answered, and everything that moves its answers."""
    judge = manifest.get("judge")
    if not judge:
        return []
    if "identity" not in judge:
        return [("judge", f"{judge['title']} ({judge['replies']['path']})")]
    identity, prompt = judge["identity"], judge["prompt"]
    options = ", ".join(f"{name} {value}" for name, value in sorted(judge["options"].items()))
    return [
        ("judge", str(judge["title"])),
        ("judging model", f"{identity['model']}, revision {identity['revision'] or 'not known'}"),
        ("engine", " ".join(filter(None, (identity["engine"], identity["version"])))),
        ("prompt", f"{prompt['name']}, version {prompt['version']}"),
        ("decoding", options),
        *[(f"licence of the {one.role}", one.terms) for one in models_of(manifest)],
        ("context", "the model's own" if judge["context"] is None else f"{judge['context']:,} tokens"),
    ]


def _networks(manifest: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    """Where and how exactly networks ran, and the packages that ran them."""
    section = manifest.get("networks")
    if not section:
        return []
    packages = sorted((name, str(found or "not installed")) for name, found in section["packages"].items())
    where = [("networks ran on", wording.placement(section["placement"]))] if networks_ran(section) else []
    return [*where, *packages]


def _imported(run: RunResults) -> Iterator[str]:
    """What to know of scores that were not made here."""
    if not run.imported:
        return
    origin = run.manifest["imported"]
    files = wording.listed([str(file["path"]) for file in origin["files"]])
    yield f"Imported from {files}: weights, number format, packages and the bytes of the videos are not known."
    for name, check in origin["checks"].items():
        if not check["agrees"]:
            yield f"Total of {name}: {check['note']}."
    if origin["left_out"]:
        yield f"Dimensions of the file that are no metrics here: {wording.listed(origin['left_out'], 20)}."


def _names(names: Sequence[str] | None, otherwise: str) -> str:
    return otherwise if names is None else ", ".join(map(str, names))


def _rules(manifest: Mapping[str, Any]) -> Sequence[tuple[str, str, str, str]]:
    return [
        (metric, protocol, str(entry["version"]), digest)
        for metric, entry in sorted(manifest["metrics"].items())
        for protocol, digest in sorted(entry["protocols"].items())
    ]


@dataclass(frozen=True)
class Board:
    """Systems side by side under one protocol."""

    protocol: str
    published: tuple[Block, ...]
    totals: tuple[TotalTable, ...]
    table: SummaryTable
    charts: tuple[IntervalChart, ...]


def _boards(results: Sequence[RunResults]) -> tuple[Board, ...]:
    systems = systems_of(results)
    return tuple(
        Board(
            protocol,
            blocks_of(results, [protocol]),
            system_totals(systems, protocol),
            leaderboard(systems, protocol),
            system_charts(systems, protocol),
        )
        for protocol in protocols_of(results)
    )


def _comparisons(results: Sequence[RunResults]) -> tuple[Comparison, ...]:
    """Each run against the first one that has a metric in common with it."""
    others: dict[int, list[RunResults]] = {}
    for place, run in enumerate(results):
        for first in range(place):
            if results[first].manifest["metrics"].keys() & run.manifest["metrics"].keys():
                others.setdefault(first, []).append(run)
                break
    return tuple(compare(results[first], *found) for first, found in others.items())


def content_hash(text: str) -> str:
    """How a content security policy names the one style or script that it allows."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@lru_cache(maxsize=1)
def environment() -> Environment:
    """The templates of the reports; they escape all they are given."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("api.services.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.globals.update(
        HEIGHT=HEIGHT,
        counted=wording.counted,
        difference=wording.difference,
        number=wording.number,
        span=wording.span,
        status_of=lambda name: Reason(name).status,
    )
    return made


def asset(name: str) -> str:
    """A style or script of this package."""
    loader = environment().loader
    assert loader is not None
    return loader.get_source(environment(), name)[0].strip()
