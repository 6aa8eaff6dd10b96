"""Ratings from votes against plain references: ``python -m bench.arena``.

Elo over random orders against one Python loop an order. The loop runs a few orders only and its time is multiplied;
both sides are compared on one order before anything is timed. Bradley-Terry with the intervals of 1,000 resamples
against single fits of the package choix, which get the same votes; ratings are compared first. One thread.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace

import choix
import numpy as np

from bench.measure import Comparison, compare, save, table
from gen_eval.arena import Comparisons, bradley_terry, elo_orders
from gen_eval.arena.comparisons import Unit
from gen_eval.arena.elo_chains import elo_ratings

_ELO_TARGET = 8.0
_ELO_MEMORY = 300.0  # MiB above the start
_PLAIN_ORDERS = 5


def random_votes(votes: int, systems: int, *, seed: int = 0) -> Comparisons:
    """Votes of all five scores on random pairs, by strengths that spread over about 600 points."""
    rng = np.random.default_rng(seed)
    strength = rng.normal(0, 0.8, systems)
    a = rng.integers(0, systems, votes)
    b = (a + rng.integers(1, systems, votes)) % systems
    chance = 1 / (1 + np.exp(strength[b] - strength[a]))
    score = (rng.binomial(2, chance) + rng.binomial(2, chance)) / 4
    return Comparisons(
        models=tuple(f"system {number:03}" for number in range(systems)),
        a=a,
        b=b,
        score=score,
        tie=1 - np.abs(2 * score - 1),
        left=np.ones(votes, dtype=np.int64),
        samples=tuple(map(str, range(votes))),
        annotators=(None,) * votes,
        times=(None,) * votes,
    )


# --- Elo -----------------------------------------------------------------------------------------------------------


def plain_elo(votes: Sequence[tuple[int, int, float]], order: Sequence[int], systems: int) -> list[float]:
    """The formula in a loop, on places and lists: the leanest plain way."""
    ratings = [1000.0] * systems
    for place in order:
        a, b, score = votes[place]
        expected = 1 / (1 + 10 ** ((ratings[b] - ratings[a]) / 400))
        change = 32 * (score - expected)
        ratings[a] += change
        ratings[b] -= change
    return ratings


def bench_elo(votes: int, systems: int, permutations: int, rounds: int) -> Comparison:
    """Ratings over ``permutations`` random orders."""
    comparisons = random_votes(votes, systems)
    rows = list(zip(comparisons.a.tolist(), comparisons.b.tolist(), comparisons.score.tolist(), strict=True))
    apart = np.abs(elo_ratings(comparisons) - plain_elo(rows, range(votes), systems)).max()
    if apart > 1e-6:
        sys.exit(f"Elo: ours and the plain loop are {apart:.2g} points apart")

    def loop() -> list[list[float]]:
        rng = np.random.default_rng(0)
        return [plain_elo(rows, rng.permutation(votes).tolist(), systems) for _ in range(_PLAIN_ORDERS)]

    return compare(
        f"Elo, {permutations:,} orders of {votes:,} votes, {systems} systems",
        lambda: elo_orders(comparisons, permutations),
        loop,
        rounds=rounds,
        target=_ELO_TARGET,
        note=f"a Python loop over {_PLAIN_ORDERS} orders, its time taken for {permutations}",
        plain_share=_PLAIN_ORDERS / permutations,
    )


# --- Bradley-Terry -------------------------------------------------------------------------------------------------


def decided(votes: Comparisons, *, samples: int) -> Comparisons:
    """The same votes without ties, which choix does not know; halves go to either side in turn."""
    turns = np.arange(len(votes)) % 2 == 0
    return replace(
        votes,
        score=np.where((votes.score > 0.5) | ((votes.score == 0.5) & turns), 1.0, 0.0),
        tie=np.zeros(len(votes)),
        samples=tuple(str(place % samples) for place in range(len(votes))),
    )


def bench_bradley_terry(votes: int, systems: int, clusters: Unit, fits: int, rounds: int) -> Comparison:
    """Ratings, 1,000 resamples, differences and places in at most the time of ``fits`` fits of choix."""
    comparisons = decided(random_votes(votes, systems), samples=votes // 50)
    rows = zip(comparisons.a.tolist(), comparisons.b.tolist(), comparisons.score.tolist(), strict=True)
    data = [(a, b) if score else (b, a) for a, b, score in rows]
    strengths = choix.ilsr_pairwise(systems, data)
    ours = bradley_terry(comparisons, clusters=clusters, resamples=1)
    ratings = np.array(list(ours.ratings.values()), dtype=np.float64)
    apart = np.abs(ratings - 1000 - 400 / np.log(10) * (strengths - strengths.mean())).max()
    if apart > 1e-5:
        sys.exit(f"Bradley-Terry: ours and choix are {apart:.2g} points apart")
    return compare(
        f"Bradley-Terry, 1,000 resamples of {clusters}, {votes:,} votes, {systems} systems",
        lambda: bradley_terry(comparisons, clusters=clusters, resamples=1_000),
        lambda: choix.ilsr_pairwise(systems, data),
        rounds=rounds,
        target=1.0 if votes >= 100_000 else None,  # a resample of fewer votes costs us as much, and choix less
        note=f"one fit of choix.ilsr_pairwise, its time taken for {fits}",
        plain_share=1 / fits,
    )


# --- all -----------------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> bool:
    """Print the table and write ``bench/results/arena.json``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="rounds of alternation (default 3)")
    parser.add_argument("--quick", action="store_true", help="one round and fewer votes")
    options = parser.parse_args(arguments)
    rounds = 1 if options.quick else options.rounds
    votes = 10_000 if options.quick else 100_000
    chosen = bench_elo(votes, 50, votes // 100 if options.quick else 1_000, rounds)
    fits: tuple[tuple[Unit, int], ...] = (("votes", 5), ("samples", 20))
    results = [chosen, *(bench_bradley_terry(votes, 50, unit, most, rounds) for unit, most in fits)]
    print(table(results))
    bounded = chosen.ours_peak is None or chosen.ours_peak <= _ELO_MEMORY
    if not bounded:
        print(f"Elo took {chosen.ours_peak:.0f} MiB; at most {_ELO_MEMORY:.0f} MiB are wanted")
    save("arena", results)
    return bounded and all(one.met for one in results)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
