"""How a benchmark prints its results: which scores, in which order, on which scale. Data of the benchmark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from gen_eval.protocols.loading import config_names, read_config
from gen_eval.records import InputError

_FIELDS = {"score", "title", "digits", "scale", "better", "beside"}
_DIRECTIONS = ("higher", "lower")


@dataclass(frozen=True)
class Beside:
    """A further number of a metric that is printed beside its value.

    Attributes:
        value: its name among the metric's further numbers.
        title: head of its column.
    """

    value: str
    title: str


@dataclass(frozen=True)
class PublishedColumn:
    """One column of a benchmark's table.

    Attributes:
        score: name of a metric, or of a total.
        title: head of the column.
        digits: decimals that are printed.
        scale: what a score is multiplied by before it is printed (100 for ratios in percent).
        higher_is_better: direction.
        beside: a further number of the same metric with a column of its own, ``None`` without one.
    """

    score: str
    title: str
    digits: int
    scale: float
    higher_is_better: bool
    beside: Beside | None = None

    def printed(self, value: float) -> str:
        """``value`` on the published scale.

        Example:
            >>> PublishedColumn("blur_ssim", "blur SSIM", 2, 1.0, True).printed(0.9137)
            '0.91'
        """
        return f"{self.scale * value:.{self.digits}f}"

    @classmethod
    def from_json(cls, where: str, content: Any) -> PublishedColumn:
        """The column in ``content``.

        Raises:
            InputError: it is malformed.
        """
        given: Mapping[str, Any] = content if isinstance(content, Mapping) else {}
        digits, scale, beside = given.get("digits"), given.get("scale", 1), given.get("beside")
        sound = (
            isinstance(given.get("score"), str),
            isinstance(digits, int) and not isinstance(digits, bool) and 0 <= digits <= 9,
            isinstance(scale, int | float) and not isinstance(scale, bool) and scale > 0,
            given.get("better") in _DIRECTIONS,
            beside is None or (isinstance(beside, Mapping) and set(beside) == {"value", "title"}),
            not set(given) - _FIELDS,
        )
        if not all(sound):
            raise InputError(
                f"{where}: a column must be {{score, title, digits, scale, better: higher or lower, beside: {{value, "
                f"title}}}}, not {content!r}"
            )
        further = None if beside is None else Beside(str(beside["value"]), str(beside["title"]))
        title = str(given.get("title", given["score"]))
        return cls(given["score"], title, int(given["digits"]), float(scale), given["better"] == "higher", further)


@dataclass(frozen=True)
class PublishedTable:
    """The table that a benchmark publishes.

    Attributes:
        benchmark: name of its file.
        track: which ``score`` command makes its numbers.
        title: for captions.
        columns: in the published order.
        conditions: what generators were given, in the order of the rows; empty where that makes no row.
    """

    benchmark: str
    track: str
    title: str
    columns: tuple[PublishedColumn, ...]
    conditions: tuple[str, ...] = ()


def published_table(track: str) -> PublishedTable | None:
    """The table of the benchmark that ``track`` belongs to, ``None`` when none is published.

    Raises:
        InputError: a configuration file is malformed.

    Example:
        >>> [column.score for column in published_table("control").columns][:3]
        ['blur_ssim', 'edge_f1', 'depth_si_rmse']
    """
    return published_tables().get(track)


@lru_cache(maxsize=1)
def published_tables() -> Mapping[str, PublishedTable]:
    """The first table of each track.

    Raises:
        InputError: a configuration file is malformed.
    """
    found: dict[str, PublishedTable] = {}
    for name in config_names("benchmarks"):
        content = read_config("benchmarks", name)
        if content.get("columns") is not None:
            table = _table(name, content)
            found.setdefault(table.track, table)
    return found


def _table(name: str, content: Mapping[str, Any]) -> PublishedTable:
    where = f"the benchmark {name}"
    columns, conditions, track = content["columns"], content.get("conditions") or [], content.get("track")
    if not isinstance(track, str) or not isinstance(columns, list) or not isinstance(conditions, list):
        raise InputError(f"{where} must name its track, and list its columns and conditions")
    read = tuple(PublishedColumn.from_json(where, one) for one in columns)
    if len({one.score for one in read}) < len(read):
        raise InputError(f"{where} has two columns of one score")
    return PublishedTable(name, track, str(content.get("title", name)), read, tuple(map(str, conditions)))


def in_published_order(scores: Iterable[str]) -> list[str]:
    """``scores`` as the benchmarks print them, those without a column last and by name.

    Example:
        >>> in_published_order(["mask_miou", "dynamic_degree", "blur_ssim"])
        ['blur_ssim', 'mask_miou', 'dynamic_degree']
    """
    places = {name: place for place, name in enumerate(columns_by_score())}
    return sorted(set(scores), key=lambda name: (places.get(name, len(places)), name))


def columns_by_score() -> dict[str, PublishedColumn]:
    """Every published column, by the score that it prints."""
    return {column.score: column for table in published_tables().values() for column in table.columns}
