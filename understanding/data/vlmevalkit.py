"""Prediction tables of VLMEvalKit: the data's own table with a column ``prediction``.

Columns read: ``index`` (a row number, or an id where the data were prepared with ids), ``prediction``, and for the
check that it is the same question ``question`` and ``answer``; ``A``, ``B``, … help to tell whether row numbers count
from 0 or from 1, which the format leaves open. Tables are read as CSV or TSV; spreadsheets are not
opened. The file is called by model and data set.
"""

from __future__ import annotations

import csv
import string
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gen_eval.data.benchmark import Rejected
from gen_eval.records import InputError, Rejection
from understanding.data.predictions import Prediction, Predictions

_FAILED = "Failed to obtain answer via API"
"""What VLMEvalKit writes in place of a reply when the endpoint gave none."""

_SAID: tuple[str, ...] = ("question", "answer")
_LONGEST_CELL = 1 << 24


def read(path: Path) -> Predictions:
    """The replies in the table ``path`` (``.csv`` or ``.tsv``).

    Raises:
        InputError: it cannot be read, or has no column ``index`` or ``prediction``.
    """
    items: list[Prediction] = []
    rejected: list[Rejected] = []
    try:
        with path.open(newline="", encoding="utf-8-sig") as file, _long_cells():
            reader = csv.DictReader(file, delimiter="\t" if path.suffix == ".tsv" else ",", strict=True)
            names = {name.strip().casefold(): name for name in reader.fieldnames or () if name}
            key = names.get("index") or names.get("id")
            if key is None or "prediction" not in names:
                raise InputError(
                    f"{path} must have the columns index and prediction; it has {', '.join(names) or 'none'}"
                )
            for row in reader:
                _add(f"{path.name}:{reader.line_num}", row, key, names, items, rejected)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} cannot be read as a table: {error}") from error
    return Predictions("vlmevalkit", tuple(items), tuple(rejected), counts_from=None)


@contextmanager
def _long_cells() -> Iterator[None]:
    """Let cells hold whole replies; the limit is the process's own and is put back."""
    before = csv.field_size_limit()
    csv.field_size_limit(max(before, _LONGEST_CELL))
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _add(
    where: str,
    row: dict[str, str | None],
    key: str,
    names: dict[str, str],
    items: list[Prediction],
    rejected: list[Rejected],
) -> None:
    name, reply = (row.get(key) or "").strip(), row.get(names["prediction"])
    if not name or reply is None:
        rejected.append(Rejected(where, Rejection.MALFORMED_RECORD, "the line has no index or no prediction"))
        return
    cells = {one: row.get(names[one]) for one in _SAID if one in names}
    said = {one: cell for one, cell in cells.items() if cell}
    texts = {one: row.get(names[one.casefold()]) for one in string.ascii_uppercase if one.casefold() in names}
    options = {one: cell for one, cell in texts.items() if cell and cell.strip()}
    number = name.removesuffix(".0")  # tables that went through floating point
    index = int(number) if number.isascii() and number.isdigit() and len(number) < 10 else None
    failed = reply.strip() if reply.strip().startswith(_FAILED) else None
    given = None if failed else reply
    items.append(Prediction(where, name, given, index=index, error=failed, said=said, options=options))
