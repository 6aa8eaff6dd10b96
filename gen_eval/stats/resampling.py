"""Bootstrap resamples of n units, as the number of times that each unit was drawn.

A resample of n units is n independent draws with replacement. What a statistic needs of it is only how often each unit
came up, so a block of resamples is a matrix of counts and the sums of any number of columns are one matrix product.

The counts are drawn in one of two ways; both are exactly multinomial:

* up to :data:`INDEX_LIMIT` units, ``default_rng(seed).integers(0, n, size=(resamples, n))`` says what is drawn, so that
  a result can be checked with three lines of NumPy;
* above it, independent Poisson counts with a mean a little below 1 are read from a table, and uniform draws are added
  until the row holds n. Independent Poisson counts of a given total are multinomial, whatever their mean, and so is
  their sum with further uniform draws; a row that begins with more than n is drawn anew. This needs one table look-up
  for two units where the first way needs one bounded random integer for each.

Columns are brought to whole multiples of a power of two before the product, so small that every partial sum is exact in
float64. Hence the same bits whatever the block size, the number of columns or threads, and the order of additions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gen_eval.stats.summaries import Floats, finite_array

INDEX_LIMIT = 256
"""Most units for which the counts come from drawn indices."""

BLOCK = 1 << 18
"""Counts held at a time (float64: 2 MiB, which stays in the cache); a single resample of more units needs more."""

MOST_RESAMPLES = 1_000_000
"""Most resamples of a bootstrap: no end of an interval becomes clearer by more, and they fit in memory."""

_CELLS = 1 << 16
_ESCAPE = 0xFFFF
_LARGEST_COUNT = 18  # a Poisson count with mean below 1 exceeds it with probability 8e-18, below the rounding of 1.0
_WORD = 8  # units served by one 64-bit word: four cells of two units


def resampled_sums(columns: ArrayLike, *, resamples: int = 10_000, seed: int = 0, block: int | None = None) -> Floats:
    """Sums of each column over bootstrap resamples of its rows; all columns see the same resamples.

    A statistic that is a function of sums (a mean, a ratio of counts, an F1) is bootstrapped by applying it to the
    rows of the result.

    Args:
        columns: ``(n, m)`` finite numbers, one row for each unit. Taken to 53 - log2(n) binary places of the largest
            of its column (a relative error of 1e-13 for a thousand units, 1e-11 for a hundred thousand).
        resamples: number of resamples, at least 1.
        seed: non-negative; equal seeds give equal resamples for equal n.
        block: counts held at a time; changes memory and speed, never the result.

    Returns:
        ``(resamples, m)`` float64.

    Raises:
        ValueError: no rows, an entry that is not finite, or an argument outside its range.
    """
    matrix = finite_array(columns, "columns", ndim=2)
    check_resampling(len(matrix), resamples, seed)
    units = len(matrix)
    bits = 53 - (units - 1).bit_length()
    exponents = np.frexp(np.max(np.abs(matrix), axis=0, initial=0.0))[1]
    if len(exponents) and exponents.max() + units.bit_length() > 1023:
        raise ValueError(f"columns hold numbers as large as 2**{exponents.max()}; their sums would overflow")
    whole = np.ascontiguousarray(np.rint(np.ldexp(matrix, bits - exponents)).T)
    sums = np.empty((len(whole), resamples))
    start = 0
    for counts in _count_blocks(units, resamples, seed, BLOCK if block is None else block):
        # a column at a time: so thin a matrix product gains nothing from BLAS threads, which on busy cores wait for
        # one another (measured: 30 times slower than this loop)
        for column, target in zip(whole, sums, strict=True):
            np.dot(counts, column, out=target[start : start + len(counts)])
        start += len(counts)
    scaled: Floats = np.ldexp(sums.T, exponents - bits)
    return scaled


def resampled_counts(
    units: int, *, resamples: int = 10_000, seed: int = 0, block: int | None = None
) -> Iterator[Floats]:
    """How often each of ``units`` units is drawn in each resample, in blocks of bounded memory.

    For statistics that are no function of column sums; the counts are those of :func:`resampled_sums`.

    Args:
        units: n, at least 1.
        resamples: number of resamples, at least 1.
        seed: see :func:`resampled_sums`.
        block: counts held at a time; changes memory and speed, never the result.

    Yields:
        ``(k, units)`` float64, rows that sum to n, ``resamples`` rows in all; a block is valid until the next one.

    Raises:
        ValueError: an argument outside its range.
    """
    check_resampling(units, resamples, seed)
    return _count_blocks(units, resamples, seed, BLOCK if block is None else block)


def check_resampling(units: int, resamples: int, seed: int) -> None:
    """Refuse what no bootstrap can be made of.

    Raises:
        ValueError: no units, fewer than one resample or more than :data:`MOST_RESAMPLES`, or a negative seed.
    """
    if units < 1:
        raise ValueError("nothing to resample: at least one value is needed; report n = 0 and no interval instead")
    if resamples < 1:
        raise ValueError(f"resamples is {resamples}; at least 1 is needed (10,000 is the default)")
    if resamples > MOST_RESAMPLES:
        raise ValueError(f"resamples is {resamples}; at most {MOST_RESAMPLES:,} are drawn (10,000 is the default)")
    if seed < 0:
        raise ValueError(f"seed is {seed}; a non-negative integer is needed")


def _count_blocks(units: int, resamples: int, seed: int, block: int) -> Iterator[Floats]:
    """Blocks of rows ``(k, units)``, ``resamples`` rows in all; a block is valid until the next one."""
    if units <= INDEX_LIMIT:
        # Indices and integer counts lie beside the counts in float64, so half as many rows need the same memory.
        return _counts_from_indices(units, resamples, seed, max(1, min(block // (2 * units), resamples)))
    return _counts_from_table(units, resamples, seed, max(1, min(block // units, resamples)))


def _counts_from_indices(units: int, resamples: int, seed: int, rows: int) -> Iterator[Floats]:
    generator = np.random.default_rng(seed)
    offsets = np.arange(rows)[:, None] * units
    for start in range(0, resamples, rows):
        size = min(rows, resamples - start)
        drawn = generator.integers(0, units, size=(size, units))
        drawn += offsets[:size]
        yield np.bincount(drawn.ravel(), minlength=size * units).reshape(size, units).astype(np.float64)


@dataclass(frozen=True)
class _PairTable:
    """Two independent Poisson counts from one 16-bit number, exactly.

    Each pair of counts owns as many whole cells of the 65,536 as its probability fills; what is left over are the
    escape cells, where a second draw decides among the remainders of all pairs.

    Attributes:
        pairs: for each cell the two counts as the bytes of one number, or ``_ESCAPE``.
        remainders: cumulative probability of the pairs within the escape cells.
        remainder_pairs: the pair for each entry of ``remainders``.
    """

    pairs: NDArray[np.uint16]
    remainders: Floats
    remainder_pairs: NDArray[np.uint16]


@lru_cache(maxsize=16)
def _pair_table(units: int) -> _PairTable:
    # Two standard deviations of the row's total below n: one row in 44 exceeds n, and few draws are left to add.
    rate = 1.0 - 2.0 / math.sqrt(units)
    single = np.array([math.exp(-rate) * rate**count / math.factorial(count) for count in range(_LARGEST_COUNT + 1)])
    filled = np.multiply.outer(single, single).ravel() * (_CELLS / single.sum() ** 2)
    counts = np.arange(_LARGEST_COUNT + 1)
    codes = np.add.outer(counts << 8, counts).ravel().astype("<u2")
    cells = np.floor(filled).astype(np.int64)
    pairs = np.full(_CELLS, _ESCAPE, dtype="<u2")
    pairs[: cells.sum()] = np.repeat(codes, cells)
    remainders = np.cumsum(filled - cells)
    return _PairTable(pairs, remainders / remainders[-1], codes)


def _counts_from_table(units: int, resamples: int, seed: int, rows: int) -> Iterator[Floats]:
    """Every stream is read in order of the rows, so that the size of the blocks does not show in the result."""
    table = _pair_table(units)
    cells, escapes, additions = (np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(3))
    words = -(-units // _WORD)
    buffer = np.empty((rows, units))
    pairs = np.empty((rows, words * _WORD // 2), dtype="<u2")
    left = resamples
    while left:
        drawn = _poisson_counts(table, cells, escapes, pairs[: left + left // 32 + 1])[:, :units]
        totals = drawn.sum(axis=1, dtype=np.uint32).astype(np.int64)
        accepted = np.flatnonzero(totals <= units)[:left]
        counts = buffer[: len(accepted)]
        counts[...] = drawn[accepted]
        _add_draws(counts, units - totals[accepted], additions)
        left -= len(accepted)
        yield counts


def _poisson_counts(
    table: _PairTable, cells: np.random.Generator, escapes: np.random.Generator, pairs: NDArray[np.uint16]
) -> NDArray[np.uint8]:
    """Independent Poisson counts, two for each entry of ``pairs``, which they overwrite."""
    raw = cells.bit_generator.random_raw(pairs.size // 4).astype("<u8", copy=False).view("<u2")
    np.take(table.pairs, raw.reshape(pairs.shape), out=pairs, mode="clip")  # "raise" would copy the output first
    flat = pairs.reshape(-1)
    escaped = np.flatnonzero(flat == _ESCAPE)
    which = np.searchsorted(table.remainders, escapes.random(len(escaped)), side="right")
    flat[escaped] = table.remainder_pairs[which]
    return pairs.view(np.uint8)


def _add_draws(counts: Floats, missing: NDArray[np.int64], generator: np.random.Generator) -> None:
    """Add ``missing[r]`` uniform draws to row r, in place."""
    units = counts.shape[1]
    drawn = generator.integers(0, units, size=int(missing.sum()))
    drawn += np.repeat(np.arange(len(counts)) * units, missing)
    np.add.at(counts.reshape(-1), drawn, 1.0)
