"""From what was asked to what will be done: samples, groups, metrics, protocols, and the manifest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import gen_eval
from api.services.network_facts import network_section, runs_networks, used_by
from gen_eval.data import Benchmark, load_benchmark, match_videos
from gen_eval.data.naming import is_unicode
from gen_eval.features.clip_signals import CLIP_SIGNALS, given_file
from gen_eval.features.metric import Metric
from gen_eval.features.plan import Measurement, Plan, companions
from gen_eval.features.planner import SET_MEMBER
from gen_eval.media import sha256_file
from gen_eval.networks import placement_of
from gen_eval.protocols import Protocol, load_preset, load_protocol, protocol_names, published_table, totals_of
from gen_eval.records import Generation, Group, InputError, digest_of
from gen_eval.records.run import MANIFEST_FORMAT
from gen_eval.registry import load, names

Track = Literal["quality", "control"]
Key = tuple[str, str, str, str, str]

_PRESET_OF = {"quality": "all-frames", "control": "121-frames"}
_PACKAGES = ("av", "numpy", "opencv-python-headless", "scipy", "pycocotools")


@dataclass(frozen=True)
class ScoreRequest:
    """What is to be scored, and how. Only ``workers``, ``threads``, ``attempts`` and ``shard`` do not move a score.

    Attributes:
        track: ``quality`` or ``control``.
        videos: folder of the generated videos.
        data: benchmark folder or sample file; ``None`` when the videos are all there is.
        media: folder that the paths of a sample file are relative to.
        layout: take ``data`` as this layout.
        signals: folder with depth maps and segmentation of the generated clips.
        model: label; :func:`label_of` the folder by default.
        metrics: names; all of the track by default.
        protocol: the protocol that was asked for.
        preset: what the metrics are shown; the track's own by default.
        seeds: members that every sample is expected to have.
        domains: only samples of these.
        limit: only the first samples.
        chunk: frames of each member that are held at a time, and that a network is given at a time.
        device: where networks run: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
        dtype: number format of networks: ``float32``, ``bfloat16`` or ``float16``.
        compile: whether networks go through ``torch.compile``.
        condition: what the generator was given besides the prompt, one of the benchmark's ``conditions``; ``None`` when
            nobody said.
    """

    track: Track
    videos: Path
    data: Path | None = None
    media: Path | None = None
    layout: str | None = None
    signals: Path | None = None
    model: str | None = None
    metrics: tuple[str, ...] | None = None
    protocol: str = "corrected"
    preset: str | None = None
    seeds: tuple[str, ...] | None = None
    domains: tuple[str, ...] | None = None
    limit: int | None = None
    chunk: int = 8
    device: str = "auto"
    dtype: str = "float32"
    compile: bool = False
    condition: str | None = None


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


def signals_to_compute(groups: Iterable[Group]) -> frozenset[str]:
    """The signals of which some file that will be needed was not given."""
    found = set()
    for group in groups:
        present = [member for member in group.members if member.path is not None]
        for signal in CLIP_SIGNALS if present else ():
            given = [given_file(group.sample, signal), *(given_file(member, signal) for member in present)]
            if None in given:
                found.add(signal)
    return frozenset(found)


Progress = Callable[[str, int, int], None]
"""Called with a label, how many are done, and how many there are."""


def silent(_label: str, _done: int, _total: int) -> None:
    """Progress that nobody watches."""


def prepare(request: ScoreRequest, progress: Progress = silent) -> Prepared:
    """Find samples, videos, metrics and protocols, digest every file, and write the manifest down.

    Raises:
        InputError: something that was named does not exist or does not fit together.
    """
    _check(request)
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
    digests = _Digests(progress, total=sum(len(group.members) + 1 for group in matched.groups))
    entries = [_sample_entry(group, digests, request, benchmark.root) for group in matched.groups]
    groups = tuple(_with_digests(group, digests) for group in matched.groups)
    manifest = {
        "format": MANIFEST_FORMAT,
        "gen_eval": gen_eval.__version__,
        "track": request.track,
        "model": model,
        **condition_entry(request.track, request.condition),
        "layout": benchmark.layout,
        "metrics": _metric_entries(plan),
        "totals": {name: rule.to_json() for name, rule in totals_of(_metric_names(plan)).items()},
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
    return Prepared(benchmark, groups, plan, manifest)


def _check(request: ScoreRequest) -> None:
    """Refuse what would otherwise be taken for "everything" or "nothing", or could not be written down."""
    for name in ("metrics", "seeds", "domains"):
        if getattr(request, name) == ():
            raise InputError(f"--{name} names nothing; name at least one, or leave the option out")
        if twice := [one for one, count in Counter(getattr(request, name) or ()).items() if count > 1]:
            raise InputError(f"--{name} names {twice[0]} more than once; name each of them once")
    condition_entry(request.track, request.condition)
    texts = [request.model or label_of(request.videos), *(request.seeds or ()), *(request.domains or ())]
    if strange := [text for text in texts if not is_unicode(text)]:
        raise InputError(f"{strange[0]!a} is no UTF-8 text; give another name (--model labels the videos)")


def condition_entry(track: str, condition: str | None) -> dict[str, Any]:
    """What a manifest says of the condition; nothing where the benchmark has none.

    Raises:
        InputError: the benchmark has no such condition.

    Example:
        >>> condition_entry("control", "edge"), condition_entry("quality", None)
        ({'condition': 'edge'}, {})
    """
    table = published_table(track)
    known = () if table is None else table.conditions
    if condition is not None and condition not in known:
        expected = f"expected {', '.join(known)}" if known else f"the {track} track has none"
        raise InputError(f"unknown condition {condition!r}; {expected}")
    return {"condition": condition} if known else {}


def condition_hint(request: ScoreRequest) -> str:
    """What to say when a folder is called like a condition and nobody said one; empty otherwise. Nothing is guessed."""
    table, folder = published_table(request.track), request.videos.resolve()
    names = (folder.parent.name if folder.name == "videos" else "", folder.name)
    given = next((name for name in names if table is not None and name in table.conditions), None)
    if given is None or request.condition is not None:
        return ""
    labelled = "" if request.model is not None else " --model NAME"
    return f"if {given} is what the generator was given, say so: --condition {given}{labelled}; it is not recorded now"


def label_of(videos: Path) -> str:
    """Label of a model whose videos lie in ``videos``: the folder's name, or of the one above when that is ``videos``.

    Example:
        >>> label_of(Path("/data/my-model/videos")), label_of(Path("/data/my-model"))
        ('my-model', 'my-model')
    """
    folder = videos.resolve()
    return (folder.parent.name if folder.name == "videos" else "") or folder.name


def make_plan(request: ScoreRequest, *, computes: frozenset[str] = frozenset()) -> Plan:
    """Metrics of the request under the protocol that was asked for, and under those that come for nothing.

    Args:
        request: what is asked for.
        computes: signals that networks have to make.

    Raises:
        InputError: a metric, protocol, preset or device is not known.
    """
    chosen = [load_metric(name) for name in request.metrics] if request.metrics else track_metrics(request.track)
    for metric in chosen:
        if metric.track != request.track:
            raise InputError(f"{metric.name} belongs to `gen-eval score {metric.track}`, not to {request.track}")
    with_protocols = [(metric, _protocols_of(metric, request.protocol)) for metric in chosen]
    plan = Plan.of(with_protocols, load_preset(request.preset or _PRESET_OF[request.track]), request.chunk)
    plan = replace(plan, computes=computes & {metric.signal for metric in chosen})
    if not plan.networks and request.device in {"auto", "cpu"}:
        return plan
    # looking for a device takes seconds, as it imports torch: not where no network will run for want of weights
    device = request.device if request.device != "auto" or runs_networks(plan) else "cpu"
    return replace(plan, placement=placement_of(device, request.dtype, compile=request.compile))


def _protocols_of(metric: Metric, name: str) -> list[Protocol]:
    asked = load_protocol(metric.name, name)
    others = [load_protocol(metric.name, other) for other in protocol_names(metric.name) if other != name]
    return [asked, *companions(metric, others, asked)]


def asked_name(protocol: str) -> str:
    """The name of a protocol that was asked for by name or by path."""
    return Path(protocol).stem if Path(protocol).suffix in {".yaml", ".yml"} else protocol


def load_metric(name: str) -> Metric:
    """The metric ``name``.

    Raises:
        InputError: there is none, or what the entry point names is no metric.
    """
    metric = load("gen_eval.metrics", name)
    if not isinstance(metric, Metric):
        raise InputError(f"the entry point {name!r} must name a gen_eval.features.Metric, not {type(metric).__name__}")
    return metric


def track_metrics(track: str) -> list[Metric]:
    """All metrics of ``track``, by name."""
    return [metric for metric in map(load_metric, names("gen_eval.metrics")) if metric.track == track]


def environment() -> dict[str, str]:
    """Versions of everything outside this project that moves a score."""
    import av

    libavcodec = ".".join(str(part) for part in av.library_versions["libavcodec"])
    return {"libavcodec": libavcodec, **{package: version(package) for package in _PACKAGES}}


def _metric_names(plan: Plan) -> list[str]:
    return sorted({measurement.metric.name for measurement in plan.measurements})


def _metric_entries(plan: Plan) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    for measurement in plan.measurements:
        metric = measurement.metric
        entry = entries.setdefault(metric.name, {"version": metric.version, "protocols": {}, "members": {}})
        entry["protocols"].update({protocol.name: protocol.digest for protocol in measurement.protocols})
        rules = {protocol.name: protocol.aggregate.get("members", "sample_first") for protocol in measurement.protocols}
        entry["members"].update(rules)
        for protocol in measurement.protocols:
            if beside := protocol.aggregate.get("beside"):
                entry.setdefault("beside", {})[protocol.name] = list(beside)
            if clips := protocol.aggregate.get("caption_clips"):
                entry.setdefault("caption_clips", {})[protocol.name] = clips
    return entries


class _Digests:
    """SHA-256 of files, each read once, with progress."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0
        self._known: dict[Path, str | None] = {}

    def of(self, path: Path | None) -> str | None:
        """Digest of ``path``; ``None`` when there is no such file or it cannot be read."""
        if path is None:
            return None
        if path not in self._known:
            try:
                self._known[path] = sha256_file(path)
            except OSError:
                self._known[path] = None
        return self._known[path]

    def step(self) -> None:
        """One more file is done."""
        self._done += 1
        self._progress("reading files", min(self._done, self._total), self._total)


