"""What every text answer goes through before anything is looked for in it.

Chat tokens and reasoning go, an answer tag, a JSON object and a box of LaTeX are opened, and the rest is made plain.
The numbers of the steps are those of docs/replies.md.
"""

from __future__ import annotations

import re
from typing import Any

from gen_eval.records.reasons import Flag
from gen_eval.replies.plain_text import clean, last_of
from gen_eval.replies.reading import Reading
from gen_eval.replies.repair import parse
from gen_eval.replies.words import ANSWER_KEYS, REASONING_TAGS, any_of

_CHAT_TOKEN = re.compile(r"<\|[^<>|\n]{0,100}\|>|</?s>")
_REASONING = re.compile(rf"<(?P<closing>/?)(?P<name>{any_of(REASONING_TAGS)}) ?>", re.IGNORECASE)
_ANSWER_OPEN = re.compile(r"<answer ?>", re.IGNORECASE)
_ANSWER_CLOSE = re.compile(r"</answer ?>", re.IGNORECASE)
_FENCE = "```"
_LANGUAGE = re.compile(r"[ \t]*[\w+.-]{1,20}[ \t]*(?:\r?\n|(?=[\[{]))")
_MOST_BLOCKS = 32  # fenced blocks that are tried, from the last
_ONE_LETTER = re.compile(r"[\[{]\s?[A-Za-z]\s?[\]}]")
_PAIR = re.compile(
    r"""["'](?:final[ _-]answer|answer|choice|option|prediction)["']\s{0,9}:\s{0,9}"""
    r"""(?P<value>"[^"\\]*+(?:\\.[^"\\]*+)*+"|'[^'\\]*+(?:\\.[^'\\]*+)*+'|true(?!\w)|false(?!\w))""",
    re.IGNORECASE | re.DOTALL,
)
_BOXED = re.compile(r"(?:\\b|\x08)oxed\s?\{")  # a backspace is what JSON makes of an escape that was not meant as one
_WRAPPER = re.compile(r"\\(?:textbf|text|mathrm)\s?\{([^{}]*)\}")


class _Stop(Exception):  # noqa: N818 - not an error: the reply has been read as far as it goes
    def __init__(self, failure: Flag, rule: str) -> None:
        super().__init__(failure)
        self.failure, self.rule = failure, rule


def unwrap(reply: object) -> Reading[str]:
    """The reply without chat tokens and reasoning, inside of its answer tag (steps 1 to 4).

    Args:
        reply: what the model said; anything but text is a named failure.

    Returns:
        The text, which may be empty, with the steps that changed it in ``detail["prelude"]``; or ``empty`` (no
        reply), ``not_text``, ``unclosed_reasoning``.
    """
    steps: list[int] = []
    try:
        text = _unwrapped(reply, steps)
    except _Stop as stop:
        return Reading(None, stop.failure, stop.rule)
    return Reading(text, None, "prelude 4", detail=_steps(steps))


def prelude(reply: object) -> Reading[str]:
    """The plain text of the answer in ``reply`` (steps 1 to 8).

    Args:
        reply: what the model said; anything but text is a named failure.

    Returns:
        The text, never empty, with the steps that changed it in ``detail["prelude"]``; or ``empty``, ``not_text``,
        ``unclosed_reasoning``, ``bad_json``, ``ambiguous`` (a list of several), ``no_answer`` (JSON without one).
    """
    steps: list[int] = []
    try:
        text = _opened(_unwrapped(reply, steps), steps)
    except _Stop as stop:
        return Reading(None, stop.failure, stop.rule, detail=_steps(steps))
    if "oxed" in text and (inner := _last_box(text)) is not None:
        text = inner
        steps.append(6)
    text = clean(text)
    if not re.search(r"\w", text):
        return Reading(None, Flag.EMPTY, "prelude 8", detail=_steps(steps))
    return Reading(text, None, "prelude 7", detail=_steps(steps))


def _steps(steps: list[int]) -> dict[str, Any]:
    return {"prelude": steps} if steps else {}


def _unwrapped(reply: object, steps: list[int]) -> str:
    if reply is None:
        raise _Stop(Flag.EMPTY, "prelude 1")
    if not isinstance(reply, str):
        raise _Stop(Flag.NOT_TEXT, "prelude 1")
    text = reply
    for number, step in ((2, _without_chat_tokens), (3, _without_reasoning), (4, _answer_tag)):
        changed = step(text)
        if changed != text:
            steps.append(number)
        text = changed
    return text


def _without_chat_tokens(text: str) -> str:
    return _CHAT_TOKEN.sub(" ", text) if "<" in text else text


