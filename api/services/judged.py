"""Who judged a run, as far as it moves scores: runs that were judged in different ways do not compare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

STORED = "stored replies"
"""Name of the judge of replies that existed already: nobody knows who gave them."""

_SEVERAL = frozenset({"options", "parameters of the judge"})


def ways_differ(first: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    """What differs between the judges of two manifests, in words; nothing when they judged alike.

    Counted are the model with its revision, what answered (its name and engine), prompt, what was shown, options, and
    the parameters of a simulated judge; not where it answered, what it cost, or how many conditions were asked beside.
    Of stored replies nobody knows who gave them: two runs of them are not told apart.
    """
    one, two = (_ways(manifest) for manifest in (first, other))
    if one is None or two is None:
        if one is not two:
            yield "who gave stored replies is not known"
        return
    for what, value in one.items():
        if value != two[what]:
            verb = "differ" if what in _SEVERAL else "differs"
            yield f"{what} {verb} ({_shown(value)} and {_shown(two[what])})"


def way_of(manifest: Mapping[str, Any]) -> str:
    """The way of judging as text: equal texts, equal ways."""
    return repr(_ways(manifest))


def _ways(manifest: Mapping[str, Any]) -> dict[str, Any] | None:
    judge = manifest["judge"]
    if judge["name"] == STORED:
        return None
    model, identity = judge["model"], judge["identity"]
    options = {name: value for name, value in judge["options"].items() if name != "logprobs"}
    return {
        "the judge": [model["id"], model["revision"]],
        "what answered": [identity["model"], identity["revision"], identity["engine"]],
        "the prompt": judge["prompt"]["digest"][:12],
        "what was shown": manifest["preset"]["digest"][:12],
        "options": options,
        "parameters of the judge": model["parameters"],
    }


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(str(one) for one in value if one is not None)
    return str(value)


__all__ = ["STORED", "way_of", "ways_differ"]
