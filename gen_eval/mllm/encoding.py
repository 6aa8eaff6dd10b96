"""How the parts of a request are written down for servers, and how lists of what they send are read."""

from __future__ import annotations

import json
import re
import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gen_eval.mllm.chat import ChatRequest, Frames, Image, Part, Text, TokenChance, Usage, VideoFile
from gen_eval.mllm.client import Capabilities, ChatError
from gen_eval.mllm.showing import loose_parts
from gen_eval.records import InputError, Reason

_MEDIA_TYPE = re.compile(r"[a-z]+/[a-z0-9.+-]+")
_MOST_TOKENS = 2**53
"""More is no count: no context is as long, and prices times it could not be told apart."""


class Verbatim(str):
    """Text that stands in JSON as it is: base64 and what is put before it. See :func:`as_json`."""

    __slots__ = ()


def address_of(picture: Image) -> Verbatim:
    """The picture as a ``data:`` address."""
    return _address(picture.media_type, picture.base64)


def address_of_video(*pieces: str, media_type: str) -> Verbatim:
    """A video, or the pictures that it is made of, in base64, as a ``data:`` address."""
    return _address(media_type, ",".join(pieces))


def _address(media_type: str, content: str) -> Verbatim:
    if not _MEDIA_TYPE.fullmatch(media_type):
        raise InputError(f"a picture's media type must be like image/jpeg, not {media_type!r}")
    return Verbatim(f"data:{media_type};base64,{content}")


def as_json(body: Mapping[str, Any]) -> bytes:
    """``body`` as JSON.

    Pictures are put in as they are: looking for something to escape in megabytes of base64 would take longer than
    everything else that is done for a request.

    >>> as_json({"a": [Verbatim("x"), 1.5]})
    b'{"a": ["x", 1.5]}'
    """
    kept: list[str] = []
    mark = secrets.token_hex(8)  # no text can hold it

    def shortened(value: Any) -> Any:
        if isinstance(value, Verbatim):
            kept.append(value)
            return mark
        if isinstance(value, dict):
            return {key: shortened(one) for key, one in value.items()}
        return [shortened(one) for one in value] if isinstance(value, list) else value

    between = json.dumps(shortened(dict(body)), ensure_ascii=True, allow_nan=False).split(mark)
    pieces = [between[0]]
    for long, after in zip(kept, between[1:], strict=True):
        pieces += (long, after)
    return "".join(pieces).encode("ascii")


def content_of(video: VideoFile) -> bytes:
    """The bytes of a video file.

    Raises:
        ChatError: it cannot be read.
    """
    try:
        return video.path.read_bytes()
    except OSError as error:
        message = f"{video.path.name} cannot be read: {error.strerror}"
        raise ChatError(Reason.MISSING_MEDIA, message, attempts=0) from None


def loose(parts: Sequence[Part]) -> Iterator[Text | Image | VideoFile]:
    """``parts`` with frames as loose pictures, each after its time where that is wanted."""
    for part in parts:
        if isinstance(part, Frames):
            yield from loose_parts(part)
        else:
            yield part


def check_parts(request: ChatRequest, able: Capabilities, backend: str) -> None:
    """Refuse what a backend cannot be shown.

    Raises:
        InputError: a video file for a backend that takes none.
        ChatError: more pictures than it takes.
    """
    if not able.video_file and any(isinstance(part, VideoFile) for part in request.parts):
        raise InputError(f"{backend} takes no video files; choose a preset that shows frames")
    if able.most_pictures is not None:
        count = sum(isinstance(part, Image) for part in loose(request.parts))
        if count > able.most_pictures:
            message = f"{backend} takes {able.most_pictures} pictures in one request, not {count}"
            raise ChatError(
                Reason.CONTEXT_OVERFLOW, message, {"pictures": count, "most": able.most_pictures}, attempts=0
            )


def count_of(value: Any) -> int | None:
    """``value`` if it is a number of tokens."""
    known = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS
    return value if known else None


def mapping(value: Any) -> Mapping[str, Any]:
    """``value`` if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def entries(value: Any) -> list[Mapping[str, Any]]:
    """The mappings in ``value`` if it is a list."""
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def usage_of(prompt: Any, completion: Any, reasoning: Any = None, cached: Any = None) -> Usage:
    """Tokens as far as they are numbers of tokens."""
    return Usage(count_of(prompt), count_of(completion), count_of(reasoning), count_of(cached))


def chances_of(tokens: Any) -> tuple[TokenChance, ...] | None:
    """Log-probabilities of tokens as OpenAI's interfaces list them; ``None`` where there are none that can be read."""
    found = []
    for one in entries(tokens):
        value, name = _real(one.get("logprob")), one.get("token")
        if isinstance(name, str) and value is not None:
            found.append(TokenChance(name, value, likeliest(one.get("top_logprobs"), "logprob")))
    return tuple(found) or None


def likeliest(alternatives: Any, value_name: str) -> dict[str, float]:
    """Token -> log-probability, of a list of alternatives."""
    found: dict[str, float] = {}
    for one in entries(alternatives):
        name, value = one.get("token"), _real(one.get(value_name))
        if isinstance(name, str) and value is not None:
            found[name] = max(value, found.get(name, value))  # tokens of bytes may share one text
    return found


def _real(value: Any) -> float | None:
    known = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    return float(value) if known else None
