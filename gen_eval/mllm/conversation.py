"""Requests in the form that engines in process take: turns of text, decoded pictures, and clips with their times."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gen_eval.mllm.chat import ChatRequest, Form, Frames, Image, Part, Text
from gen_eval.mllm.encoding import loose

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

_CLOCK = 1000.0
"""Ticks a second of the clock that clips without a steady rate are told by."""


@dataclass(frozen=True)
class Conversation:
    """One request, ready for a chat template.

    Attributes:
        turns: role and content; content is a text, or parts of type ``text``, ``image`` or ``video``.
        clips: what is known of each video, in order, as :func:`clip_facts` has it.
        form: how frames are shown; ``None`` without frames.
    """

    turns: list[dict[str, Any]]
    clips: list[dict[str, Any]] = field(default_factory=list)
    form: Form | None = None


def conversation_of(request: ChatRequest, *, video_form: bool) -> Conversation:
    """The turns of ``request``.

    Args:
        request: without video files.
        video_form: whether the engine takes frames as one video; loose pictures otherwise.
    """
    clips: list[dict[str, Any]] = []
    turns: list[dict[str, Any]] = []
    for message in request.messages:
        if len(message.parts) == 1 and isinstance(message.parts[0], Text):
            turns.append({"role": message.role, "content": message.parts[0].text})
            continue
        content: list[dict[str, Any]] = []
        for part in message.parts:
            if isinstance(part, Frames) and part.form == "video" and video_form:
                content.append({"type": "video", "video": np.stack([np.asarray(one) for one in decoded(part)])})
                clips.append(clip_facts(part))
            else:
                content += _parts([part])
        turns.append({"role": message.role, "content": content})
    shown = [part for part in request.parts if isinstance(part, Frames)]
    form: Form | None = None if not shown else "video" if len(clips) == len(shown) else "images"
    return Conversation(turns, clips, form)


def _parts(parts: Sequence[Part]) -> Iterator[dict[str, Any]]:
    for one in loose(parts):
        if isinstance(one, Text):
            yield {"type": "text", "text": one.text}
        elif isinstance(one, Image):
            yield {"type": "image", "image": opened(one)}
        else:
            raise TypeError(f"{type(one).__name__} cannot be shown to an engine in process")


def opened(image: Image) -> Picture:
    """The picture (RGB) that ``image`` holds."""
    from PIL import Image as Pillow

    with Pillow.open(io.BytesIO(image.data), formats=("PNG", "JPEG")) as picture:
        return picture.convert("RGB")


def decoded(frames: Frames) -> list[Picture]:
    """The pictures of ``frames``; one that is shown several times is decoded once."""
    known = {id(picture): picture for picture in frames.pictures}
    pictures = {key: opened(picture) for key, picture in known.items()}
    return [pictures[id(picture)] for picture in frames.pictures]


def clip_facts(frames: Frames) -> dict[str, Any]:
    """What a processor must know so that it neither samples again nor guesses times.

    Processors take a frame's time as its index over the rate. Where that is not the frame's time (a variable rate), the
    indices are told by a clock of milliseconds.

    Returns:
        ``total_num_frames``, ``fps``, ``duration`` (seconds), ``frames_indices``, ``height``, ``width``.
    """
    rate, total, indices = frames.source_fps, frames.total_frames, list(frames.indices)
    off = max(abs(index / rate - time) for index, time in zip(indices, frames.times, strict=True))
    if off > 0.5 / rate:
        indices = [round(time * _CLOCK) for time in frames.times]
        total, rate = indices[-1] + round(_CLOCK / rate), _CLOCK
    first = frames.pictures[0]
    return {
        "total_num_frames": total,
        "fps": rate,
        "duration": total / rate,
        "frames_indices": indices,
        "height": first.height,
        "width": first.width,
    }
