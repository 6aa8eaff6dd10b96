"""Whether the parameters of an own protocol are of the form that its metric reads.

The protocols that ship with a metric are the model: an own one must name the same parameters, each with a value of the
same kind. Which numbers and which words of a ``measure`` section make sense is known where they are used.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from gen_eval.records import InputError, Reason

AVERAGES = ("sample_first", "pooled", "frame_weighted")
"""How the values of videos may become one number; see :func:`gen_eval.stats.aggregate`."""

CAPTION_CLIPS = ("counted", "left_out")
"""Whether clips that are named ``<id>_caption<k>`` enter a mean, or are passed over as by a scorer that does not know
these names."""

_NONE = "none"
_UNSHIPPED = {"matching": {"row_maximum"}}  # rules that no shipped protocol takes
_VIEW_SIZES = frozenset({"side", "crop"})  # numbers of a view that may be left out by this word

Sections = Mapping[str, Mapping[str, Any]]


def check_sections(where: str, sections: Mapping[str, Any]) -> None:
    """Refuse sections that are no mappings, unknown reasons and unknown averages.

    Args:
        where: what is checked, for the message.
        sections: as written, without ``base``.

    Raises:
        InputError: the value and what is expected.
    """
    for section, content in sections.items():
        if content is not None and not isinstance(content, Mapping):
            raise InputError(f"{where}: {section} must be a mapping, not {content!r}")
    reasons = sections.get("reasons") or {}
    for one in [*reasons, *reasons.values(), *(sections.get("exceptions") or {})]:
        if not isinstance(one, str) or one not in set(Reason):
            raise InputError(f"{where} uses the unknown reason {one!r}; docs/reasons.md lists them")
    aggregate = sections.get("aggregate") or {}
    if unknown := set(map(str, aggregate)) - {"members", "beside", "caption_clips"}:
        expected = "members, beside and caption_clips"
        raise InputError(f"{where}: aggregate has {', '.join(sorted(unknown))}; expected {expected}")
    if (clips := aggregate.get("caption_clips", CAPTION_CLIPS[0])) not in CAPTION_CLIPS:
        raise InputError(f"{where}: caption_clips is {clips!r}; expected {' or '.join(CAPTION_CLIPS)}")
    beside = aggregate.get("beside", [])
    for rule in [aggregate.get("members", AVERAGES[0]), *(beside if isinstance(beside, list) else [beside])]:
        if rule not in AVERAGES:
            raise InputError(f"{where}: aggregate has the rule {rule!r}; expected {', '.join(AVERAGES)}")


def check_parameters(where: str, sections: Sections, models: Iterable[Sections]) -> None:
    """Compare ``measure`` and ``decide`` with those of shipped protocols of the same metric.

    Args:
        where: what is checked, for the message.
        sections: with everything that was taken over from a base.
        models: the sections of the shipped protocols; none: nothing is known of the metric.

    Raises:
        InputError: a parameter is missing, not known, or of another kind.
    """
    known = list(models)
    if not known:
        return
    for section in ("measure", "decide"):
        values = [model[section] for model in known]
        _compare(f"{where}: {section}", sections[section], values, words=section == "decide")


def _compare(where: str, own: Mapping[str, Any], models: list[Mapping[str, Any]], *, words: bool) -> None:
    names = list(dict.fromkeys(name for model in models for name in model))
    if unknown := [str(name) for name in own if name not in names]:
        raise InputError(f"{where} has the unknown parameter {unknown[0]!r}; known are {', '.join(names) or 'none'}")
    if missing := [name for name in names if name not in own and all(name in model for model in models)]:
        raise InputError(f"{where} lacks {', '.join(missing)}; take them over with `base: corrected`")
    for name, value in own.items():
        _check_value(f"{where}: {name}", name, value, [model[name] for model in models if name in model], words=words)


def _check_value(where: str, name: str, value: Any, known: list[Any], *, words: bool) -> None:
    if isinstance(value, Mapping) and all(isinstance(one, Mapping) for one in known):
        _compare(where, value, known, words=words)
        return
    kinds = {_kind(one) for one in known}
    if "a number" in kinds and name in _VIEW_SIZES and value == _NONE:
        return
    if _NONE in known:  # the word that stands for a number
        kinds |= {"a number"}
    if _kind(value) not in kinds:
        raise InputError(f"{where} is {value!r}; expected {' or '.join(sorted(kinds))}, such as {known[0]!r}")
    choices = sorted({one for one in known if isinstance(one, str)} | _UNSHIPPED.get(name, set()))
    if words and isinstance(value, str) and value not in choices:
        raise InputError(f"{where} is {value!r}; expected {' or '.join(choices)}")


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float) and math.isfinite(value):
        return "a number"
    if isinstance(value, str):
        return "a word"
    if isinstance(value, list):
        return "a list"
    return "a mapping" if isinstance(value, Mapping) else f"no {type(value).__name__}"
