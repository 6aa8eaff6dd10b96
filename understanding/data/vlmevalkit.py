"""Prediction tables of VLMEvalKit: the data's own table with a column ``prediction``.

Columns read: ``index`` (a row number, or an id where the data were prepared with ids), ``prediction``, and for the
check that it is the same question ``question`` and ``answer``. Tables are read as CSV or TSV; spreadsheets are not
opened. The file is called by model and data set.
"""

from __future__ import annotations

import csv
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
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_CELL))
    items: list[Prediction] = []
    rejected: list[Rejected] = []
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
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
    return Predictions("vlmevalkit", tuple(items), tuple(rejected))


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
    number = name.removesuffix(".0")  # tables that went through floating point
    index = int(number) if number.isascii() and number.isdigit() and len(number) < 10 else None
    failed = reply.strip() if reply.strip().startswith(_FAILED) else None
    items.append(Prediction(where, name, None if failed else reply, index=index, error=failed, said=said, kept={}))
