"""What an answer that is no reply means: which reason it becomes, and whether asking again may help.

=====================================================  ==============================================================
status or wording                                      what becomes of it
=====================================================  ==============================================================
408, 425, 429, 5xx                                     ``endpoint_error``, asked again; ``Retry-After`` is heeded
prompt longer than the model's context                 ``context_overflow``
refused for its content                                ``content_filter``
401, 403, a key that is not valid, no quota or credit  the run ends: nothing else would fare better
404, unknown model                                     the run ends, naming what the server has
vLLM that takes no options of frames                   the run ends, naming the server's switch
any other 4xx, a redirect                              ``endpoint_error``, not asked again
=====================================================  ==============================================================
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from gen_eval.mllm.client import ChatError
from gen_eval.records import GenEvalError, InputError, MissingPart, Reason

LONGEST_QUOTE = 400
"""Characters of a server's words that go into a message."""

_AGAIN = frozenset({408, 425, 429})
_LASTING = frozenset({501, 505})
_OVERFLOW = (
    "context_length_exceeded",
    "maximum context length",
    "maximum model length",
    "context length is only",
    "context window",
    "exceed context limit",
    "exceeds the available context",
    "exceed the context size",
    "max_model_len",
    "prompt is too long",
    "prompt too long",
    "input token count",
    "max_new_tokens` must be <=",
    "inputs` must have less than",
    "longer than the model's context length",
    "exceeds the maximum allowed length",
    "max_tokens must be at least 1, got -",
    "input is too long",
    "model_context_window_exceeded",
)
_FILTERED = (
    "content_filter",
    "content_policy_violation",
    "responsibleaipolicyviolation",
    "content management policy",
    "data_inspection_failed",
    "violating our usage policy",
    "request was flagged",
    "prompt was flagged",
)
_NO_QUOTA = ("insufficient_quota", "credit balance is too low", "insufficient balance", "billing_hard_limit_reached")
_BAD_KEY = ("api_key_invalid", "api key not valid", "invalid_api_key", "incorrect api key")
_NO_FRAME_OPTIONS = ("--trust-request-mm-kwargs",)
_UNKNOWN_MODEL = ("model_not_found", "server is pinned to", "is not found for api version")


@dataclass(frozen=True)
class Place:
    """Where a request went, for messages.

    Attributes:
        host: with port.
        key_env: environment variable that the key comes from, if any.
        key: the key, so that a server which repeats it is not quoted with it.
    """

    host: str
    key_env: str | None = None
    key: str | None = None

    def quote(self, text: str) -> str:
        """``text`` on one line, shortened, without the key."""
        plain = "".join(sign if sign.isprintable() else " " for sign in text[: 4 * LONGEST_QUOTE])
        words = " ".join(plain.split())
        if self.key:
            words = words.replace(self.key, "***")
        return words if len(words) <= LONGEST_QUOTE else f"{words[: LONGEST_QUOTE - 1]}…"

    @property
    def key_hint(self) -> str:
        """What to do about a key."""
        if self.key_env is None:
            return "name the environment variable that holds the key in the model entry (endpoint.api_key_env)"
        return f"set {self.key_env} to a key that is valid for it"


