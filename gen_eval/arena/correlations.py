"""What :func:`gen_eval.arena.correlate` gives: how far scores agree with people, and all that r alone hides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gen_eval.arena.coefficients import COEFFICIENTS, LEAST_DRAWN, Coefficient
from gen_eval.arena.names import level_name
from gen_eval.arena.permutation import PermutationTest
from gen_eval.records import Reason

if TYPE_CHECKING:
    import pandas as pd

Ends = tuple[float, float]

BOOTSTRAP_RULE = f"systems drawn with replacement, percentiles; none of fewer than {LEAST_DRAWN} systems"


@dataclass(frozen=True)
class Point:
    """One system in the scatter plot."""

    model: str
    rating: float
    score: float
    real: bool

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return dict(vars(self))


@dataclass(frozen=True)
class Subset:
    """The three coefficients over some of the systems; all ``None`` exactly when there is a reason."""

    n: int
    pearson: float | None
    spearman: float | None
    kendall_tau_b: float | None
    reason: Reason | None

    def value(self, name: Coefficient) -> float | None:
        """The coefficient of that name."""
        found: float | None = getattr(self, name)
        return found

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**vars(self), "reason": None if self.reason is None else str(self.reason)}


@dataclass(frozen=True)
class PairCorrelation:
    """One column of ratings against one column of scores, one point a system.

    The sign is that of the columns as given: where the score is an error, agreement with people is negative.

    Attributes:
        name: the x under which the two were paired.
        rating: name of the rating.
        score: name of the score.
        n: systems with both numbers.
        reason: why nothing has a value (``too_few_systems``, ``no_variance``, or why there are no ratings:
            ``not_connected``, ``one_sided``); ``None`` with values.
        pearson: -1..1.
        pearson_p: two-sided, Student's t with n - 2 degrees of freedom.
        pearson_fisher: ends of Fisher's interval.
        spearman: -1..1.
        spearman_p: two-sided, Student's t of the ranks.
        kendall_tau_b: -1..1.
        kendall_p: two-sided, exact without ties, else normal.
        permutation: two-sided p values that assume nothing about the distribution.
        bootstrap: by coefficient, ends of the percentile interval over resamples of the systems.
        bootstrap_widened: coefficients whose percentiles left out their value, so that an end was moved to it.
        bootstrap_undefined: resamples without a coefficient (fewer than two different values); left out.
        resamples: that were drawn.
        seed: of the draws.
        level: nominal coverage of both intervals.
        leave_one_out: by coefficient and system, the value without that system.
        most_influential: the system whose removal moves r most.
        without_real: the coefficients without the real videos; ``None`` where there are none among the systems.
        real: names of the systems that are real videos.
        points: the systems that count, in the order of the ratings.
        only_in_ratings: systems that the scores do not name.
        only_in_scores: systems that the ratings do not name.
        left_out: systems that both name and one has no number for.
        score_higher_is_better: ``False`` where the score is an error.
        rating_higher_is_better: likewise.
        message: the reason in words, where there is more to say.
    """

    name: str
    rating: str
    score: str
    n: int
    reason: Reason | None
    pearson: float | None
    pearson_p: float | None
    pearson_fisher: Ends | None
    spearman: float | None
    spearman_p: float | None
    kendall_tau_b: float | None
    kendall_p: float | None
    permutation: PermutationTest
    bootstrap: Mapping[Coefficient, Ends | None]
    bootstrap_widened: tuple[Coefficient, ...]
    bootstrap_undefined: int
    resamples: int
    seed: int
    level: float
    leave_one_out: Mapping[Coefficient, Mapping[str, float | None]]
    most_influential: str | None
    without_real: Subset | None
    real: tuple[str, ...]
    points: tuple[Point, ...]
    only_in_ratings: tuple[str, ...]
    only_in_scores: tuple[str, ...]
    left_out: tuple[str, ...]
    score_higher_is_better: bool
    rating_higher_is_better: bool
    message: str = ""

    @property
    def named(self) -> int:
        """Systems that the ratings or the scores name."""
        return self.n + len(self.left_out) + len(self.only_in_ratings) + len(self.only_in_scores)

    @property
    def leave_one_out_pearson(self) -> Mapping[str, float | None]:
        """Pearson's r without each system."""
        return self.leave_one_out["pearson"]

    @property
    def without_source_videos(self) -> Subset | None:
        """The coefficients without the real videos, under the name that the JSON has."""
        return self.without_real

    @property
    def pearson_fisher_95(self) -> Ends | None:
        """Fisher's interval, where its level is 95 %."""
        return self.pearson_fisher if self._is_95() else None

    @property
    def bootstrap_95(self) -> Ends | None:
        """Bootstrap interval of r, where its level is 95 %."""
        return self.bootstrap["pearson"] if self._is_95() else None

    @property
    def oriented(self) -> int:
        """1, or -1 where exactly one of the two columns is an error: r times it is agreement."""
        return 1 if self.score_higher_is_better == self.rating_higher_is_better else -1

    @property
    def sign_note(self) -> str:
        """What the sign of the coefficients means."""
        if self.oriented == 1:
            return "positive: the score agrees with people"
        return f"{self.score} and {self.rating} point in opposite directions (one is an error): negative is agreement"

    def _is_95(self) -> bool:
        return level_name(self.level) == "95"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; the names of intervals carry their level in percent."""
        percent = level_name(self.level)
        return {
            "n": self.n,
            "N": self.named,
            "reason": None if self.reason is None else str(self.reason),
            "message": self.message,
            "rating": self.rating,
            "score": self.score,
            "score_higher_is_better": self.score_higher_is_better,
            "sign": self.sign_note,
            "pearson": self.pearson,
            "pearson_p": self.pearson_p,
            f"pearson_fisher_{percent}": _listed(self.pearson_fisher),
            "spearman": self.spearman,
            "spearman_p": self.spearman_p,
            "kendall_tau_b": self.kendall_tau_b,
            "kendall_p": self.kendall_p,
            "permutation_p": self.permutation.to_json(),
            "permutation_rule": self.permutation.rule,
            "leave_one_out_pearson": dict(self.leave_one_out["pearson"]),
            "leave_one_out_spearman": dict(self.leave_one_out["spearman"]),
            "leave_one_out_kendall": dict(self.leave_one_out["kendall_tau_b"]),
            "most_influential": self.most_influential,
            "without_source_videos": None if self.without_real is None else self.without_real.to_json(),
            "real": list(self.real),
            f"bootstrap_{percent}": _listed(self.bootstrap["pearson"]),
            f"bootstrap_spearman_{percent}": _listed(self.bootstrap["spearman"]),
            f"bootstrap_kendall_{percent}": _listed(self.bootstrap["kendall_tau_b"]),
            "bootstrap_widened": list(self.bootstrap_widened),
            "bootstrap_rule": BOOTSTRAP_RULE,
            "bootstrap_undefined": self.bootstrap_undefined,
            "resamples": self.resamples,
            "seed": self.seed,
            "level": self.level,
            "points": [point.to_json() for point in self.points],
            "only_in_ratings": list(self.only_in_ratings),
            "only_in_scores": list(self.only_in_scores),
            "left_out": list(self.left_out),
        }

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        if self.reason is not None:
            return f"{self.name}: no correlation ({self.reason}, n = {self.n}). {self.message}".rstrip(". ")
        percent = level_name(self.level)
        assert self.pearson is not None
        lines = [
            f"{self.name} (n = {self.n}): {self.sign_note}",
            f"  Pearson {self.pearson:.3f}, {percent} % Fisher {_shown(self.pearson_fisher)}, "
            f"systems resampled {_shown(self.bootstrap['pearson'])}, p = {self.pearson_p:.3g}",
            f"  Spearman {self.spearman:.3f}, Kendall tau-b {self.kendall_tau_b:.3f}",
        ]
        if self.most_influential is not None:
            without = self.leave_one_out["pearson"][self.most_influential]
            lines.append(f"  without {self.most_influential} (moves r most): Pearson {without:.3f}")
        if self.without_real is None:
            lines.append("  no real videos among the systems")
        else:
            figures = ", ".join(_figure(self.without_real.value(name)) for name in COEFFICIENTS)
            lines.append(f"  without real videos ({', '.join(self.real)}): Pearson, Spearman, tau-b {figures}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Correlations(Mapping[str, PairCorrelation]):
    """Every rating with the score of the same x.

    Attributes:
        pairs: by x, in the order of the ratings.
        unpaired: under ``ratings`` and ``scores`` the names of the columns without a partner.
    """

    pairs: Mapping[str, PairCorrelation]
    unpaired: Mapping[str, tuple[str, ...]]

    def __getitem__(self, name: str) -> PairCorrelation:
        return self.pairs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    def to_json(self) -> dict[str, Any]:
        """The document of ``gen-eval arena correlate --json``."""
        return {
            "pairs": {name: pair.to_json() for name, pair in self.pairs.items()},
            "unpaired": {side: list(names) for side, names in self.unpaired.items()},
        }

    def to_pandas(self) -> pd.DataFrame:
        """One line a pair: n, coefficients, ends of the Fisher interval, permutation p, and without real videos."""
        import pandas as pd

        lines = []
        for name, pair in self.pairs.items():
            lower, upper = pair.pearson_fisher or (None, None)
            bare = pair.without_real
            lines.append(
                {
                    "pair": name,
                    "n": pair.n,
                    "pearson": pair.pearson,
                    "lower": lower,
                    "upper": upper,
                    "spearman": pair.spearman,
                    "kendall_tau_b": pair.kendall_tau_b,
                    "permutation_p": pair.permutation.pearson,
                    "pearson_without_real": None if bare is None else bare.pearson,
                    "spearman_without_real": None if bare is None else bare.spearman,
                    "reason": None if pair.reason is None else str(pair.reason),
                }
            )
        return pd.DataFrame(lines)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = [str(pair) for pair in self.pairs.values()]
        lines += [f"{side} without a partner: {', '.join(names)}" for side, names in self.unpaired.items() if names]
        return "\n".join(lines) or "no rating and score of the same name"


def _listed(ends: Ends | None) -> list[float] | None:
    return None if ends is None else list(ends)


def _shown(ends: Ends | None) -> str:
    return "without a value" if ends is None else f"[{ends[0]:.3f}, {ends[1]:.3f}]"


def _figure(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"


__all__ = ["Correlations", "Ends", "PairCorrelation", "Point", "Subset"]
