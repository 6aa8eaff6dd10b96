"""The door of this package: which form a report takes is said by the ending of its name."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from api.services.reporting.fragments import People
from api.services.reporting.limits import Limits
from api.services.results import RunResults
from gen_eval.records import InputError
from gen_eval.records.files import write_atomic

_Form = Callable[[Sequence[RunResults], Limits, People | None], bytes]


def _html(results: Sequence[RunResults], limits: Limits, people: People | None) -> bytes:
    from api.services.reporting.page import to_html

    return to_html(results, limits, None if people is None else people.fragment())


def _csv(results: Sequence[RunResults], _limits: Limits, _people: People | None) -> bytes:
    from api.services.reporting.rows import to_csv

    return to_csv(results)


def _parquet(results: Sequence[RunResults], _limits: Limits, _people: People | None) -> bytes:
    from api.services.reporting.rows import to_parquet

    return to_parquet(results)


def _json(results: Sequence[RunResults], _limits: Limits, people: People | None) -> bytes:
    documents = [run.to_json() for run in results]
    document = documents[0] if len(documents) == 1 else {"runs": documents, "tables": _tables(results)}
    return _encoded(document if people is None else {**document, "people": people.document()})


def _tables(results: Sequence[RunResults]) -> list[dict[str, Any]]:
    from api.services.published import tables_of

    return [table.to_json() for table in tables_of(results)]


def _table_json(results: Sequence[RunResults], _limits: Limits, _people: People | None) -> bytes:
    return _encoded({"tables": _tables(results)})


def _table_csv(results: Sequence[RunResults], _limits: Limits, _people: People | None) -> bytes:
    from api.services.reporting.published import to_csv

    return to_csv(results)


def _encoded(document: Any) -> bytes:
    return (json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1) + "\n").encode()


def _latex(results: Sequence[RunResults], _limits: Limits, _people: People | None) -> bytes:
    from api.services.reporting.latex import to_latex

    return to_latex(results)


_FORMS: dict[str, _Form] = {
    ".html": _html,
    ".csv": _csv,
    ".json": _json,
    ".parquet": _parquet,
    ".tex": _latex,
}

SUFFIXES = tuple(_FORMS)

_WITH_PEOPLE = (".html", ".json")
"""Forms that have room for what people say."""

_TABLE_FORMS: dict[str, _Form] = {
    ".csv": _table_csv,
    ".json": _table_json,
    ".tex": _latex,
}
"""Of the published tables alone."""


def write_report(
    results: Sequence[RunResults],
    path: Path,
    limits: Limits | None = None,
    *,
    table: bool = False,
    people: People | None = None,
) -> None:
    """Write a report of ``results`` to ``path``, whole or not at all.

    Args:
        results: one or more runs; several stand side by side, in this order.
        path: its ending chooses the form, one of :data:`SUFFIXES`.
        limits: how much a page shows.
        table: only the tables as the benchmarks print them; ``.csv``, ``.json`` and ``.tex``.
        people: what people say of the systems; ``.html`` and ``.json``.

    Raises:
        InputError: another ending, no run, or the file cannot be written.
    """
    content = render(results, path.suffix, limits, table=table, people=people)
    try:
        write_atomic(path, content)
    except OSError as error:
        raise InputError(f"the report {path} cannot be written: {error}; give another --out") from error


def render(
    results: Sequence[RunResults],
    suffix: str,
    limits: Limits | None = None,
    *,
    table: bool = False,
    people: People | None = None,
) -> bytes:
    """The bytes of a report; see :func:`write_report`.

    Raises:
        InputError: an ending that is no form of report, or no run.
    """
    forms = _TABLE_FORMS if table else _FORMS
    form = forms.get(suffix.lower())
    if form is None:
        what = "the table alone" if table else "a report"
        raise InputError(f"{what} cannot be written as {suffix or 'a name without ending'!r}; use {', '.join(forms)}")
    if not results:
        raise InputError("there is no run to report on; name at least one run folder")
    if people is not None and (table or suffix.lower() not in _WITH_PEOPLE):
        raise InputError(
            f"votes and ratings have a place in {' and '.join(_WITH_PEOPLE)} only; leave them out, or --table"
        )
    return form(results, limits or Limits(), people)
