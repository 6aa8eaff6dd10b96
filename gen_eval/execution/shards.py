"""Splitting a run over machines that know nothing of each other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

from gen_eval.records import InputError

Item = TypeVar("Item")


def parse_shard(text: str) -> tuple[int, int]:
    """``i/N`` as (i, N), 1-based.

    Raises:
        InputError: it is not of that form, or i is not in 1..N.

    Example:
        >>> parse_shard("2/8")
        (2, 8)
    """
    match = re.fullmatch(r"(\d+)/(\d+)", text.strip())
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise InputError(f"--shard must be i/N with 1 <= i <= N, such as 2/8, not {text!r}")
    return int(match[1]), int(match[2])


def shard_of(items: Sequence[Item], shard: tuple[int, int] | None) -> list[Item]:
    """The items of one shard: every N-th, so that neighbours of like cost are spread.

    Example:
        >>> shard_of(["a", "b", "c", "d", "e"], (1, 2))
        ['a', 'c', 'e']
    """
    return list(items) if shard is None else list(items[shard[0] - 1 :: shard[1]])