def _without_reasoning(text: str) -> str:
    """Drop closed blocks, and all before a closing tag that is left; an opening tag that is left ends the reading."""
    tags = list(_REASONING.finditer(text))
    if not tags:
        return text
    kept: list[tuple[int, int]] = []  # stretches of text outside of closed blocks
    left: list[re.Match[str]] = []
    at, index, closings = 0, 0, _closings(tags)
    while index < len(tags):
        tag, closing = tags[index], closings[index]
        if closing is None:
            left.append(tag)
            index += 1
        else:
            kept.append((at, tag.start()))
            at, index = tags[closing].end(), closing + 1
    kept.append((at, len(text)))
    since = max((tag.end() for tag in left if tag["closing"]), default=0)
    if any(not tag["closing"] and tag.start() >= since for tag in left):
        raise _Stop(Flag.UNCLOSED_REASONING, "prelude 3")
    return " ".join(text[max(start, since) : end] for start, end in kept if end >= since)


def _closings(tags: list[re.Match[str]]) -> list[int | None]:
    """For each opening tag the next closing one of its name, for others and where there is none ``None``."""
    found: list[int | None] = [None] * len(tags)
    following: dict[str, int] = {}
    for index in range(len(tags) - 1, -1, -1):
        name = tags[index]["name"].lower()
        if tags[index]["closing"]:
            following[name] = index
        else:
            found[index] = following.get(name)
    return found


def _answer_tag(text: str) -> str:
    last = last_of(_ANSWER_OPEN.finditer(text))
    if last is None:
        return text
    closing = _ANSWER_CLOSE.search(text, last.end())
    return text[last.end() : closing.start() if closing else len(text)]


# --- step 5


def _opened(text: str, steps: list[int]) -> str:
    """The answer inside of JSON; else the text, without a code fence around all of it."""
    parts = text.split(_FENCE)  # what stands at odd places is fenced
    fenced = len(parts) in (2, 3) and not parts[0].strip() and not "".join(parts[2:]).strip()
    whole = (_block(parts[1]) if fenced else text).strip()
    found = _whole_value(whole)
    if found is None and not fenced:
        found = _block_value([_block(part) for part in parts[1::2][-_MOST_BLOCKS:]])
    if found is None and whole.startswith("{") and not _ONE_LETTER.fullmatch(whole):
        found = _last_pair(whole)
    if found is not None:
        steps.append(5)
        return found
    return whole


def _block(part: str) -> str:
    """The content of a fenced block, without the name of its language."""
    language = _LANGUAGE.match(part)
    return part[language.end() :] if language and part[language.end() :].strip() else part


def _whole_value(text: str) -> str | None:
    if not text.startswith(("{", "[")) or _ONE_LETTER.fullmatch(text):
        return None
    value = _parsed(text)
    if isinstance(value, dict):
        return _of_object(value)
    if not isinstance(value, list) or (value and _only_numbers(value)):
        return None
    return _of_object(value[0]) if len(value) == 1 and isinstance(value[0], dict) else _text_of(value)


def _block_value(blocks: list[str]) -> str | None:
    for block in reversed(blocks):
        if block.lstrip().startswith("{") and isinstance(value := _parsed(block.strip()), dict):
            return _of_object(value)
    return None


def _parsed(text: str) -> Any:
    try:
        return parse(text)
    except (ValueError, RecursionError):
        return None


def _only_numbers(values: list[Any]) -> bool:
    """Whether a list holds coordinates, which are no answers to choose from."""
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _of_object(value: dict[str, Any]) -> str:
    keys: dict[str, Any] = {}
    for key, content in value.items():
        keys.setdefault(re.sub(r"[\s-]", "_", str(key).strip().casefold()), content)
    for name in ANSWER_KEYS:
        if name in keys:
            return _text_of(keys[name])
    if len(value) == 1:
        return _text_of(next(iter(value.values())))
    raise _Stop(Flag.NO_ANSWER, "prelude 5")


def _text_of(value: Any) -> str:
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and value:
        raise _Stop(Flag.AMBIGUOUS, "prelude 5")
    if value is None or isinstance(value, list | dict):
        raise _Stop(Flag.NO_ANSWER, "prelude 5")
    return str(value)


def _last_pair(text: str) -> str:
    """The last complete answer in an object that is broken."""
    last = last_of(_PAIR.finditer(text))
    if last is None:
        raise _Stop(Flag.BAD_JSON, "prelude 5")
    value = last["value"]
    if value[0] not in "\"'":
        return "yes" if value.lower() == "true" else "no"
    return str(parse(value))


# --- step 6


def _last_box(text: str) -> str | None:
    last = last_of(_BOXED.finditer(text))
    if last is None:
        return None
    depth, at = 1, last.end()
    for at in range(last.end(), len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            break
    inner = text[last.end() : at] if depth == 0 else text[last.end() :]
    return _WRAPPER.sub(r"\1", inner)
