"""From the outcome of a group to its rows, with curves and pictures written before the rows that point to them."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from api.services.network_facts import weights_digest
from api.services.preparation import Prepared
from gen_eval.execution import Lost
from gen_eval.features.planner import GroupOutcome, Outcome
from gen_eval.records import Flag, Group, MetricResult, Score
from gen_eval.records.run import RunFolder

_CURVES = pa.schema(
    [
        ("member", pa.string()),
        ("metric", pa.string()),
        ("protocol", pa.string()),
        ("curve", pa.string()),
        ("frame", pa.int32()),
        ("value", pa.float64()),
    ]
)


def record(run: RunFolder, prepared: Prepared, outcome: GroupOutcome) -> list[Score]:
    """Write everything of one group; the rows go last and in one transaction.

    Returns:
        The rows, in key order.
    """
    curve = _write_curves(run, outcome.outcomes)
    flags = _sample_flags(prepared, outcome.group)
    rows = sorted(
        (_row(run, prepared, outcome.group, one, curve, flags) for one in outcome.outcomes), key=lambda row: row.key
    )
    run.write(rows)
    return rows


def record_lost(run: RunFolder, prepared: Prepared, lost: Lost[Group]) -> list[Score]:
    """Rows for a group whose process died in every attempt."""
    rows = []
    for key, measurement, protocol in prepared.expected(lost.item):
        result = MetricResult.without_value(measurement.metric.name, lost.reason, lost.message, protocol=protocol.name)
        rows.append(_score(prepared, key, measurement, protocol, result))
    run.write(rows)
    return rows


def _sample_flags(prepared: Prepared, group: Group) -> tuple[Flag, ...]:
    unknown = prepared.benchmark.has_domains and group.sample.domain is None
    return (Flag.UNKNOWN_DOMAIN,) if unknown else ()


def _row(
    run: RunFolder, prepared: Prepared, group: Group, outcome: Outcome, curve: str | None, flags: tuple[Flag, ...]
) -> Score:
    key = (group.model, group.sample.id, outcome.member, outcome.measurement.metric.name, outcome.protocol.name)
    pictures = {role: run.add_picture(content) for role, content in sorted(outcome.pictures.items())}
    return _score(
        prepared,
        key,
        outcome.measurement,
        outcome.protocol,
        outcome.result.with_flags(*flags),
        curve=curve if outcome.result.curves else None,
        frames=pictures,
    )


def _score(prepared: Prepared, key: Any, measurement: Any, protocol: Any, result: MetricResult, **fields: Any) -> Score:
    model, sample, member, metric, name = key
    return Score(
        model=model,
        sample=sample,
        member=member,
        metric=metric,
        protocol=name,
        value=result.value,
        status=result.status,
        reason=result.reason,
        flags=result.flags,
        values=result.values,
        detail=result.detail,
        version=measurement.metric.version,
        parameters=protocol.digest,
        weights=weights_digest(prepared.networks_of(key, measurement)),
        inputs=prepared.inputs_digest(key, measurement, protocol),
        **fields,
    )


def _write_curves(run: RunFolder, outcomes: Iterable[Outcome]) -> str | None:
    columns: list[tuple[str, str, str, str, int, float | None]] = list(_curve_rows(outcomes))
    if not columns:
        return None
    table = pa.Table.from_pylist([dict(zip(_CURVES.names, row, strict=True)) for row in columns], schema=_CURVES)
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return run.add_curves(buffer.getvalue())


def _curve_rows(outcomes: Iterable[Outcome]) -> Iterator[tuple[str, str, str, str, int, float | None]]:
    for one in outcomes:
        for name, curve in sorted(one.result.curves.items()):
            for frame, value in enumerate(curve.tolist()):
                number = value if math.isfinite(value) else None
                yield one.member, one.measurement.metric.name, one.protocol.name, name, frame, number
