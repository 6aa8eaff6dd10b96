"""Backend that holds the model in this process, through the package transformers: the one that needs no server."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gen_eval.mllm.batching import Answered, Batcher, apart
from gen_eval.mllm.chat import ChatRequest, Reply
from gen_eval.mllm.checkpoint import Wanted
from gen_eval.mllm.client import Capabilities, ChatClient, Identity
from gen_eval.mllm.encoding import check_parts
from gen_eval.mllm.entry import ModelEntry
from gen_eval.mllm.obeying import disobeyed
from gen_eval.mllm.transformer import Transformer, kind_of
from gen_eval.networks.placement import placement_of
from gen_eval.records import InputError
from gen_eval.registry import require

_HONOURS = frozenset(
    {"temperature", "top_p", "top_k", "repetition_penalty", "max_tokens", "seed", "choices", "logprobs", "stop"}
)


class InProcessParameters(BaseModel):
    """What a model entry may say to a backend in this process (``parameters``)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def of(cls, entry: ModelEntry) -> Self:
        """The parameters of ``entry``.

        Raises:
            InputError: one is not known or cannot be used; the message names it.
        """
        try:
            return cls.model_validate(dict(entry.parameters))
        except ValidationError as error:
            problems = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
            known = ", ".join(cls.model_fields)
            raise InputError(f"parameters of the model entry {entry.name!r}: {problems} (known: {known})") from None


class LocalParameters(InProcessParameters):
    """What a model entry may say to this backend."""

    batch: int = Field(8, ge=1, description="most questions that are answered together")
    attention: Literal["sdpa", "eager", "flash_attention_2"] = Field("sdpa", description="kernel of attention")
    spread: bool = Field(False, description="spread the model over all devices")


class Client(ChatClient):
    """Answers in a thread of its own; questions that wait at the same time are answered together.

    Args:
        entry: the model; ``id`` is a folder or a hub id.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
        dtype: ``float32``, ``bfloat16`` or ``float16``; ``None`` for the checkpoint's own.

    Raises:
        InputError: device, number format or a parameter of the entry cannot be used.
        MissingPart: the package transformers is not installed.
    """

    def __init__(self, entry: ModelEntry, *, device: str = "auto", dtype: str | None = None) -> None:
        super().__init__(entry)
        require("torch")
        require("transformers")
        parameters = LocalParameters.of(entry)
        self._wanted = Wanted(
            id=entry.id,
            revision=entry.revision,
            device=placement_of(device, dtype or "float32").device,
            dtype=dtype,
            attention=parameters.attention,
            spread=parameters.spread,
        )
        self._model: Transformer | None = None
        self._identity: Identity | None = None
        self._batcher = Batcher(self._answer, kind_of, parameters.batch)

    @classmethod
    def open(cls, entry: ModelEntry, *, device: str = "auto", dtype: str | None = None) -> ChatClient:
        """A backend for ``entry`` on ``device``; the model is loaded when it is first asked."""
        return cls(entry, device=device, dtype=dtype)

    @property
    def capabilities(self) -> Capabilities:
        """What this backend does with a request; frames as a video where the model has a form for it."""
        thinking = {"thinking"} if self.entry.thinking.template_key else set()
        return Capabilities(_HONOURS | thinking, video_form=True)

    async def identity(self) -> Identity:
        """Load the model, and say what it is."""
        if self._identity is None:
            self._identity = await self._batcher.run(self._identify)
        return self._identity

    def _identify(self) -> Identity:
        facts = self._loaded().facts()
        version = require("transformers").__version__
        name = Path(self.entry.id).name if Path(self.entry.id).expanduser().is_dir() else self.entry.id
        return Identity(name, self.entry.revision, "transformers", version, {**facts, "batch": self._batcher.most})

    def _loaded(self) -> Transformer:
        if self._model is None:
            key = self.entry.thinking.template_key
            self._model = Transformer(self._wanted, context=self.entry.context, template_key=key)
        return self._model

    async def reply(self, request: ChatRequest) -> Reply:
        """Ask once."""
        check_parts(request, self.capabilities, "transformers in process")
        _, ignored = self.capabilities.split(request.options)
        reply = await self._batcher.reply(request)
        unheeded = sorted({*disobeyed(request.options, reply), *ignored})
        return replace(reply, model=(await self.identity()).model, ignored=tuple(unheeded))

    def _answer(self, requests: Sequence[ChatRequest]) -> list[Answered]:
        return apart(self._timed, requests, too_many=self._shrink)

    def _timed(self, requests: Sequence[ChatRequest]) -> list[Reply]:
        model, begun = self._loaded(), time.monotonic()
        replies = model.answer(requests)
        seconds = (time.monotonic() - begun) / len(requests)
        return [replace(reply, seconds=seconds) for reply in replies]

    def _shrink(self, size: int) -> None:
        self._batcher.most = min(size, self._batcher.most)

    async def aclose(self) -> None:
        """Give the model's memory back."""
        self._batcher.close()
        self._model = self._identity = None
