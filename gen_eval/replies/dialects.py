"""Replies read as the public code of a benchmark reads them. Each way is data: ``configs/dialects``.

Two readings of public code disagree with one another as much as with the shared reader, so that a score under
``reference`` means nothing without the name of its dialect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from gen_eval.records.errors import InputError
from gen_eval.records.reasons import Flag
from gen_eval.replies.dialect_steps import Question, Settled, Step, step
from gen_eval.replies.reading import Reading

_LONGEST_KEPT = 200  # characters of what was extracted that go into the detail


@dataclass(frozen=True)
class Dialect:
    """One way of public code to read replies.

    Attributes:
        name: of its file.
        steps: names and steps, in order.
        accept: key -> what a reply must hold and what it must lack; empty where a letter is extracted.
        digest: SHA-256 of what the file says.
    """

    name: str
    steps: tuple[tuple[str, Step], ...]
    accept: Mapping[str, Mapping[str, str]]
    digest: str

    def accepted(self, text: str, key: str | None) -> str | None:
        """The key for which ``text`` is right; for another one than those of the file, whether it occurs."""
        if key is not None and key.lower() not in self.accept:
            return key if key.lower() in text else None
        for one, rule in self.accept.items():
            if rule["holds"] in text and rule["lacks"] not in text:
                return one
        return None


def dialect_names() -> list[str]:
    """The dialects that exist."""
    from gen_eval.protocols.loading import config_names

    return config_names("dialects")


@lru_cache(maxsize=32)
def load_dialect(name: str) -> Dialect:
    """The dialect of that name.

    Raises:
        InputError: there is none, or its file is malformed.
    """
    from gen_eval.protocols.loading import read_config
    from gen_eval.records.model import digest_of

    if name not in dialect_names():
        raise InputError(f"there is no dialect {name!r}; there are {', '.join(dialect_names())}")
    content = _with_base(f"the dialect {name!r}", read_config("dialects", name))
    called = f"the dialect {name!r}"
    if unknown := set(content) - {"steps", "accept", "other_keys"}:
        raise InputError(f"{called} has unknown fields {sorted(map(str, unknown))}; known: steps, accept, other_keys")
    accept = _accept(called, content.get("accept", {}))
    if bool(accept) != (content.get("other_keys") == "held"):
        raise InputError(f"{called}: `other_keys: held` goes with `accept`, and there is no other way")
    try:
        steps = tuple(step(one) for one in _steps_of(called, content))
    except ValueError as error:
        raise InputError(f"{called}: {error}") from error
    if not accept and steps[-1][0] not in ("draw", "equals_letter"):
        raise InputError(f"{called} must end with draw or equals_letter, so that something is read")
    return Dialect(name, steps, accept, digest_of(content))


def _with_base(called: str, content: dict[str, Any]) -> dict[str, Any]:
    """A dialect that is another one without some of its steps, written out."""
    from gen_eval.protocols.loading import read_config

    if "base" not in content:
        return content
    if set(content) != {"base", "without"} or not isinstance(content["without"], list):
        raise InputError(f"{called} must have `without`, a list of steps, and nothing else beside `base`")
    base = read_config("dialects", str(content["base"]))
    steps = _steps_of(called, base)
    return {**base, "steps": [one for one in steps if _name(one) not in content["without"]]}


def _steps_of(called: str, content: Mapping[str, Any]) -> list[Any]:
    steps = content.get("steps")
    if not isinstance(steps, list) or not steps:
        raise InputError(f"{called} must have a list of steps, not {steps!r}")
    return steps


def _name(written: Any) -> str:
    return str(next(iter(written), "")) if isinstance(written, dict) else str(written)


def _accept(called: str, accept: Any) -> dict[str, dict[str, str]]:
    if not isinstance(accept, dict):
        raise InputError(f"{called}: accept must map keys to {{holds: TEXT, lacks: TEXT}}, not {accept!r}")
    for key, rule in accept.items():
        fits = isinstance(key, str) and isinstance(rule, dict) and set(rule) == {"holds", "lacks"}
        if not fits or not all(isinstance(text, str) and text for text in rule.values()):
            raise InputError(f"{called}: {key!r} must map to {{holds: TEXT, lacks: TEXT}}, not {rule!r}")
    return accept


def read_reference(
    dialect: str,
    reply: object,
    *,
    options: Mapping[str, str | None] | None = None,
    key: str | None = None,
    question_id: str = "",
) -> Reading[str]:
    """What public code takes ``reply`` to be.

    Args:
        dialect: name of a file in ``configs/dialects``.
        reply: what the model said.
        options: letter -> text, ``None`` for a letter that is not used; for dialects that look for an option.
        key: text of the right answer; for dialects that extract nothing and only compare.
        question_id: seeds the draw of dialects that draw.

    Returns:
        The answer for which the reply would be right: it is right exactly when this equals the key (whatever the
        case). ``no_answer`` when it would be right for none. A letter may be one that is no option. ``random_draw`` is
        flagged. ``detail["extracted"]`` is what the code looked at last. Where nothing is extracted and the key is
        neither yes nor no, another value than the key is what was said instead.

    Raises:
        InputError: there is no such dialect.

    >>> print(read_reference("paibench_u", "Answer: C"))
    'A' by paibench_u first_shape
    >>> print(read_reference("substring", "Yes, there is nothing unusual", key="yes"))
    nothing (no_answer) by substring
    """
    rules = load_dialect(dialect)
    if not isinstance(reply, str):
        return Reading(None, Flag.EMPTY if reply is None else Flag.NOT_TEXT, dialect)
    question = Question(options or {}, question_id)
    text = reply
    for name, one in rules.steps:
        found = one(text, question)
        if isinstance(found, Settled):
            return _settled(found, text, f"{dialect} {name}")
        text = found
    return _compared(rules, text, key)


def _settled(found: Settled, text: str, rule: str) -> Reading[str]:
    extracted = rule.split()[1] in ("leading_option", "option_text")
    detail = {"extracted": found.value if extracted else text[:_LONGEST_KEPT]}
    flags = (Flag.RANDOM_DRAW,) if found.drawn else ()
    return Reading(found.value, None if found.value else Flag.NO_ANSWER, rule, flags, detail)


def _compared(rules: Dialect, text: str, key: str | None) -> Reading[str]:
    """The end of a dialect that has extracted nothing."""
    value = rules.accepted(text, key)
    if value is None and key is not None and key.lower() not in rules.accept and text:
        value = text
    return Reading(value, None if value is not None else Flag.NO_ANSWER, rules.name)
