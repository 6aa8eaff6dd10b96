"""Votes from files and from Python values: every door of the human study takes them through here."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeGuard, Union, cast

from gen_eval.arena.comparisons import Comparisons
from gen_eval.arena.vote_records import NEEDED, answer_of, check, vote_of
from gen_eval.arena.votes import QUESTIONS, TRACKERS, RejectedVote, Vote, Votes
from gen_eval.data.benchmark import Rejected
from gen_eval.data.records_file import Refused
from gen_eval.data.table_file import TableRow, object_rows, plain_value, table_rows
from gen_eval.records import Rejection

if TYPE_CHECKING:
    import pandas as pd

Triple: TypeAlias = tuple[str, str, float]
"""System A, system B, and A's share of the point, 0..1."""

AnyVotes: TypeAlias = Union[
    Votes, Comparisons, "str | os.PathLike[str]", "Iterable[Vote | Mapping[str, Any]]", Iterable[Triple], "pd.DataFrame"
]
"""What is taken as votes."""


def read_votes(path: str | os.PathLike[str]) -> Votes:
    """The votes in a file: CSV, JSON lines (``.jsonl``, ``.jsonl.gz``), a JSON list or Parquet, with equal field names.

    Fields: ``id``, ``sample``, ``annotator``, ``model_a``, ``model_b``, ``quality``, ``plausibility``, and where known
    ``time`` (ISO 8601, UTC without a zone, or seconds), ``seed_a``, ``seed_b``, ``shown_left`` (a or b), ``seconds``
    (above 0); others are kept in :attr:`Vote.extra`. Answers: ``a``, ``b``, ``both_good``, ``both_bad``, or nothing.
    Blanks at the ends of a text are left out and an empty text is an absent field. A vote without an id is called by
    its line (row in Parquet), by another name if an id in the file is that number. Whole numbers in a column of Parquet
    or of a data frame are names as they would be in CSV; in JSON a name is a text.

    Returns:
        The votes in the order of the file, and each record that is none with its reason; perhaps no votes at all.

    Raises:
        InputError: the file cannot be read, or lacks a column that every vote needs.
    """
    path, damaged = Path(path), list[Rejected]()
    rows = table_rows(path, damaged, needed=NEEDED, called="the votes")
    if path.suffix.lower() == ".parquet":
        rows = (row._replace(record=_with_names(row.record)) for row in rows)
    return _collected(rows, damaged)


_NAMES = ("id", "sample", "annotator", "model_a", "model_b")


def _with_names(record: Mapping[str, Any]) -> dict[str, Any]:
    """``record`` with whole numbers as names: a column of numbers is what CSV becomes when it is read as a table.

    Where the column has gaps such numbers are floats.
    """
    found = dict(record)
    for name in _NAMES:
        value = found.get(name)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool):
            found[name] = str(value)
    return found


def votes_from(votes: AnyVotes) -> Votes:
    """Votes from any form that is taken.

    Args:
        votes: :class:`Votes`; a path (see :func:`read_votes`); :class:`Vote` objects or mappings with the same field
            names; a data frame with a line a vote; or, without questions, triples (A, B, A's share of the point) or
            :class:`Comparisons`, which become :attr:`Votes.bare`.

    Raises:
        InputError: a file cannot be read.
        TypeError: it is nothing of these.
        ValueError: a triple has one system twice or a share outside 0..1; a data frame lacks a column.

    >>> votes_from([{"sample": "s", "model_a": "x", "model_b": "y", "quality": "a"}]).votes[0].score("quality")
    1.0
    >>> len(votes_from([("x", "y", 1.0), ("y", "x", 0.5)]))
    2
    """
    if isinstance(votes, Votes):
        return votes
    if isinstance(votes, Comparisons):
        return Votes((), bare=votes)
    if isinstance(votes, str | os.PathLike):
        return read_votes(votes)
    if _is_frame(votes):
        return votes_from(_records_of(votes))
    if isinstance(votes, Mapping) or not isinstance(votes, Iterable):
        raise TypeError(f"votes are {type(votes).__name__}; expected {_EXPECTED}")
    given: list[Any] = list(votes)
    if given and all(_is_triple(one) for one in given):
        return Votes((), bare=Comparisons.of(cast("list[Triple]", given)))
    damaged: list[Rejected] = []
    return _collected(_entries(given, damaged), damaged)


