"""The interface of a backend, what it can do, and what may go wrong with one request."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from gen_eval.mllm.chat import ChatRequest, Options, Reply
from gen_eval.mllm.entry import ModelEntry
from gen_eval.records import ItemError, Reason


@dataclass(frozen=True)
class Capabilities:
    """What a backend does with a request.

    Attributes:
        honours: options (fields of :class:`Options`) that have an effect.
        video_form: whether frames can be shown as one video with their times.
        video_file: whether a video file can be handed over.
        most_pictures: most loose pictures in one request; ``None`` for no known limit.
    """

    honours: frozenset[str]
    video_form: bool = False
    video_file: bool = False
    most_pictures: int | None = None

    def split(self, options: Options) -> tuple[dict[str, Any], tuple[str, ...]]:
        """The options that may be sent, and the names of those that would have no effect (or be refused)."""
        asked = options.asked
        sent = {name: value for name, value in asked.items() if name in self.honours}
        return sent, tuple(sorted(set(asked) - set(sent)))


class ChatError(ItemError):
    """A request that did not give a reply.

    Attributes:
        retry: whether the same request may work later.
        retry_after: seconds that the backend asks to wait, ``None`` when it does not say.
        attempts: how many requests were made in all.
    """

    def __init__(
        self,
        reason: Reason,
        message: str,
        detail: Mapping[str, Any] | None = None,
        *,
        retry: bool = False,
        retry_after: float | None = None,
        attempts: int = 1,
    ) -> None:
        super().__init__(reason, message, detail)
        self.retry, self.retry_after, self.attempts = retry, retry_after, attempts


@dataclass(frozen=True)
class Identity:
    """What answers, as far as it says so; recorded with every run.

    Attributes:
        model: id of the model that is served.
        revision: of the weights, when known.
        engine: what runs it (``vllm``, ``transformers``, ``gemini``, ``simulated``).
        version: of the engine.
        extra: what else moves replies (number format, device, parameters of a simulated judge).
    """

    model: str
    revision: str | None
    engine: str
    version: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As it stands in a manifest."""
        return {
            "model": self.model,
            "revision": self.revision,
            "engine": self.engine,
            "version": self.version,
            "extra": dict(self.extra),
        }


class ChatClient(ABC):
    """A backend for one model. One attempt a call: waiting, retrying and limits belong to :class:`Asker`.

    An entry point of the group ``gen_eval.chat`` names a subclass; it is made from a model entry.
    """

    context: int | None = None
    """Tokens of prompt and reply that the backend itself allows, once its identity is known; ``None`` for not told."""

    def __init__(self, entry: ModelEntry) -> None:
        self.entry = entry

    @classmethod
    def open(cls, entry: ModelEntry, *, device: str = "auto", dtype: str | None = None) -> ChatClient:
        """A backend for ``entry``; one that holds the model itself heeds where and in which number format.

        Args:
            entry: the model.
            device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
            dtype: number format; ``None`` for the checkpoint's own.
        """
        return cls(entry)

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities:
        """What this backend does with a request."""

    @abstractmethod
    async def identity(self) -> Identity:
        """What answers. May ask the server.

        Raises:
            MissingPart: the server cannot be reached, or a package or the model's files are absent.
        """

    @abstractmethod
    async def reply(self, request: ChatRequest) -> Reply:
        """Ask once.

        Raises:
            ChatError: no reply; it says whether to try again.
        """

    async def aclose(self) -> None:
        """Give connections and memory back."""
        return

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
