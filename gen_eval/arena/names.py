"""What the names of the documents are called where people read them: in sentences, tables and figures."""

from __future__ import annotations

_CALLED = {
    "pearson": "Pearson",
    "spearman": "Spearman",
    "kendall_tau_b": "Kendall tau-b",
    "bradley-terry": "Bradley-Terry",
    "elo": "Elo",
    "davidson": "Davidson",
    "always_same": "always the same answer",
    "below_chance": "agrees less than by chance",
    "fast": "much faster than others",
    "nominal": "four answers",
    "ties_merged": "both ties as one",
    "interval": "interval on 1, ½, 0",
    "not_identified": "no ratings",
    "a": "A better",
    "b": "B better",
}


def called(name: str) -> str:
    """A name of ours (a coefficient, method, option, warning), never one that a user gave, in words.

    >>> called("kendall_tau_b"), called("pair_floor")
    ('Kendall tau-b', 'pair floor')
    """
    return _CALLED.get(name, name.replace("_", " "))


def level_name(level: float) -> str:
    """A level of intervals in percent, as it stands in names and sentences: ``95`` for 0.95.

    >>> level_name(0.95), level_name(0.999)
    ('95', '99.9')
    """
    return f"{100 * level:.10g}"


__all__ = ["called", "level_name"]
