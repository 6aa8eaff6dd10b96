"""Backend for Anthropic's Messages interface: pictures, a system text of its own, a budget for reasoning.

It has no seed, no log-probabilities and no choice among texts; frames go as loose pictures. While a model reasons, the
interface wants temperature and nucleus left alone, so the reply then says that they were not heeded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal
from urllib.parse import quote

from pydantic import Field

from gen_eval.mllm.chat import ChatRequest, Frames, Image, Message, Options, Reply, Text
from gen_eval.mllm.client import Capabilities, ChatClient, ChatError, Identity
from gen_eval.mllm.encoding import Verbatim, check_parts, count_of, entries, loose, mapping, usage_of
from gen_eval.mllm.entry import ModelEntry
from gen_eval.mllm.obeying import disobeyed
from gen_eval.mllm.parameters import Parameters, check_effort
from gen_eval.mllm.wire import Answered, Wire
from gen_eval.records import InputError, MissingPart, Reason

BASE = "https://api.anthropic.com/v1"
_NAME = "the Messages interface"
_HONOURS = frozenset({"temperature", "top_p", "top_k", "max_tokens", "stop", "thinking", "effort", "schema"})
_SAMPLING = frozenset({"temperature", "top_p", "top_k"})
_ENDINGS = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length"}


class _Parameters(Parameters):
    version: str = Field("2023-06-01", description="of the interface")
    reasoning: Literal["budget", "adaptive"] = Field("budget", description="how reasoning is asked for")
    budget: int = Field(4096, ge=1024, description="tokens of reasoning, within max_tokens")


class Client(ChatClient):
    """Asks one model of Anthropic; see :class:`gen_eval.mllm.client.ChatClient`.

    Raises:
        InputError: the address or a parameter of the entry cannot be used.
    """

    def __init__(self, entry: ModelEntry) -> None:
        super().__init__(entry)
        self._parameters = _Parameters.of(entry)
        headers = {"anthropic-version": self._parameters.version}
        self._wire = Wire(entry, default=BASE, key_header="x-api-key", key_form="{}", headers=headers)
        self._model = entry.endpoint.served_as or entry.id

    @property
    def capabilities(self) -> Capabilities:
        """What it does with a request for this model."""
        able = _HONOURS - set(self._parameters.without)
        able -= set() if self.entry.thinking.mode in ("switch", "effort") else {"thinking"}
        able -= set() if self.entry.thinking.mode == "effort" else {"effort"}
        return Capabilities(able, most_pictures=100)

    async def identity(self) -> Identity:
        """Ask whether it has the model."""
        try:
            await self._wire.get(f"/models/{quote(self._model, safe='')}")
        except ChatError as error:
            raise MissingPart(f"{_NAME} cannot be asked: {error}") from None
        return Identity(self._model, self.entry.revision, "anthropic", self._parameters.version)

    async def reply(self, request: ChatRequest) -> Reply:
        """Ask once."""
        check_parts(request, self.capabilities, _NAME)
        check_effort(self.entry, request.options.effort)
        sent, ignored = self._sent(request.options)
        answered = await self._wire.post("/messages", self._body(request, sent))
        shown = any(isinstance(part, Frames) for part in request.parts)
        reply = replace(_reply_of(answered), form="images" if shown else None)
        unheeded = set(ignored) | set(disobeyed(request.options, reply))
        return replace(reply, ignored=tuple(sorted(unheeded)))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._wire.aclose()

    def _sent(self, options: Options) -> tuple[dict[str, Any], set[str]]:
        """The options that are sent, and those that cannot be."""
        sent, ignored = self.capabilities.split(options)
        dropped = {name for name in _SAMPLING & set(sent) if sent.get("thinking")}
        if "temperature" in sent and "top_p" in sent and "top_p" not in dropped:  # it takes one of the two
            dropped |= {"top_p"}
        kept = {name: value for name, value in sent.items() if name not in dropped}
        without_effect = {"top_p"} if options.top_p == 1 else set()
        return kept, set(ignored) | (dropped - without_effect)

    def _body(self, request: ChatRequest, sent: Mapping[str, Any]) -> dict[str, Any]:
        system = [part.text for one in request.messages if one.role == "system" for part in _texts(one)]
        body: dict[str, Any] = {
            "model": self._model,
            "max_tokens": request.options.max_tokens,
            "messages": [_turn(message) for message in request.messages if message.role != "system"],
            **{name: sent[name] for name in ("temperature", "top_p", "top_k") if name in sent},
        }
        if system:
            body["system"] = "\n\n".join(system)
        if "stop" in sent:
            body["stop_sequences"] = list(sent["stop"])
        if sent.get("thinking"):
            body["thinking"] = self._reasoning(request.options.max_tokens)
        output: dict[str, Any] = {"effort": sent["effort"]} if "effort" in sent else {}
        if "schema" in sent:
            output["format"] = {"type": "json_schema", "schema": dict(sent["schema"])}
        if output:
            body["output_config"] = output
        return self._parameters.added(body)

    def _reasoning(self, most: int) -> dict[str, Any]:
        if self._parameters.reasoning == "adaptive":
            return {"type": "adaptive"}
        if self._parameters.budget >= most:
            raise InputError(
                f"a reasoning budget of {self._parameters.budget} tokens leaves nothing of max_tokens {most} for the "
                f"answer; raise max_tokens, or lower parameters.budget of {self.entry.name}"
            )
        return {"type": "enabled", "budget_tokens": self._parameters.budget}


def _texts(message: Message) -> list[Text]:
    return [part for part in message.parts if isinstance(part, Text)]


def _turn(message: Message) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    for part in loose(message.parts):
        if isinstance(part, Text):
            content.append({"type": "text", "text": part.text})
        elif isinstance(part, Image):
            source = {"type": "base64", "media_type": part.media_type, "data": Verbatim(part.base64)}
            content.append({"type": "image", "source": source})
    return {"role": message.role, "content": content}


def _reply_of(answered: Answered) -> Reply:
    """The reply in a body of the Messages interface.

    Raises:
        ChatError: there is none, or the model declined.
    """
    document = mapping(answered.document)
    ending, content = document.get("stop_reason"), document.get("content")
    if ending == "refusal":
        raise ChatError(Reason.CONTENT_FILTER, "the model declined to answer")
    if ending == "model_context_window_exceeded":
        raise ChatError(Reason.CONTEXT_OVERFLOW, "the reply did not fit the model's context")
    if not isinstance(ending, str) or not isinstance(content, list):
        raise ChatError(Reason.ENDPOINT_ERROR, f"{_NAME} answered without a reply to read", retry=True)
    pieces = entries(content)
    text = [one["text"] for one in pieces if one.get("type") == "text" and isinstance(one.get("text"), str)]
    thought = [
        one["thinking"] for one in pieces if one.get("type") == "thinking" and isinstance(one.get("thinking"), str)
    ]
    usage = mapping(document.get("usage"))
    cached = [count_of(usage.get(name)) for name in ("cache_creation_input_tokens", "cache_read_input_tokens")]
    fresh = count_of(usage.get("input_tokens"))
    prompt = None if fresh is None else fresh + sum(one or 0 for one in cached)
    return Reply(
        text="".join(text),
        finish_reason=_ENDINGS.get(ending, ending),
        usage=usage_of(prompt, usage.get("output_tokens"), None, cached[1]),
        reasoning="\n".join(thought) or None,
        model=document["model"] if isinstance(document.get("model"), str) else None,
        seconds=answered.seconds,
        raw=document,
    )
