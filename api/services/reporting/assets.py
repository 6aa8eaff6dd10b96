"""What a run keeps beside its rows: pictures as data addresses, per-frame curves as numbers.

Names come from the rows and rows from a database, so only digests are taken as names, and what is not there or is not
what it should be is simply not shown.
"""

from __future__ import annotations

import base64
import re
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gen_eval.records import Score

_DIGEST = re.compile(r"[0-9a-f]{64}")
_JPEG = b"\xff\xd8\xff"
_LARGEST_PICTURE = 1 << 20
_FILES_HELD = 8

Curve: TypeAlias = NDArray[np.float64]
"""One number a frame, NaN where a frame has none."""


def is_digest(name: object) -> bool:
    """Whether ``name`` is a digest, and so safe as the name of a file."""
    return isinstance(name, str) and _DIGEST.fullmatch(name) is not None


class Assets:
    """Pictures and curves of the run in ``path`` (``None``: there are none)."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._curves: OrderedDict[str, Mapping[tuple[str, str, str], dict[str, Curve]]] = OrderedDict()

    def address(self, name: str) -> str | None:
        """The picture ``name`` as a data address, ``None`` when it cannot be shown."""
        if self._path is None or not is_digest(name):
            return None
        try:
            with (self._path / "frames" / f"{name}.jpg").open("rb") as file:
                content = file.read(_LARGEST_PICTURE + 1)
        except OSError:
            return None
        if not content.startswith(_JPEG) or len(content) > _LARGEST_PICTURE:
            return None
        return f"data:image/jpeg;base64,{base64.b64encode(content).decode()}"

    def curves(self, row: Score) -> dict[str, Curve]:
        """The per-frame values of ``row`` by name; the curve named as the metric comes first."""
        if row.curve is None or self._path is None or not is_digest(row.curve):
            return {}
        if row.curve not in self._curves:
            self._curves[row.curve] = _read_curves(self._path / "curves" / f"{row.curve}.parquet")
            if len(self._curves) > _FILES_HELD:
                self._curves.popitem(last=False)
        found = self._curves[row.curve].get((row.member, row.metric, row.protocol), {})
        return dict(sorted(found.items(), key=lambda entry: (entry[0] != row.metric, entry[0])))


def _read_curves(path: Path) -> dict[tuple[str, str, str], dict[str, Curve]]:
    """(member, metric, protocol) -> name -> curve."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        columns: dict[str, list[Any]] = pq.read_table(path).to_pydict()
        rows = zip(
            *(columns[name] for name in ("member", "metric", "protocol", "curve", "frame", "value")), strict=True
        )
        points: dict[tuple[str, str, str], dict[str, dict[int, float]]] = {}
        for member, metric, protocol, name, frame, value in rows:
            own = points.setdefault((member, metric, protocol), {}).setdefault(name, {})
            own[int(frame)] = np.nan if value is None else float(value)
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError):
        return {}
    return {key: {name: _dense(own) for name, own in curves.items()} for key, curves in points.items()}


def _dense(points: Mapping[int, float]) -> Curve:
    """Values by frame; the file says how many there are, so that no frame number can ask for much memory."""
    curve = np.full(len(points), np.nan)
    for frame, value in points.items():
        if 0 <= frame < len(curve):
            curve[frame] = value
    return curve
