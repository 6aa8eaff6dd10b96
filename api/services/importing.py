"""Scores that another program wrote become a run: reports and comparisons then work with them.

Such a run says in its manifest where it comes from. What a result file does not hold (weights, packages, the videos'
own bytes) is recorded as not known and never guessed; the file's totals are kept and checked against its records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import gen_eval
from api.services.facts import facts_of
from api.services.request import condition_entry
from api.services.results import RunResults
from gen_eval.data import Benchmark, load_benchmark
from gen_eval.data.benchmark import domain_of_id
from gen_eval.data.control_results import read_results
from gen_eval.data.layouts import bare_member
from gen_eval.data.naming import is_unicode
from gen_eval.data.result_files import (
    DIMENSIONS,
    ResultFile,
    VideoRecord,
    WrittenDimension,
    is_numbered,
    label_of_file,
    place_of,
)
from gen_eval.features.planner import SET_MEMBER
from gen_eval.media import sha256_file
from gen_eval.protocols import Protocol, load_preset, load_protocol, totals_of
from gen_eval.records import InputError, Reason, Sample, Score, Status, digest_of
from gen_eval.records.run import MANIFEST_FORMAT, RunFolder

PROTOCOL = "reference"
"""What the public code does: such files were written by it."""

_PRESETS = {"quality": "all-frames", "control": "121-frames"}
_LAYOUT = "results-file"
_EXPECTED_MEMBER = "0"

Place = tuple[str, str]
"""Sample and member."""


@dataclass(frozen=True)
class _Given:
    """A dimension with the file that it comes from, and its records by video."""

    dimension: WrittenDimension
    file: ResultFile
    records: Mapping[Place, Sequence[VideoRecord]]


def import_results(
    files: Sequence[Path],
    out: Path,
    *,
    model: str | None = None,
    data: Path | None = None,
    layout: str | None = None,
    metrics: Sequence[str] | None = None,
    condition: str | None = None,
    protocol: str = PROTOCOL,
    store: str | None = None,
) -> RunResults:
    """Write the run folder ``out`` from result files of VBench or PAI-Bench.

    Args:
        files: one with all dimensions, or several with some each; all of one track.
        out: made when absent, continued when it holds the same run.
        model: label; the name of the first file by default.
        data: benchmark that the videos were made for: its ids decide which video belongs to which sample, and samples
            without a record are counted.
        layout: take ``data`` as this layout.
        metrics: only these dimensions.
        condition: what the generator was given besides the prompt (control).
        protocol: ``reference``, or ``reference-v2`` when the newer public code wrote the files (control).
        store: database URL for the rows.

    Raises:
        InputError: a file cannot be read or is malformed, a dimension stands in two of them, they belong to different
            tracks, or nothing is left.
    """
    read = [read_results(path) for path in files]
    track = _track(read)
    label = model or label_of_file(files[0])
    if not is_unicode(label):
        raise InputError(f"{label!a} is no UTF-8 text; give another name with --model")
    chosen = _chosen(read, metrics)
    benchmark = None if data is None else load_benchmark(data, videos=data, track=track, layout=layout)
    names = [record.video for dimension, _ in chosen for record in dimension.records]
    naming = _Naming(
        None if benchmark is None else benchmark.by_id, track == "quality" and is_numbered(names), bare_member(track)
    )
    given = [_Given(dimension, file, _by_place(dimension, naming)) for dimension, file in chosen]
    protocols = {one.dimension.name: _protocol(one.dimension.name, protocol) for one in given}
    digests = {file.path: sha256_file(file.path) for file in read}
    samples = _samples(given, benchmark, naming, track)
    manifest = {
        **_head(label, track, protocol, protocols, given),
        **condition_entry(track, condition),
        "samples": [_sample_entry(sample, members, benchmark, track) for sample, members in samples],
        "unknown_videos": sorted(naming.unknown),
        "rejected": [
            {"where": one.where, "reason": one.reason, "message": one.message}
            for one in (() if benchmark is None else benchmark.rejected)
        ],
        "imported": _origin(read, given, digests),
    }
    with RunFolder.create(out, manifest, store=store) as run, run.locked():
        for one in given:
            run.write(_rows(label, one, samples, protocols[one.dimension.name], digests[one.file.path]))
        run.log("import", files=[str(path) for path in files])
        return RunResults(run.id, run.manifest, run.rows(), path=out)


def _chosen(files: Sequence[ResultFile], metrics: Sequence[str] | None) -> list[tuple[WrittenDimension, ResultFile]]:
    found: dict[str, tuple[WrittenDimension, ResultFile]] = {}
    for file in files:
        for dimension in file.dimensions:
            if dimension.name in found:
                raise InputError(
                    f"{dimension.name} stands in {found[dimension.name][1].path} and in {file.path}; import them apart"
                )
            found[dimension.name] = dimension, file
    if metrics is not None and (absent := [name for name in metrics if name not in found]):
        raise InputError(
            f"no file holds {', '.join(absent)}; they hold {', '.join(found) or 'no dimension known here'}"
        )
    kept = [pair for name, pair in found.items() if metrics is None or name in metrics]
    if not any(dimension.records for dimension, _ in kept):
        others = [name for file in files for name in file.left_out]
        raise InputError(
            f"{files[0].path} holds no record of a dimension known here"
            + (f"; it has {', '.join(others)}" if others else "")
        )
    return kept


def _track(files: Sequence[ResultFile]) -> Literal["quality", "control"]:
    found = {file.track: file.path for file in files}
    if len(found) > 1:
        sides = " and ".join(f"{path} to {track}" for track, path in sorted(found.items()))
        raise InputError(f"the files belong to different tracks ({sides}); import them into a run each")
    return next(iter(found))


def _protocol(metric: str, name: str) -> Protocol:
    if name not in {PROTOCOL, "reference-v2"}:
        raise InputError(f"such files follow reference or reference-v2, not {name!r}; leave --protocol out if unsure")
    return load_protocol(metric, name)


@dataclass
class _Naming:
    """How names of videos are read.

    Attributes:
        ids: known samples; ``None`` when any name is taken.
        numbered: whether VBench's ``prompt-index`` is understood.
        bare: member of a video that is named by the id alone.
        unknown: names that belong to no sample, as they come up.
    """

    ids: Mapping[str, Sample] | None
    numbered: bool
    bare: str
    unknown: set[str] = field(default_factory=set)

    def place(self, name: str) -> Place | None:
        """Sample and member of the video ``name``."""
        return place_of(name, self.ids, numbered=self.numbered, bare_member=self.bare)


def _by_place(dimension: WrittenDimension, naming: _Naming) -> dict[Place, list[VideoRecord]]:
    """The records by sample and member; names that belong to no sample are remembered as unknown."""
    found: dict[Place, list[VideoRecord]] = defaultdict(list)
    for record in dimension.records:
        place = naming.place(record.video)
        if place is None:
            naming.unknown.add(record.video)
        else:
            found[(place[0], SET_MEMBER) if dimension.by_task else place].append(record)
    return found


Samples = list[tuple[Sample, list[tuple[str, str | None]]]]
"""Sample and its members with their file names."""


def _samples(given: Sequence[_Given], benchmark: Benchmark | None, naming: _Naming, track: str) -> Samples:
    """Every sample that is expected: those of the benchmark, or those that a record names."""
    files: dict[str, dict[str, str]] = defaultdict(dict)
    prompts: dict[str, str] = {}
    for one in given:
        for (sample, member), records in one.records.items():
            videos = records[0].clips if one.dimension.by_task else (records[0].video,)
            own = files[sample]
            for video in videos:
                place = naming.place(video) if one.dimension.by_task else (sample, member)
                if place is not None and place[0] == sample:
                    own.setdefault(place[1], video)
            if (prompt := one.file.prompts.get(records[0].video)) is not None:
                prompts.setdefault(sample, prompt)
    known: Mapping[str, Sample] = (
        {
            name: Sample(id=name, domain=domain_of_id(name) if track == "quality" else None, prompt=prompts.get(name))
            for name in files
        }
        if benchmark is None
        else benchmark.by_id
    )
    expected: list[tuple[str, str | None]] = [(_EXPECTED_MEMBER, None)]
    return [(known[name], sorted(files.get(name, {}).items()) or expected) for name in sorted(known)]


def _head(
    label: str, track: str, asked: str, protocols: Mapping[str, Protocol], given: Sequence[_Given]
) -> dict[str, Any]:
    """The part of the manifest that does not depend on single videos; ``None`` is what the files do not say."""
    metrics = {
        one.dimension.name: {
            "version": facts_of(one.dimension.name).version,
            "protocols": {asked: protocols[one.dimension.name].digest},
            "members": {asked: _rule(one, protocols[one.dimension.name])},
            "beside": {asked: list(protocols[one.dimension.name].aggregate.get("beside", []))},
        }
        for one in given
    }
    preset = load_preset(_PRESETS[track])
    return {
        "format": MANIFEST_FORMAT,
        "gen_eval": gen_eval.__version__,
        "track": track,
        "model": label,
        "layout": _LAYOUT,
        "metrics": metrics,
        "totals": {name: rule.to_json() for name, rule in totals_of(metrics).items()},
        "protocol": asked,
        "preset": {"name": preset.name, "limit": preset.limit},
        "chunk": None,
        "environment": {},
        "networks": None,
        "seeds": None,
        "domains": None,
        "limit": None,
        "not_asked_videos": [],
    }


def _rule(one: _Given, protocol: Protocol) -> str:
    """The protocol's rule; without the numbers of frames nothing can be weighted by them."""
    rule = str(protocol.aggregate.get("members", "pooled"))
    counted = all(record.count is not None for record in one.dimension.records)
    return "pooled" if rule == "frame_weighted" and not counted else rule


