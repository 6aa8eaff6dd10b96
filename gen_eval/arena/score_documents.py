"""Documents that this program writes, read back: ratings (``arena rate --json``), scores of runs, and their reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gen_eval.arena.system_numbers import Number
from gen_eval.arena.systems import key_of
from gen_eval.data.records_file import real_of
from gen_eval.records import InputError

_RUNS = "`gen-eval score --json` or `gen-eval report --out x.json`"
_RATINGS = "`gen-eval arena rate --json`"


def rating_numbers(document: Mapping[str, Any], path: Path) -> list[Number]:
    """Ratings by tracker.

    Raises:
        InputError: the document is none of ratings.
    """
    if "trackers" not in document:
        raise InputError(f"{path} has no trackers; expected a table of ratings, or what {_RATINGS} prints")
    return list(_trackers(document, path))


def score_numbers(document: Mapping[str, Any], path: Path) -> list[Number]:
    """Metrics and totals by system, under every protocol; of ratings those that scores of videos gave.

    The totals of a report of several runs are those of its tables: the parts of a total may lie in several runs of
    one system, so no single run can tell them.

    Raises:
        InputError: the document is none of scores.
    """
    if "automatic" in document:
        parts = _mapping(document["automatic"], "automatic", path, _RATINGS).items()
        # an automatic arena has one tracker, and is of its metric
        return [
            one._replace(x=key_of(metric), source=f"automatic.{metric}")
            for metric, part in parts
            for one in _trackers(_mapping(part, "a rating", path, _RATINGS), path)
        ]
    together = "runs" in document and "tables" in document
    numbers: list[Number] = []
    for run in runs_in(document, path):
        system = system_of(run, path)
        for kind in ("aggregate",) if together else ("aggregate", "totals"):
            numbers += _by_protocol(_mapping(run.get(kind, {}), kind, path, _RUNS), system, kind, path)
    if together:
        metrics = {number.x for number in numbers}
        numbers += [number for number in _tables(document["tables"], path) if number.x not in metrics]
    return numbers


def directions(document: Mapping[str, Any]) -> dict[str, bool]:
    """Whether larger is better, by x, as far as the tables of a document say so."""
    found: dict[str, bool] = {}
    for part in (document, *_listed(document.get("runs"))):
        for table in _listed(part.get("tables") if isinstance(part, Mapping) else None):
            for column in _listed(table.get("columns") if isinstance(table, Mapping) else None):
                name, better = (column.get(key) if isinstance(column, Mapping) else None for key in ("name", "better"))
                if isinstance(name, str) and better in ("higher", "lower"):
                    found[key_of(name)] = better == "higher"
    return found


def runs_in(document: Mapping[str, Any], path: Path) -> list[Mapping[str, Any]]:
    """The runs of a document: itself, or those under ``runs`` (a list, or by name).

    Raises:
        InputError: one of them holds no scores.
    """
    runs = _listed(document["runs"]) if "runs" in document else [document]
    found = [_mapping(run, "a run", path, _RUNS) for run in runs]
    if not found or not all("aggregate" in run for run in found):
        raise InputError(f"{path} holds no scores; expected a table of scores, or what {_RUNS} writes")
    return found


def system_of(run: Mapping[str, Any], path: Path) -> str:
    """What reports call the system of a run: the label of its model, and the condition where one is told.

    Raises:
        InputError: it has no label.
    """
    model = run.get("model")
    if model is None:
        models = {row.get("model") for row in _listed(run.get("rows")) if isinstance(row, Mapping)}
        model = next(iter(models)) if len(models) == 1 else None
    return _label(model, run.get("condition"), path)


def _label(model: Any, condition: Any, path: Path) -> str:
    if not isinstance(model, str) or not model.strip() or not isinstance(condition, str | None):
        raise InputError(f"{path} does not name the model of a run; expected what {_RUNS} writes")
    return model.strip() if condition is None else f"{model.strip()}, {condition}"


def _trackers(document: Mapping[str, Any], path: Path) -> Iterator[Number]:
    for tracker, content in _mapping(document.get("trackers"), "trackers", path, _RATINGS).items():
        one = _mapping(content, tracker, path, _RATINGS)
        lower, upper = (_mapping(one.get(end) or {}, f"{tracker}.{end}", path, _RATINGS) for end in ("lower", "upper"))
        told = [one[key] if isinstance(one.get(key), str) else "" for key in ("reason", "message")]
        for model, rating in _mapping(one.get("ratings"), f"{tracker}.ratings", path, _RATINGS).items():
            where = f"{tracker}.ratings.{model:.60}"
            value, low, high = (_value(given, where, path) for given in (rating, lower.get(model), upper.get(model)))
            source = f"trackers.{tracker}"
            yield Number(model.strip(), tracker, value, low, high, source=source, reason=told[0], message=told[1])


def _by_protocol(table: Mapping[str, Any], system: str, kind: str, path: Path) -> Iterator[Number]:
    for name, protocols in table.items():
        for protocol, content in _mapping(protocols, f"{kind}.{name}", path, _RUNS).items():
            where = f"{kind}.{name}"
            one = _number(_mapping(content, where, path, _RUNS), system, name, protocol, where, path)
            # n of a total counts its parts
            yield one._replace(samples=_count(content.get("n"))) if kind == "aggregate" else one


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _tables(tables: Any, path: Path) -> Iterator[Number]:
    """Numbers over all samples; a name with a dot is a further number that stands beside."""
    for table in _listed(tables):
        protocol = str(_mapping(table, "a table", path, _RUNS).get("protocol", ""))
        for line in _listed(table.get("lines")):
            if _mapping(line, "a line", path, _RUNS).get("domain") is not None:
                continue
            system = _label(line.get("model"), line.get("condition"), path)
            for name, cell in _mapping(line.get("scores"), "scores", path, _RUNS).items():
                if cell is not None and "." not in name:
                    content = _mapping(cell, name, path, _RUNS)
                    yield _number(content, system, name, protocol, f"tables.{name}", path)


def _number(content: Mapping[str, Any], system: str, name: str, protocol: str, where: str, path: Path) -> Number:
    value, lower, upper = (_value(content.get(key), where, path) for key in ("value", "lower", "upper"))
    return Number(system, key_of(name), value, lower, upper, protocol, where)


def _value(value: Any, where: str, path: Path) -> float | None:
    if value is None:
        return None
    found = real_of(value)
    if found is None:
        raise InputError(f"{path} has {value!r:.60} in {where}; expected a number or null")
    return found


def _mapping(value: Any, what: str, path: Path, expected: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(
            f"{path}: {what:.80} is {type(value).__name__}, not an object; expected what {expected} writes"
        )
    return value


def _listed(value: Any) -> Sequence[Any]:
    """The entries of a list, or of an object that holds them by name; none of anything else."""
    if isinstance(value, Mapping):
        return list(value.values())
    return value if isinstance(value, list) else []


__all__ = ["directions", "rating_numbers", "runs_in", "score_numbers", "system_of"]
