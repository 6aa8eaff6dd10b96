"""`arena rate`: votes, or the scores of videos, become ratings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from api.services.arena.sources import video_scores
from gen_eval.arena import ArenaRatings, bradley_terry, elo, read_votes, votes_from_scores
from gen_eval.arena.systems import REAL
from gen_eval.arena.votes import Votes
from gen_eval.protocols import load_protocol
from gen_eval.records import InputError
from gen_eval.records.errors import EXIT_DONE, EXIT_FAILED_ITEMS

Method = Literal["bradley-terry", "elo"]
Order = Literal["given", "time", "mean"]
Clusters = Literal["votes", "samples", "annotators"]


@dataclass(frozen=True)
class RatingRules:
    """How votes become ratings; ``None`` takes what the protocol says.

    Attributes:
        protocol: ``reference``, ``corrected``, or the path of a ``.yaml``.
        scores_protocol: under which scores are taken; ``None`` for the same, or ``corrected`` with one's own ``.yaml``.
        method: ``bradley-terry`` or ``elo``.
        order: of the votes, for Elo.
        k: points at stake in a vote, for Elo.
        permutations: random orders, for Elo.
        ties: ``half`` or ``davidson``, for Bradley-Terry.
        ridge: weight of the penalty on squared strengths; 0 for none.
        side: whether to fit what standing on the left is worth.
        pair_floor: see :func:`gen_eval.arena.bradley_terry`.
        interval: ``bootstrap`` (also with ``None``) or ``sandwich``, for Bradley-Terry.
        clusters: what is independent; ``None``: votes if everybody judged each sample once, else samples.
        resamples: of the bootstrap; ``None``: 10,000, for Elo 1,000.
        seed: of all that is drawn.
    """

    protocol: str = "corrected"
    scores_protocol: str | None = None
    method: Method | None = None
    order: Order | None = None
    k: float | None = None
    permutations: int | None = None
    ties: Literal["half", "davidson"] | None = None
    ridge: float | None = None
    side: bool | None = None
    pair_floor: int | None = None
    interval: Literal["bootstrap", "sandwich"] | None = None
    clusters: Clusters | None = None
    resamples: int | None = None
    seed: int = 0

    @property
    def of_scores(self) -> str:
        """The protocol under which scores are taken."""
        own = Path(self.protocol).suffix in {".yaml", ".yml"}
        return self.scores_protocol or ("corrected" if own else self.protocol)


@dataclass(frozen=True)
class RateRequest:
    """What to rate.

    Attributes:
        votes: file of votes; ``None`` for an automatic arena alone.
        scores: run folders and files with scores of videos: each of their metrics becomes an arena of its own.
        metrics: only these of them.
        tie_threshold: two videos whose scores differ by no more are equal; ``None`` is 0.
        real: systems that are real videos, for the plots.
        store: database URL when the rows of runs are not in their folders.
        lower_is_better: metrics that are errors, beside those that are known to be.
    """

    votes: Path | None = None
    rules: RatingRules = field(default_factory=RatingRules)
    scores: tuple[Path, ...] = ()
    metrics: tuple[str, ...] | None = None
    tie_threshold: float | None = None
    real: tuple[str, ...] = REAL
    store: str | None = None
    lower_is_better: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rated:
    """Ratings by people, and by metrics beside them.

    Attributes:
        ratings: of the votes; ``None`` without any.
        votes: what they were made from.
        automatic: metric -> ratings by its comparisons, sample by sample.
        real: systems that are real videos.
        sources: what was read.
    """

    ratings: ArenaRatings | None
    votes: Votes | None
    automatic: Mapping[str, ArenaRatings] = field(default_factory=dict)
    real: tuple[str, ...] = REAL
    sources: tuple[tuple[str, str], ...] = ()

    @property
    def exit_code(self) -> int:
        """1 when a line of the votes could not be used."""
        return EXIT_FAILED_ITEMS if self.votes is not None and self.votes.rejected else EXIT_DONE

    def to_json(self) -> dict[str, Any]:
        """The document of ``gen-eval arena rate --json``."""
        people = self.ratings
        if people is None:  # the parameters are those of each metric
            first = next(iter(self.automatic.values()))
            people = ArenaRatings(first.method, first.order, 0, {})
        return {**people.to_json(), "automatic": {name: one.to_json() for name, one in self.automatic.items()}}


def rate(request: RateRequest) -> Rated:
    """Ratings of the systems that votes, or scores of videos, compare.

    Raises:
        InputError: neither is given, a file cannot be read or holds no vote, or rules that contradict each other.
    """
    if request.votes is None and not request.scores:
        raise InputError("there is nothing to rate; give --votes FILE, or --scores with runs to compare video by video")
    about_scores = (request.metrics, request.tie_threshold, request.lower_is_better or None)
    if not request.scores and any(one is not None for one in about_scores):
        raise InputError(
            "--metrics, --tie-threshold and --lower-is-better are about --scores, and there are none; leave them out"
        )
    votes = None if request.votes is None else votes_in(request.votes)
    ratings = None if votes is None else rated(votes, request.rules)
    automatic = _automatic(request) if request.scores else {}
    given = [("votes", request.votes)] if request.votes is not None else []
    given += [("scores", path) for path in request.scores]
    sources = tuple((name, path.name) for name, path in given)
    return Rated(ratings, votes, automatic, request.real, sources)


def _automatic(request: RateRequest) -> dict[str, ArenaRatings]:
    """An arena a metric: of two videos of one sample the better one wins."""
    protocol = request.rules.of_scores
    found = {}
    given = video_scores(
        request.scores, request.metrics, protocol, store=request.store, lower_is_better=request.lower_is_better
    )
    for scores in given:
        preferred = votes_from_scores(scores, threshold=request.tie_threshold or 0.0)
        own = rated(Votes((), bare=preferred.comparisons), request.rules)
        facts = {"metric": scores.metric, "scores_protocol": scores.protocol, **preferred.facts()}
        found[scores.metric] = replace(own, options={**own.options, **facts})
    if not any(one.trackers for one in found.values()):
        raise InputError(
            "no two systems have a score of a video of the same sample; give runs (or rows) of two systems or more"
        )
    return found


def votes_in(path: Path) -> Votes:
    """The votes in ``path``.

    Raises:
        InputError: it cannot be read, or holds neither a vote nor a line that might have been one.
    """
    votes = read_votes(path)
    if not votes and not votes.rejected:
        raise InputError(
            f"{path} holds no vote; expected lines with id, sample, annotator, model_a, model_b, quality, …"
        )
    return votes


def rated(votes: Votes, rules: RatingRules) -> ArenaRatings:
    """Ratings of ``votes`` by ``rules``; no tracker at all when there is no vote.

    Raises:
        InputError: rules that contradict each other or the votes.
    """
    method = rules.method or str(load_protocol("rating", rules.protocol).measure["method"])
    _check(method, rules)
    protocol = load_protocol(method.replace("-", "_"), rules.protocol)
    settings = {**protocol.measure, **_given(rules, protocol.measure)}
    settings |= {"clusters": rules.clusters, "seed": rules.seed}
    facts = {"protocol": protocol.name, "protocol_digest": protocol.digest}
    if rules.resamples is not None:
        settings["resamples"] = rules.resamples
    if not len(votes):
        return ArenaRatings(method, settings.get("order"), 0, {}, votes.rejected, {**facts, **settings})
    try:
        if method == "elo":
            found = elo(votes, **settings)
        else:
            found = bradley_terry(votes, interval=_interval(rules), **settings)
    except (ValueError, TypeError) as error:
        raise InputError(str(error)) from error
    return replace(found, options={**facts, **found.options})


def _interval(rules: RatingRules) -> Literal["bootstrap", "sandwich"]:
    return rules.interval or ("sandwich" if rules.resamples == 0 else "bootstrap")


_OF_ELO = ("order", "k", "permutations")
_OF_BRADLEY_TERRY = ("ties", "ridge", "side", "pair_floor", "interval")


def _given(rules: RatingRules, known: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name in known if (value := getattr(rules, name, None)) is not None}


def _check(method: str, rules: RatingRules) -> None:
    """Refuse options of the other method: they would have no effect."""
    strangers = _OF_BRADLEY_TERRY if method == "elo" else _OF_ELO
    if given := [name for name in strangers if getattr(rules, name) is not None]:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise InputError(f"{options} has no effect on {method}; leave it out or choose the other --method")


__all__ = ["REAL", "RateRequest", "Rated", "RatingRules", "rate", "rated", "votes_in"]