def compared(votes: AnyVotes) -> dict[str, Comparisons]:
    """The comparisons of each tracker that has any; bare triples are those of ``overall``.

    Raises:
        InputError: a file cannot be read.
        TypeError: the votes have no form that is taken.
        ValueError: a triple has one system twice or a share outside 0..1; a data frame lacks a column.

    >>> {name: len(one) for name, one in compared([("x", "y", 1.0)]).items()}
    {'overall': 1}
    """
    found = votes_from(votes)
    pairs = ((tracker, found.comparisons(tracker)) for tracker in TRACKERS)
    return {tracker: comparisons for tracker, comparisons in pairs if len(comparisons)}


_EXPECTED = "Votes, a path, Vote objects, mappings with their fields, triples (A, B, A's share), or a data frame"


# --- records to votes ----------------------------------------------------------------------------------------------


class _Entry(NamedTuple):
    """A vote to be, where it stands, and the number that it is called by when it has no id."""

    where: str
    number: int
    value: Vote | Mapping[str, Any]


def _collected(entries: Iterable[_Entry | TableRow], damaged: list[Rejected]) -> Votes:
    """The votes among ``entries``; what is none, and what ``damaged`` gets meanwhile, is listed in the order given."""
    votes: list[Vote] = []
    unnamed: list[tuple[int, int]] = []
    seen: set[str] = set()
    rejected: list[RejectedVote] = []
    for where, number, value in entries:
        _drain(damaged, rejected)
        try:
            vote = vote_of(value) if isinstance(value, Mapping) else _made(value)
            if not vote.id:
                unnamed.append((len(votes), number))
            elif vote.id in seen:
                raise Refused(Rejection.DUPLICATE_VOTE, f"the id {vote.id!r:.80} came before; the first is kept")
            seen.add(vote.id)
            votes.append(vote)
        except Refused as refusal:
            name = value.get("id") if isinstance(value, Mapping) else value.id
            shown = name.strip() if isinstance(name, str) else ""
            rejected.append(RejectedVote(shown or str(number), refusal.reason, str(refusal), where))
    _drain(damaged, rejected)
    for place, number in unnamed:
        votes[place] = replace(votes[place], id=_free(str(number), seen))
    return Votes(tuple(votes), tuple(rejected))


def _drain(damaged: list[Rejected], rejected: list[RejectedVote]) -> None:
    for one in damaged:
        rejected.append(RejectedVote(_number_in(one.where), one.reason, one.message, one.where))
    damaged.clear()


def _number_in(where: str) -> str:
    """The line or row at the end of ``where``."""
    return where[len(where.rstrip("0123456789")) :]


def _free(name: str, seen: set[str]) -> str:
    """``name``, or the first of ``line name``, ``line line name``, … that nothing is called by."""
    while name in seen:
        name = f"line {name}"
    seen.add(name)
    return name


def _made(vote: Vote) -> Vote:
    """A vote that was made by hand; its answers may be plain text.

    Raises:
        Refused: it is none.
    """
    quality, plausibility = (answer_of(vote.answer(question), question) for question in QUESTIONS)
    found = replace(vote, quality=quality, plausibility=plausibility)
    check(found)
    return found


# --- Python values -------------------------------------------------------------------------------------------------


def _is_triple(value: Any) -> bool:
    return (type(value) is tuple and len(value) == 3) or (
        isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 3
    )


def _entries(given: Sequence[Any], damaged: list[Rejected]) -> Iterator[_Entry | TableRow]:
    for number, value in enumerate(given, start=1):
        if isinstance(value, Vote):
            yield _Entry(f"vote {number}", number, value)
        elif isinstance(value, Mapping):
            record = {name: plain_value(cell) for name, cell in value.items()}
            yield from object_rows([(number, record)], "vote", damaged)
        else:
            raise TypeError(f"vote {number} is {type(value).__name__}; votes are {_EXPECTED}")


def _is_frame(value: object) -> TypeGuard[pd.DataFrame]:
    pandas = sys.modules.get("pandas")  # there can be no frame unless somebody has loaded it
    return pandas is not None and isinstance(value, pandas.DataFrame)


def _records_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    missing = [name for name in NEEDED if name not in frame.columns]
    if missing:
        shown = ", ".join(f"{name!s:.40}" for name in frame.columns[:20]) or "none"
        raise ValueError(f"the data frame lacks {', '.join(missing)}; its columns are {shown}")
    filled = frame.astype(object).where(frame.notna(), None)
    lines = ({str(name): plain_value(value) for name, value in line.items()} for line in filled.to_dict("records"))
    return [_with_names(line) for line in lines]


__all__ = ["AnyVotes", "Triple", "compared", "read_votes", "votes_from"]
