"""Which scores make up a total: data of the benchmark that publishes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from gen_eval.protocols.loading import config_names, read_config
from gen_eval.records import InputError

_SHOWN = ("any", "all")
_FIELDS = {"title", "mean_of", "shown_with"}


@dataclass(frozen=True)
class TotalRule:
    """A score that is the plain mean of others.

    Attributes:
        name: of the total.
        title: for people.
        mean_of: names of metrics, or of other totals.
        shown_with: whether ``any`` of its parts is enough to show it, or ``all`` are needed.
    """

    name: str
    title: str
    mean_of: tuple[str, ...]
    shown_with: str = "any"

    def to_json(self) -> dict[str, Any]:
        """As a configuration file has it."""
        return {"title": self.title, "mean_of": list(self.mean_of), "shown_with": self.shown_with}

    @classmethod
    def from_json(cls, name: str, content: Any) -> TotalRule:
        """The rule in ``content``.

        Raises:
            InputError: it is malformed.
        """
        given: Mapping[str, Any] = content if isinstance(content, Mapping) else {}
        parts = given.get("mean_of")
        if (
            not isinstance(parts, list)
            or not parts
            or not all(isinstance(one, str) for one in parts)
            or len(set(parts)) < len(parts)
            or set(given) - _FIELDS
            or given.get("shown_with", "any") not in _SHOWN
        ):
            raise InputError(
                f"the total {name!r} must be {{title, mean_of: [different names], shown_with: any or all}}, "
                f"not {content!r}"
            )
        return cls(name, str(given.get("title", name)), tuple(parts), given.get("shown_with", "any"))


def totals_of(metrics: Iterable[str]) -> dict[str, TotalRule]:
    """The totals of all benchmarks that one of ``metrics`` enters, by name, and those that they are made of.

    Raises:
        InputError: a configuration file is malformed.

    Example:
        >>> list(totals_of(["temporal_flickering"])), list(totals_of(["motion_smoothness"]))
        ([], ['quality', 'overall'])
    """
    rules, wanted = total_rules(), set(metrics)
    chosen = {name: rule for name, rule in rules.items() if wanted & _metrics_of(name, rules)}
    needed = {part for rule in chosen.values() for part in rule.mean_of if part in rules}
    return {name: rule for name, rule in rules.items() if name in chosen or name in needed}


@lru_cache(maxsize=1)
def total_rules() -> Mapping[str, TotalRule]:
    """Every total, those that others are made of first.

    Raises:
        InputError: a configuration file is malformed, or totals are made of each other in a circle.
    """
    found: dict[str, TotalRule] = {}
    for benchmark in config_names("benchmarks"):
        totals = read_config("benchmarks", benchmark).get("totals") or {}
        if not isinstance(totals, Mapping):
            raise InputError(f"the totals of the benchmark {benchmark} must be a mapping, not {type(totals).__name__}")
        for name, content in totals.items():
            found.setdefault(name, TotalRule.from_json(name, content))
    return ordered(found)


def ordered(rules: Mapping[str, TotalRule]) -> dict[str, TotalRule]:
    """``rules`` so that totals stand after those that they are made of.

    Raises:
        InputError: they are made of each other in a circle.
    """
    done: dict[str, TotalRule] = {}
    left = dict(rules)
    while left:
        free = [name for name, rule in left.items() if not set(rule.mean_of) & left.keys()]
        if not free:
            raise InputError(f"the totals {', '.join(sorted(left))} are made of each other in a circle")
        done |= {name: left.pop(name) for name in free}
    return done


def _metrics_of(name: str, rules: Mapping[str, TotalRule]) -> set[str]:
    if name not in rules:
        return {name}
    return {metric for part in rules[name].mean_of for metric in _metrics_of(part, rules)}