def failure_of(status: int, headers: Mapping[str, str], document: Any, text: str, place: Place) -> GenEvalError:
    """The error that an HTTP answer stands for.

    Args:
        status: of the answer, not 2xx.
        headers: of the answer, looked up in lower case.
        document: its body as JSON; ``None`` when it is none.
        text: its body as text.
        place: where it came from.
    """
    said = place.quote(words_of(document) or text) or "no words"
    lower = f"{text[:100_000]}".lower()
    if 300 <= status < 400:
        target = place.quote(headers.get("location", "?"))
        message = f"{place.host} sends to {target}; redirects are not followed: set the entry's base_url to the address"
        return ChatError(Reason.ENDPOINT_ERROR, message, {"status": status})
    ending = _ending(status, lower, said, place)
    if ending is not None:
        return ending
    detail = {"status": status, "said": said}
    if status in (400, 413, 422, 500) and _any(_OVERFLOW, lower):
        return ChatError(Reason.CONTEXT_OVERFLOW, f"the question does not fit the model's context: {said}", detail)
    if status in (400, 422) and _any(_FILTERED, lower):
        return ChatError(Reason.CONTENT_FILTER, f"{place.host} declined the request: {said}", detail)
    again = status in _AGAIN or (status >= 500 and status not in _LASTING)
    return ChatError(
        Reason.ENDPOINT_ERROR,
        f"{place.host} answered {status}: {said}",
        detail,
        retry=again,
        retry_after=(asked_pause(headers) or _delay_within(document)) if again else None,
    )


def _ending(status: int, lower: str, said: str, place: Place) -> GenEvalError | None:
    """The error of what ends the run, because every other request would meet it too."""
    if status == 402 or (status in (400, 403, 429) and _any(_NO_QUOTA, lower)):
        return MissingPart(f"the account at {place.host} has nothing left to spend: {said}")
    if status in (401, 403) or (status == 400 and _any(_BAD_KEY, lower)):
        return MissingPart(f"{place.host} refuses the request ({status}: {said}); {place.key_hint}")
    if status == 400 and _any(_NO_FRAME_OPTIONS, lower):
        return MissingPart(
            f"{place.host} does not take frames as one video with their times: start it with "
            "--trust-request-mm-kwargs, or have loose pictures shown (`sees: {form: images}` in the model entry)"
        )
    if status == 404 or (status == 400 and _any(_UNKNOWN_MODEL, lower)):
        return InputError(f"{place.host} has no such model or address ({status}: {said})")
    return None


def tells_overflow(text: str) -> bool:
    """Whether an engine's words say that a prompt is longer than its context.

    >>> tells_overflow("The decoder prompt (length 90) is longer than the maximum model length of 64.")
    True
    """
    return _any(_OVERFLOW, text[:100_000].lower())


def _any(marks: tuple[str, ...], lower: str) -> bool:
    return any(mark in lower for mark in marks)


def words_of(document: Any) -> str:
    """What an error body says, by the shapes in use; empty when it has none of them."""
    if isinstance(document, list) and document:
        document = document[0]
    if not isinstance(document, Mapping):
        return ""
    error = document.get("error", document)
    if isinstance(error, str):
        return error
    if not isinstance(error, Mapping):
        return ""
    found = error.get("message", error.get("detail"))
    if found is None:
        return ""
    code = error.get("code") if isinstance(error.get("code"), str) else None
    return f"{found} ({code})" if code else str(found)


def asked_pause(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks to wait: ``retry-after-ms``, or ``Retry-After`` in seconds or as a date.

    >>> asked_pause({"retry-after": "7"}), asked_pause({"retry-after": "soon"})
    (7.0, None)
    """
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        found = _number(headers.get(name))
        if found is not None:
            return max(found * unit, 0.0)
    try:
        then = parsedate_to_datetime(headers["retry-after"]).timestamp()
    except (KeyError, ValueError, TypeError, OverflowError):
        return None
    try:  # by the server's own clock, which ours may differ from
        now = parsedate_to_datetime(headers["date"]).timestamp()
    except (KeyError, ValueError, TypeError, OverflowError):
        now = time.time()
    return max(then - now, 0.0)


def _delay_within(document: Any) -> float | None:
    """Seconds to wait as Google's interfaces say it: within the error's details."""
    error = document.get("error") if isinstance(document, Mapping) else None
    details = error.get("details") if isinstance(error, Mapping) else None
    for one in details if isinstance(details, list) else ():
        delay = one.get("retryDelay") if isinstance(one, Mapping) else None
        if isinstance(delay, str):
            found = _number(delay.removesuffix("s"))
            return None if found is None else max(found, 0.0)
    return None


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None
