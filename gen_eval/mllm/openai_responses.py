"""Backend for OpenAI's Responses interface: pictures, effort of reasoning, JSON by a schema.

It has no seed, no stop texts and no choice among texts; frames go as loose pictures. Replies are not stored there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal
from urllib.parse import quote

from pydantic import Field

from gen_eval.mllm.chat import ChatRequest, Frames, Image, Message, Reply, Text
from gen_eval.mllm.client import Capabilities, ChatClient, ChatError, Identity
from gen_eval.mllm.encoding import address_of, chances_of, check_parts, entries, loose, mapping, usage_of
from gen_eval.mllm.entry import ModelEntry
from gen_eval.mllm.obeying import disobeyed
from gen_eval.mllm.parameters import PictureParameters, check_effort
from gen_eval.mllm.wire import Answered, Wire
from gen_eval.records import MissingPart, Reason

BASE = "https://api.openai.com/v1"
_NAME = "the Responses interface"
_HONOURS = frozenset({"temperature", "top_p", "max_tokens", "effort", "schema", "logprobs"})
_ENDINGS = {"max_output_tokens": "length", "content_filter": "content_filter"}


class _Parameters(PictureParameters):
    summary: Literal["auto", "concise", "detailed"] | None = Field(
        None, description="of its reasoning, to be sent back"
    )


class Client(ChatClient):
    """Asks one model of OpenAI; see :class:`gen_eval.mllm.client.ChatClient`.

    Raises:
        InputError: the address or a parameter of the entry cannot be used.
    """

    def __init__(self, entry: ModelEntry) -> None:
        super().__init__(entry)
        self._parameters = _Parameters.of(entry)
        self._wire = Wire(entry, default=BASE)
        self._model = entry.endpoint.served_as or entry.id

    @property
    def capabilities(self) -> Capabilities:
        """What it does with a request for this model."""
        return Capabilities(_HONOURS - set(self._parameters.without), most_pictures=500)

    async def identity(self) -> Identity:
        """Ask whether it has the model."""
        try:
            await self._wire.get(f"/models/{quote(self._model, safe='')}")
        except ChatError as error:
            raise MissingPart(f"{_NAME} cannot be asked: {error}") from None
        return Identity(self._model, self.entry.revision, "openai-responses")

    async def reply(self, request: ChatRequest) -> Reply:
        """Ask once."""
        check_parts(request, self.capabilities, _NAME)
        check_effort(self.entry, request.options.effort)
        sent, ignored = self.capabilities.split(request.options)
        answered = await self._wire.post("/responses", self._body(request, sent))
        shown = any(isinstance(part, Frames) for part in request.parts)
        reply = replace(_reply_of(answered), form="images" if shown else None)
        unheeded = set(ignored) | set(disobeyed(request.options, reply))
        return replace(reply, ignored=tuple(sorted(unheeded)))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._wire.aclose()

    def _body(self, request: ChatRequest, sent: Mapping[str, Any]) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._model,
            "store": False,
            "input": [self._turn(message) for message in request.messages],
            **{name: sent[name] for name in ("temperature", "top_p") if name in sent},
        }
        if "max_tokens" in sent:
            body["max_output_tokens"] = sent["max_tokens"]
        reasoning = {"effort": sent.get("effort"), "summary": self._parameters.summary}
        if any(reasoning.values()):
            body["reasoning"] = {name: value for name, value in reasoning.items() if value}
        if "schema" in sent:
            schema = {"type": "json_schema", "name": "reply", "schema": dict(sent["schema"]), "strict": True}
            body["text"] = {"format": schema}
        if "logprobs" in sent:
            body |= {"top_logprobs": sent["logprobs"], "include": ["message.output_text.logprobs"]}
        return self._parameters.added(body)

    def _turn(self, message: Message) -> dict[str, Any]:
        text = "output_text" if message.role == "assistant" else "input_text"
        content: list[dict[str, Any]] = []
        for part in loose(message.parts):
            if isinstance(part, Text):
                content.append({"type": text, "text": part.text})
            elif isinstance(part, Image):
                detail = self._parameters.detail
                content.append({"type": "input_image", "image_url": address_of(part), "detail": detail})
        return {"role": message.role, "content": content}


def _reply_of(answered: Answered) -> Reply:
    """The reply in a body of the Responses interface.

    Raises:
        ChatError: there is none, or the model declined.
    """
    document = mapping(answered.document)
    output = entries(document.get("output"))
    ending = _ending_of(document, output)
    content = [part for one in output if one.get("type") == "message" for part in entries(one.get("content"))]
    for part in content:
        if part.get("type") == "refusal":
            raise ChatError(Reason.CONTENT_FILTER, f"the model declined: {str(part.get('refusal'))[:300]}")
    texts = [one for one in content if one.get("type") == "output_text" and isinstance(one.get("text"), str)]
    usage = mapping(document.get("usage"))
    return Reply(
        text="".join(one["text"] for one in texts),
        finish_reason=ending,
        usage=usage_of(
            usage.get("input_tokens"),
            usage.get("output_tokens"),
            mapping(usage.get("output_tokens_details")).get("reasoning_tokens"),
            mapping(usage.get("input_tokens_details")).get("cached_tokens"),
        ),
        reasoning=_summary_of(output),
        logprobs=chances_of([one for part in texts for one in entries(part.get("logprobs"))]),
        model=document["model"] if isinstance(document.get("model"), str) else None,
        seconds=answered.seconds,
        raw=document,
    )


def _ending_of(document: Mapping[str, Any], output: list[Mapping[str, Any]]) -> str:
    """How the reply ended.

    Raises:
        ChatError: it did not end, or the filter ended it.
    """
    status = document.get("status")
    if status == "completed" and output:
        return "stop"
    if status == "incomplete":
        said = mapping(document.get("incomplete_details")).get("reason")
        ending = _ENDINGS.get(str(said), str(said))
        if ending == "content_filter":
            raise ChatError(Reason.CONTENT_FILTER, "the filter of the interface stopped the reply")
        return ending
    message = f"{_NAME} answered without a reply (status {status!r:.40}, {len(output)} parts)"
    raise ChatError(Reason.ENDPOINT_ERROR, message, retry=True)


def _summary_of(output: list[Mapping[str, Any]]) -> str | None:
    """The summary of its reasoning, when it is sent back."""
    pieces = [
        part["text"]
        for one in output
        if one.get("type") == "reasoning"
        for part in entries(one.get("summary"))
        if isinstance(part.get("text"), str)
    ]
    return "\n".join(pieces) or None