def _origin(files: Sequence[ResultFile], given: Sequence[_Given], digests: Mapping[Path, str]) -> dict[str, Any]:
    checks = {one.dimension.name: one.dimension.check for one in given}
    for one in given:
        checks |= {f"{one.dimension.name}, {name}": check for name, check in one.dimension.further.items()}
    return {
        "format": files[0].format,
        "files": [{"path": file.path.name, "sha256": digests[file.path]} for file in files],
        "checks": {name: check.to_json() for name, check in checks.items()},
        "left_out": sorted({name for file in files for name in file.left_out}),
    }


def _sample_entry(
    sample: Sample, members: Sequence[tuple[str, str | None]], benchmark: Benchmark | None, track: str
) -> dict[str, Any]:
    names = ("condition_image",) if track == "quality" else ("reference", "depth", "masks")
    files = {name: getattr(sample, name) for name in names}
    return {
        "id": sample.id,
        "domain": sample.domain,
        "prompt": None if sample.prompt is None else digest_of(sample.prompt),
        **{
            name: None if path is None or benchmark is None else _file_entry(path, benchmark.root)
            for name, path in files.items()
        },
        "members": [{"id": member, "path": path, "sha256": None, "problem": None} for member, path in members],
    }


def _file_entry(path: Path, root: Path) -> dict[str, Any] | None:
    """A file of the benchmark, as a run of one's own would record it."""
    try:
        digest = sha256_file(path)
    except OSError:
        return None
    return {"path": path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name, "sha256": digest}


