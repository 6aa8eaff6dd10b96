"""From what was asked to what will be done: samples, groups, metrics, protocols, and the manifest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import gen_eval
from api.services.manifest_entries import (
    Digests,
    Progress,
    environment,
    metric_entries,
    metric_names,
    sample_entry,
    silent,
    with_digests,
)
from api.services.network_facts import network_section, used_by
from api.services.planning import asked_name, make_plan, signals_to_compute
from api.services.request import ScoreRequest, check_request, condition_entry, label_of
from gen_eval.data import Benchmark, load_benchmark, match_videos
from gen_eval.data.matching import Matched
from gen_eval.features.plan import Measurement, Plan
from gen_eval.features.planner import SET_MEMBER
from gen_eval.protocols import Protocol, totals_of
from gen_eval.records import Group, InputError, digest_of
from gen_eval.records.run import MANIFEST_FORMAT

Key = tuple[str, str, str, str, str]


@dataclass(frozen=True)
class Prepared:
    """Everything that a run needs, before anything is decoded.

    Attributes:
        benchmark: the samples that take part.
        groups: one a sample, with the digests of all files.
        plan: measurements of every group.
        manifest: what was asked; its digest is the run's id.
    """

    benchmark: Benchmark
    groups: tuple[Group, ...]
    plan: Plan
    manifest: Mapping[str, Any]

    @cached_property
    def _sample_entries(self) -> dict[str, Mapping[str, Any]]:
        return {entry["id"]: entry for entry in self.manifest["samples"]}

    @cached_property
    def _common(self) -> dict[str, Any]:
        return {name: self.manifest[name] for name in ("preset", "environment", "chunk")}

    def expected(self, group: Group) -> Iterable[tuple[Key, Measurement, Protocol]]:
        """Every row that ``group`` will have, in no particular order."""
        for measurement in self.plan.measurements:
            members = [SET_MEMBER] if measurement.metric.inputs == "set" else [one.member for one in group.members]
            for protocol in measurement.protocols:
                for member in members:
                    key = (group.model, group.sample.id, member, measurement.metric.name, protocol.name)
                    yield key, measurement, protocol

    def inputs_digest(self, key: Key, measurement: Measurement, protocol: Protocol) -> str:
        """Digest of all that the row ``key`` is computed from: files, parameters, metric version, environment."""
        entry = self._sample_entries[key[1]]
        members = entry["members"]
        metric = measurement.metric
        used: dict[str, Any] = {
            "metric": metric.name,
            "version": metric.version,
            "parameters": protocol.digest,
            "members": members if metric.inputs == "set" else [one for one in members if one["id"] == key[2]],
            **self._common,
        }
        if metric.inputs == "pair" or metric.rates_reference:
            used["reference"] = [entry.get(name) for name in ("reference", "depth", "masks")]
        else:
            used["prompt"] = entry["prompt"]
        if metric.uses_masks(measurement.measure):
            used["masks"] = entry.get("masks")
        signal = metric.clip_signal(measurement.measure)
        if signal is not None and signal.uses_prompt:
            used["prompt"] = entry["prompt"]
        if (networks := self.networks_of(key, measurement)) is not None:
            used["networks"] = networks
        if metric.uses_condition_image:
            used["condition_image"] = entry.get("condition_image")
        return digest_of(used)

    def networks_of(self, key: Key, measurement: Measurement) -> dict[str, Any] | None:
        """The part of the manifest's ``networks`` that the row ``key`` depends on; ``None`` when that is nothing.

        A row whose depth maps or masks were all given as files owes nothing to the networks that make them.
        """
        section = self.manifest["networks"]
        signal = measurement.metric.signal
        made = signal in self.plan.computes and _lacks(self._sample_entries[key[1]], key[2], signal)
        return used_by(measurement, section, signal=made)


def _lacks(entry: Mapping[str, Any], member: str, signal: str) -> bool:
    """Whether the ``signal`` of the sample's reference or of its ``member`` was not given."""
    return entry.get(signal) is None or any(one[signal] is None for one in entry["members"] if one["id"] == member)


def prepare(request: ScoreRequest, progress: Progress = silent) -> Prepared:
    """Find samples, videos, metrics and protocols, digest every file, and write the manifest down.

    Raises:
        InputError: something that was named does not exist or does not fit together.
    """
    check_request(request)
    whole = load_benchmark(
        request.data, videos=request.videos, track=request.track, layout=request.layout, media=request.media
    )
    benchmark = whole.restricted(domains=request.domains, limit=request.limit)
    if not benchmark.samples:
        below = request.videos / "videos"
        hint = f"; did you mean {below}?" if below.is_dir() else ""
        raise InputError(
            f"there is nothing to score: {request.data or request.videos} holds no sample and no video{hint}"
        )
    model = request.model or label_of(request.videos)
    matched = match_videos(
        benchmark,
        request.videos,
        model=model,
        track=request.track,
        seeds=request.seeds,
        signals=request.signals,
        known_ids=whole.by_id,
    )
    plan = make_plan(request, computes=signals_to_compute(matched.groups))
    digests = Digests(progress, total=sum(len(group.members) + 1 for group in matched.groups))
    entries = [sample_entry(group, digests, request, benchmark.root) for group in matched.groups]
    groups = tuple(with_digests(group, digests) for group in matched.groups)
    manifest = _manifest(request, benchmark, matched, plan, entries)
    return Prepared(benchmark, groups, plan, manifest)


def _manifest(
    request: ScoreRequest, benchmark: Benchmark, matched: Matched, plan: Plan, entries: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "format": MANIFEST_FORMAT,
        "gen_eval": gen_eval.__version__,
        "track": request.track,
        "model": request.model or label_of(request.videos),
        **condition_entry(request.track, request.condition),
        "layout": benchmark.layout,
        "metrics": metric_entries(plan),
        "totals": {name: rule.to_json() for name, rule in totals_of(metric_names(plan)).items()},
        "protocol": asked_name(request.protocol),
        "preset": {"name": plan.preset.name, "limit": plan.preset.limit},
        "chunk": plan.chunk,
        "environment": environment(),
        "networks": network_section(plan),
        "seeds": None if request.seeds is None else sorted(request.seeds),
        "domains": None if request.domains is None else sorted(request.domains),
        "limit": request.limit,
        "samples": entries,
        "unknown_videos": list(matched.unknown),
        "not_asked_videos": list(matched.not_asked),
        "rejected": [{"where": one.where, "reason": one.reason, "message": one.message} for one in benchmark.rejected],
    }
