"""What is asked of a model and what comes back, whatever the backend.

A request is a list of messages made of parts (text, a picture, frames of a clip, a video file) and the options of
decoding. Everything in it is plain and immutable, so that its digest is what a reply depends on besides the model.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

from gen_eval.records import digest_of

Role: TypeAlias = Literal["system", "user", "assistant"]
Form: TypeAlias = Literal["video", "images"]
"""How frames reach a model: as one video (models then pair them in time), or as loose pictures."""


@dataclass(frozen=True)
class Text:
    """A piece of text."""

    text: str

    def identity(self) -> dict[str, Any]:
        """What of this part moves a reply."""
        return {"text": self.text}


@dataclass(frozen=True)
class Image:
    """An encoded picture.

    Attributes:
        data: the bytes of the file.
        media_type: ``image/jpeg`` or ``image/png``.
        height: in pixels.
        width: in pixels.
    """

    data: bytes = field(repr=False)
    media_type: str
    height: int
    width: int

    @cached_property
    def sha256(self) -> str:
        """Digest of the bytes."""
        return hashlib.sha256(self.data).hexdigest()

    @cached_property
    def base64(self) -> str:
        """The bytes as text, made once for all requests that show the picture."""
        return base64.b64encode(self.data).decode("ascii")

    def identity(self) -> dict[str, Any]:
        """What of this part moves a reply."""
        return {"image": self.sha256}


@dataclass(frozen=True)
class Frames:
    """Frames of one clip, in order.

    Attributes:
        pictures: one each, all of one size.
        times: seconds from the clip's first frame, one each.
        indices: 0-based positions among the clip's frames, one each.
        source_fps: frame rate of the clip.
        total_frames: of the clip.
        form: how they are to be shown; a backend that cannot shows loose pictures, and the reply says so.
        stamps: whether loose pictures are each preceded by their time as text.
    """

    pictures: tuple[Image, ...]
    times: tuple[float, ...]
    indices: tuple[int, ...]
    source_fps: float
    total_frames: int
    form: Form = "video"
    stamps: bool = False

    def __post_init__(self) -> None:
        """Refuse frames without times.

        Raises:
            ValueError: the numbers of pictures, times and indices differ, or there are none.
        """
        if not len(self.pictures) == len(self.times) == len(self.indices) > 0:
            counts = f"{len(self.pictures)} pictures, {len(self.times)} times, {len(self.indices)} indices"
            raise ValueError(f"frames need a time and an index for each picture, and at least one; got {counts}")

    @property
    def fps(self) -> float:
        """Mean rate of the shown frames; the clip's own where there is one frame only."""
        span = self.times[-1] - self.times[0]
        return (len(self.times) - 1) / span if span > 0 else self.source_fps

    def identity(self) -> dict[str, Any]:
        """What of this part moves a reply."""
        return {
            "frames": [picture.sha256 for picture in self.pictures],
            "times": list(self.times),
            "indices": list(self.indices),
            "source": [self.source_fps, self.total_frames],
            "form": self.form,
            "stamps": self.stamps,
        }


@dataclass(frozen=True)
class VideoFile:
    """A video file that is handed over as it is, for backends that sample it themselves.

    Attributes:
        path: the file.
        sha256: digest of its bytes.
        fps: rate at which the backend is asked to sample it; ``None`` leaves it to the backend.
    """

    path: Path
    sha256: str
    fps: float | None = None

    def identity(self) -> dict[str, Any]:
        """What of this part moves a reply."""
        return {"video": self.sha256, "fps": self.fps}


Part: TypeAlias = Text | Image | Frames | VideoFile


@dataclass(frozen=True)
class Message:
    """One turn."""

    role: Role
    parts: tuple[Part, ...]

    @classmethod
    def of(cls, role: Role, *parts: Part | str) -> Message:
        """A turn of ``parts``; plain strings become :class:`Text`."""
        return cls(role, tuple(Text(part) if isinstance(part, str) else part for part in parts))

    def identity(self) -> dict[str, Any]:
        """What of this turn moves a reply."""
        return {"role": self.role, "parts": [part.identity() for part in self.parts]}


@dataclass(frozen=True)
class Options:
    """How a reply is decoded; ``None`` leaves an option out of the request.

    Attributes:
        temperature: 0 takes the likeliest token each time.
        top_p: nucleus, 0..1.
        top_k: 0 for off.
        repetition_penalty: 1 for none.
        presence_penalty: taken from the logit of every token that came before; 0 for none.
        max_tokens: most new tokens, reasoning included.
        seed: of sampling.
        thinking: whether a model that can reason first is to do so.
        effort: how much, by the provider's own names (minimal, low, medium, high).
        choices: the reply is to be exactly one of these texts.
        schema: the reply is to be JSON of this JSON schema.
        logprobs: how many alternatives of each token are wanted with their log-probabilities.
        stop: texts that end the reply.
    """

    temperature: float | None = 0.0
    top_p: float | None = 1.0
    top_k: int | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    max_tokens: int = 1024
    seed: int | None = None
    thinking: bool | None = None
    effort: str | None = None
    choices: tuple[str, ...] | None = None
    schema: Mapping[str, Any] | None = None
    logprobs: int | None = None
    stop: tuple[str, ...] | None = None

    @property
    def asked(self) -> dict[str, Any]:
        """The options that were set, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @property
    def deterministic(self) -> bool:
        """Whether the same request should give the same reply again."""
        return self.temperature == 0


@dataclass(frozen=True)
class ChatRequest:
    """One question to a model.

    Attributes:
        messages: system and media first, what differs between questions last, so that engines can share the prefix.
        options: of decoding.
        about: names for logs and for simulated backends (``video``, ``question``); never sent, not in the digest.
    """

    messages: tuple[Message, ...]
    options: Options = Options()
    about: Mapping[str, str] = field(default_factory=dict, compare=False)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything in the request that moves a reply."""
        return digest_of({"messages": [one.identity() for one in self.messages], "options": self.options.asked})

    @property
    def parts(self) -> Sequence[Part]:
        """All parts of all turns, in order."""
        return [part for message in self.messages for part in message.parts]


@dataclass(frozen=True)
class Usage:
    """Tokens of one exchange; ``None`` where the backend does not say."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None


@dataclass(frozen=True)
class TokenChance:
    """One token of a reply with its log-probability and those of its likeliest alternatives (itself included)."""

    token: str
    logprob: float
    top: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Reply:
    """What came back.

    Attributes:
        text: the answer as the backend gave it; ``None`` when there is none.
        finish_reason: ``stop``, ``length``, ``content_filter`` or the backend's own word.
        usage: tokens.
        reasoning: reasoning that the backend returned apart from the text.
        logprobs: of the tokens of the text, when they were asked for and came back.
        model: the model's name as the backend gives it.
        form: how frames were shown; ``None`` without frames.
        ignored: options that were asked for and that this backend does not take, or did not obey, by name.
        seconds: of the last attempt.
        attempts: how many requests were made; 0 for a reply from the cache.
        raw: the backend's answer, whole (JSON values only).
    """

    text: str | None
    finish_reason: str = "stop"
    usage: Usage = Usage()
    reasoning: str | None = None
    logprobs: tuple[TokenChance, ...] | None = None
    model: str | None = None
    form: Form | Literal["file"] | None = None
    ignored: tuple[str, ...] = ()
    seconds: float = 0.0
    attempts: int = 1
    raw: Mapping[str, Any] = field(default_factory=dict)

    @property
    def cached(self) -> bool:
        """Whether it was not asked for again."""
        return self.attempts == 0