# --- rows ----------------------------------------------------------------------------------------------------------


def _rows(label: str, one: _Given, samples: Samples, protocol: Protocol, digest: str) -> Iterator[Score]:
    for sample, listed in samples:
        members: Sequence[tuple[str, str | None]] = [(SET_MEMBER, None)] if one.dimension.by_task else listed
        for member, _ in members:
            records = one.records.get((sample.id, member), ())
            yield Score(
                label,
                sample.id,
                member,
                one.dimension.name,
                protocol.name,
                **_outcome(one.dimension.name, records),
                version=facts_of(one.dimension.name).version,
                parameters=protocol.digest,
                inputs=digest_of({"file": digest, "dimension": one.dimension.name, "video": [sample.id, member]}),
            )


def _outcome(dimension: str, records: Sequence[VideoRecord]) -> dict[str, Any]:
    """Value, status, reason and detail of one video in one dimension."""
    if not records:
        return _without(Reason.MISSING_VIDEO, "the result file holds no record of this video")
    if len(records) > 1:
        listed = ", ".join(f"record {one.place}" for one in records)
        message = f"{len(records)} records name this video ({listed}); keep one"
        return _without(Reason.DUPLICATE_VIDEO, message, raw=[one.raw for one in records])
    (record,) = records
    detail: dict[str, Any] = {"record": record.place, "raw": record.raw}
    if record.image is not None:
        detail["condition_image"] = record.image
    if record.missing is not None:
        said = "the result file leaves this number unset (NaN or null)"
        return _without(record.missing, said, **detail) | {"values": record.further}
    if record.value is None:
        return _without(Reason.NOT_FINITE, "the result file holds NaN or infinity for this video", **detail)
    if record.count is not None:
        detail |= {"sum": record.value * record.count if record.sum is None else record.sum, "count": record.count}
    scaled = dimension in DIMENSIONS and DIMENSIONS[dimension].divisor != 1
    further = {"raw": record.raw} if scaled else record.further
    return {"value": record.value, "status": Status.OK, "detail": detail, "values": further}


def _without(reason: Reason, message: str, **detail: Any) -> dict[str, Any]:
    return {"value": None, "status": reason.status, "reason": reason, "detail": {**detail, "message": message}}
