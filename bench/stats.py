"""The bootstrap against a plain loop over resamples: ``python -m bench.stats``.

Both sides make the 95 % percentile interval of a mean from 10,000 resamples; their ends are compared before anything
is timed. One thread.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bench.measure import Comparison, compare, save, seconds, table
from gen_eval.stats import bootstrap_columns, bootstrap_mean

_RESAMPLES = 10_000
_COLUMNS = 8


def plain_interval(values: NDArray[np.float64], resamples: int = _RESAMPLES) -> tuple[float, float]:
    """One ``choice`` and one mean a resample, as the method is usually written down."""
    generator = np.random.RandomState(0)
    means = [generator.choice(values, size=len(values), replace=True).mean() for _ in range(resamples)]
    lower, upper = np.percentile(means, [2.5, 97.5])
    return float(lower), float(upper)


def check(values: NDArray[np.float64]) -> None:
    """End the bench when the two intervals differ by more than chance allows (0.15 standard errors)."""
    ours, other = bootstrap_mean(values), plain_interval(values)
    allowed = 0.15 * values.std() / np.sqrt(len(values))
    if abs(ours.lower - other[0]) > allowed or abs(ours.upper - other[1]) > allowed:
        sys.exit(f"n = {len(values)}: ours {ours} and the plain loop {other} differ by more than {allowed:.2g}")


def bench_mean(units: int, rounds: int) -> Comparison:
    """One column of ``units`` values."""
    values = np.random.default_rng(units).random(units)
    check(values)
    note = f"numpy.random choice and mean in a loop over {_RESAMPLES} resamples"
    return compare(
        f"bootstrap of a mean, n = {units:,}",
        lambda: bootstrap_mean(values),
        lambda: plain_interval(values),
        rounds=rounds,
        note=note,
    )


def bench_columns(units: int, rounds: int) -> Comparison:
    """Several columns on the same resamples against one plain loop for each."""
    matrix = np.random.default_rng(units).random((units, _COLUMNS))
    return compare(
        f"bootstrap of {_COLUMNS} columns, n = {units:,}",
        lambda: bootstrap_columns(matrix),
        lambda: [plain_interval(column) for column in matrix.T],
        rounds=rounds,
        note="the loop above for each column",
    )


def growth(sizes: list[int], rounds: int) -> dict[str, float]:
    """Our seconds by number of values, median over ``rounds`` rounds that visit all sizes in turn."""
    columns = [np.random.default_rng(units).random(units) for units in sizes]
    times: dict[int, list[float]] = {units: [] for units in sizes}
    for _ in range(rounds):
        for values in columns:
            times[len(values)].append(seconds(lambda values=values: bootstrap_mean(values)))  # type: ignore[misc]
    return {str(units): statistics.median(found) for units, found in times.items()}


def main(arguments: Sequence[str] | None = None) -> bool:
    """Print the table and write ``bench/results/stats.json``; there is no target that could be missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="rounds of alternation (default 5)")
    parser.add_argument("--quick", action="store_true", help="one round and small n only")
    options = parser.parse_args(arguments)
    rounds = 1 if options.quick else options.rounds
    sizes = [100, 1_000] if options.quick else [100, 1_000, 10_000]
    results = [*(bench_mean(units, rounds) for units in sizes), bench_columns(1_000, rounds)]
    print(table(results))
    grown = growth([100, 1_000] if options.quick else [1_000, 10_000, 100_000], 1 if options.quick else 3)
    for units, time in grown.items():
        print(f"ours, n = {int(units):>7,}: {time:.3f} s")
    save("stats", results, growth=grown)
    return all(one.met for one in results)


if __name__ == "__main__":
    main()
