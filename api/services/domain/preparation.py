"""From what was asked to what will be done: samples, videos, questions, protocols, and the manifest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import gen_eval
from api.services.domain.request import DomainRequest, check_request
from api.services.manifest_entries import Digests, Progress, environment, silent, with_digests
from api.services.planning import asked_name
from gen_eval.data import Benchmark, Rejected, load_benchmark, match_videos
from gen_eval.data.benchmark import domain_of_id
from gen_eval.data.matching import Matched
from gen_eval.protocols import Protocol, load_protocol, protocol_names, totals_of
from gen_eval.records import Generation, Group, InputError, Sample, digest_of
from gen_eval.records.run import MANIFEST_FORMAT
from judge.domain import METRIC, USUAL_SEEDS
from judge.questions import JudgeQuestion, Questions, load_questions

TRACK = "domain"


@dataclass(frozen=True)
class Prepared:
    """Everything that a run needs but the judge.

    Attributes:
        request: what was asked.
        benchmark: the samples that take part: those with a question.
        groups: one a sample, with the digests of all videos.
        questions: of each sample.
        protocols: the one that was asked for first.
        matched: which files took no part.
        rejected: lines and files that cannot be used, and samples without a question.
        entries: what the manifest says of the samples.
        repeated: sample and new uid of every question whose own uid came before.
        keyless: samples with a question whose key is none of its options.
    """

    request: DomainRequest
    benchmark: Benchmark
    groups: tuple[Group, ...]
    questions: Mapping[str, tuple[JudgeQuestion, ...]]
    protocols: tuple[Protocol, ...]
    matched: Matched
    rejected: tuple[Rejected, ...]
    entries: tuple[Mapping[str, Any], ...]
    repeated: tuple[tuple[str, str], ...] = ()
    keyless: frozenset[str] = frozenset()

    def manifest(self, judge: Mapping[str, Any], preset: Mapping[str, Any]) -> dict[str, Any]:
        """What was asked; its digest is the run's id.

        Args:
            judge: who answers and what it is asked, or which stored replies are scored.
            preset: what it is shown.
        """
        return {
            "format": MANIFEST_FORMAT,
            "gen_eval": gen_eval.__version__,
            "track": TRACK,
            "model": self.request.label,
            "layout": self.benchmark.layout,
            "metrics": {METRIC.name: self._metric_entry()},
            "totals": {name: rule.to_json() for name, rule in totals_of([METRIC.name]).items()},
            "protocol": asked_name(self.request.protocol),
            "preset": dict(preset),
            "chunk": None,
            "environment": environment(),
            "networks": None,
            "judge": dict(judge),
            "conditions": sorted(self.request.conditions),
            "seeds": None if self.request.seeds is None else sorted(self.request.seeds),
            "domains": None if self.request.domains is None else sorted(self.request.domains),
            "limit": self.request.limit,
            "samples": [dict(entry) for entry in self.entries],
            "repeated_uids": [list(one) for one in self.repeated],
            "unknown_videos": list(self.matched.unknown),
            "not_asked_videos": list(self.matched.not_asked),
            "rejected": [{"where": one.where, "reason": one.reason, "message": one.message} for one in self.rejected],
        }

    def _metric_entry(self) -> dict[str, Any]:
        return {
            "version": METRIC.version,
            "protocols": {one.name: one.digest for one in self.protocols},
            "members": {one.name: one.aggregate.get("members", "sample_first") for one in self.protocols},
            # the aggregations are made again from the rows, by the rules of the day on which it was asked
            "rules": {one.name: dict(one.decide) for one in self.protocols},
        }


class Data(NamedTuple):
    """The samples of a benchmark, with and without questions, and the questions about them."""

    benchmark: Benchmark
    questions: Questions


def read_data(request: DomainRequest) -> Data:
    """Samples and questions, before any video or reply is looked at.

    Raises:
        InputError: the request contradicts itself, or its data cannot be used.
    """
    check_request(request)
    whole = _benchmark(request)
    found = load_questions(request.questions or request.data, known=None if whole is None else tuple(whole.by_id))
    return Data(_of_questions(request.data, found.by_sample) if whole is None else whole, found)


def prepare(
    request: DomainRequest,
    predicted: Iterable[tuple[str, str]] = (),
    progress: Progress = silent,
    *,
    data: Data | None = None,
) -> Prepared:
    """Find samples, videos and questions, and digest every video.

    Args:
        request: what is asked.
        predicted: sample and member of every stored reply; they stand for videos where no folder is given.
        progress: told how far the digests are.
        data: what :func:`read_data` gave, where it was asked before.

    Raises:
        InputError: something that was named does not exist or does not fit together.
    """
    whole, found = read_data(request) if data is None else data
    asked = load_protocol(METRIC.name, request.protocol)
    others = [load_protocol(METRIC.name, name) for name in protocol_names(METRIC.name) if name != request.protocol]
    with_truth = tuple(sample for sample in whole.samples if found.by_sample.get(sample.id))
    if not with_truth:
        first = f": {found.rejected[0].where}: {found.rejected[0].message}" if found.rejected else ""
        raise InputError(f"{request.questions or request.data} holds no question for any sample{first}")
    benchmark = replace(whole, samples=with_truth).restricted(domains=request.domains, limit=request.limit)
    matched = _matched(request, benchmark, whole, predicted)
    digests = Digests(progress, total=sum(len(group.members) for group in matched.groups))
    groups = tuple(with_digests(group, digests) for group in matched.groups)
    entries = tuple(_entry(group, found.by_sample[group.sample.id], digests) for group in groups)
    rejected = (*whole.rejected, *found.rejected)  # samples without a question are among the latter
    return Prepared(
        request,
        benchmark,
        groups,
        found.by_sample,
        (asked, *others),
        matched,
        rejected,
        entries,
        found.repeated,
        frozenset(found.keyless),
    )


def _benchmark(request: DomainRequest) -> Benchmark | None:
    """The samples in ``data``; ``None`` when it is a file of judge questions, which name their samples themselves."""
    if request.layout is None and request.questions is None and _holds_questions(request.data):
        return None
    videos = request.videos or request.data
    return load_benchmark(request.data, videos=videos, track="quality", layout=request.layout, media=request.media)


def _holds_questions(data: Path) -> bool:
    """Whether ``data`` is a file of judge questions: its first record has a uid."""
    if not data.is_file() or not data.name.endswith((".jsonl", ".jsonl.gz")):
        return False
    from judge.questions import is_question_file

    return is_question_file(data)


def _of_questions(data: Path, by_sample: Mapping[str, Sequence[JudgeQuestion]]) -> Benchmark:
    samples = tuple(Sample(id=name, domain=domain_of_id(name)) for name in sorted(by_sample))
    return Benchmark("judge-questions", data.parent, samples)


def _matched(
    request: DomainRequest, benchmark: Benchmark, whole: Benchmark, predicted: Iterable[tuple[str, str]]
) -> Matched:
    if request.videos is not None:
        usual = USUAL_SEEDS
        return match_videos(
            benchmark,
            request.videos,
            model=request.label,
            track="quality",
            seeds=request.seeds,
            known_ids=whole.by_id,
            usual=usual,
        )
    return _of_replies(benchmark, request, predicted)


def _of_replies(benchmark: Benchmark, request: DomainRequest, predicted: Iterable[tuple[str, str]]) -> Matched:
    """The generations that replies speak of, where no folder of videos is at hand."""
    taken = set(request.seeds or USUAL_SEEDS)
    members: dict[str, set[str]] = {}
    left: set[str] = set()
    for name, member in predicted:
        if member in taken:
            members.setdefault(name, set()).add(member)
        else:
            left.add(f"{name}__{member}")
    groups = []
    for sample in benchmark.samples:
        there = sorted({*members.get(sample.id, ()), *(request.seeds or ())})
        found = [Generation(sample.id, member, None) for member in there or ["0"]]  # without a line: a missing reply
        groups.append(Group(request.label, sample, tuple(found)))
    return Matched(tuple(groups), (), tuple(sorted(left)))


def _entry(group: Group, questions: Sequence[JudgeQuestion], digests: Digests) -> dict[str, Any]:
    members = []
    for member in group.members:
        digests.step()
        members.append(
            {
                "id": member.member,
                "path": None if member.path is None else member.path.name,
                "sha256": member.sha256,
                "problem": member.problem,
            }
        )
    return {
        "id": group.sample.id,
        "domain": group.sample.domain,
        "prompt": None if group.sample.prompt is None else digest_of(group.sample.prompt),
        "condition_image": None,
        "questions": digest_of([one.identity() for one in questions]),
        "members": members,
    }


__all__ = ["TRACK", "Prepared", "prepare"]
