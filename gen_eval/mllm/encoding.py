"""How the parts of a request are written down for servers, and how lists of what they send are read."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gen_eval.mllm.chat import ChatRequest, Frames, Image, Part, Text, TokenChance, Usage, VideoFile
from gen_eval.mllm.client import Capabilities, ChatError
from gen_eval.mllm.showing import loose_parts
from gen_eval.records import InputError, Reason


def in_base64(data: bytes) -> str:
    """``data`` as text."""
    return base64.b64encode(data).decode("ascii")


def data_address(media_type: str, *pieces: bytes) -> str:
    """A ``data:`` address; several pieces are joined by commas."""
    return f"data:{media_type};base64,{','.join(map(in_base64, pieces))}"


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
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


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
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