def _with_digests(group: Group, digests: _Digests) -> Group:
    members = (replace(member, sha256=digests.of(member.path)) for member in group.members)
    return replace(group, members=tuple(members))


def _sample_entry(group: Group, digests: _Digests, request: ScoreRequest, root: Path) -> dict[str, Any]:
    sample = group.sample
    entry = {
        "id": sample.id,
        "domain": sample.domain,
        "prompt": None if sample.prompt is None else digest_of(sample.prompt),
        **{name: _file_entry(getattr(sample, name), root, digests) for name in _sample_files(request.track)},
        "members": [_member_entry(member, request, digests) for member in group.members],
    }
    digests.step()
    return entry


def _sample_files(track: str) -> Sequence[str]:
    return ("reference", "depth", "masks") if track == "control" else ("condition_image",)


def _file_entry(path: Path | None, root: Path, digests: _Digests) -> dict[str, Any] | None:
    return None if path is None else {"path": _relative(path, root), "sha256": digests.of(path)}


def _member_entry(member: Generation, request: ScoreRequest, digests: _Digests) -> dict[str, Any]:
    digests.step()
    entry: dict[str, Any] = {
        "id": member.member,
        "path": None if member.path is None else member.path.name,
        "sha256": digests.of(member.path),
        "problem": member.problem,
    }
    if request.track == "control":
        entry |= {"depth": digests.of(member.depth), "masks": digests.of(member.masks)}
    return entry


def _relative(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
