"""Backend for Google's Gemini interface: video files with a rate of sampling, pictures, levels of reasoning.

A video file is uploaded once for all its questions and kept there by the provider for two days. Frames go as loose
pictures: the interface samples videos itself, at ``fps`` frames a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from pydantic import Field

from gen_eval.mllm.chat import ChatRequest, Frames, Image, Message, Reply, Text, TokenChance, VideoFile
from gen_eval.mllm.client import Capabilities, ChatClient, ChatError, Identity
from gen_eval.mllm.encoding import Verbatim, check_parts, count_of, entries, likeliest, loose, mapping, usage_of
from gen_eval.mllm.entry import ModelEntry
from gen_eval.mllm.obeying import disobeyed
from gen_eval.mllm.parameters import Parameters, check_effort
from gen_eval.mllm.uploads import Uploads
from gen_eval.mllm.wire import Answered, Wire
from gen_eval.records import MissingPart, Reason

BASE = "https://generativelanguage.googleapis.com/v1beta"
_NAME = "the Gemini interface"
_PLAIN = {
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "max_tokens": "maxOutputTokens",
    "seed": "seed",
}
_HONOURS = frozenset({*_PLAIN, "stop", "thinking", "effort", "schema", "choices", "logprobs"})
_ENDINGS = {"STOP": "stop", "MAX_TOKENS": "length"}
_DECLINED = frozenset({"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "LANGUAGE"})
_BROKEN = frozenset({"OTHER", "MALFORMED_FUNCTION_CALL", "FINISH_REASON_UNSPECIFIED"})
_DYNAMIC = -1
_OFF = 0


class _Parameters(Parameters):
    safety: Mapping[str, str] = Field(default_factory=dict, description="category of harm -> threshold")
    media_resolution: str | None = Field(None, description="MEDIA_RESOLUTION_LOW, …_MEDIUM or …_HIGH")
    thoughts: bool = Field(False, description="whether a summary of its reasoning is to come back")


class Client(ChatClient):
    """Asks one Gemini model; see :class:`gen_eval.mllm.client.ChatClient`.

    Raises:
        InputError: the address or a parameter of the entry cannot be used.
    """

    def __init__(self, entry: ModelEntry) -> None:
        super().__init__(entry)
        self._parameters = _Parameters.of(entry)
        self._wire = Wire(entry, default=BASE, key_header="x-goog-api-key", key_form="{}")
        self._model = entry.endpoint.served_as or entry.id
        self._uploads = Uploads(self._wire)

    @property
    def capabilities(self) -> Capabilities:
        """What it does with a request for this model."""
        able = _HONOURS - set(self._parameters.without)
        able -= set() if self.entry.thinking.mode == "switch" else {"thinking"}
        able -= set() if self.entry.thinking.mode == "effort" else {"effort"}
        return Capabilities(able, video_file=True, most_pictures=3000)

    async def identity(self) -> Identity:
        """Ask whether it has the model, and of which version."""
        try:
            answered = await self._wire.get(f"/models/{quote(self._model, safe='')}")
        except ChatError as error:
            raise MissingPart(f"{_NAME} cannot be asked: {error}") from None
        version = mapping(answered.document).get("version")
        return Identity(self._model, self.entry.revision, "gemini", version if isinstance(version, str) else None)

    async def reply(self, request: ChatRequest) -> Reply:
        """Ask once; a video file is uploaded before its first question."""
        check_parts(request, self.capabilities, _NAME)
        check_effort(self.entry, request.options.effort)
        sent, ignored = self.capabilities.split(request.options)
        body = await self._body(request, sent)
        answered = await self._wire.post(f"/models/{quote(self._model, safe='')}:generateContent", body)
        reply = replace(_reply_of(answered), form=_form_of(request))
        unheeded = set(ignored) | set(disobeyed(request.options, reply))
        return replace(reply, ignored=tuple(sorted(unheeded)))

    async def aclose(self) -> None:
        """Close the connections; uploaded files go by themselves."""
        await self._wire.aclose()

    async def _body(self, request: ChatRequest, sent: Mapping[str, Any]) -> dict[str, Any]:
        system = [part for one in request.messages if one.role == "system" for part in await self._parts(one)]
        body: dict[str, Any] = {
            "contents": [
                {"role": "model" if one.role == "assistant" else "user", "parts": await self._parts(one)}
                for one in request.messages
                if one.role != "system"
            ],
            "generationConfig": self._decoding(sent),
        }
        if system:
            body["systemInstruction"] = {"parts": system}
        if self._parameters.safety:
            body["safetySettings"] = [
                {"category": category, "threshold": threshold}
                for category, threshold in sorted(self._parameters.safety.items())
            ]
        return self._parameters.added(body)

    def _decoding(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {field: sent[name] for name, field in _PLAIN.items() if name in sent}
        if "stop" in sent:
            found["stopSequences"] = list(sent["stop"])
        if "schema" in sent:
            found |= {"responseMimeType": "application/json", "responseJsonSchema": dict(sent["schema"])}
        elif "choices" in sent:
            options = {"type": "STRING", "enum": list(sent["choices"])}
            found |= {"responseMimeType": "text/x.enum", "responseSchema": options}
        if "logprobs" in sent:
            found |= {"responseLogprobs": True, "logprobs": sent["logprobs"]}
        if self._parameters.media_resolution:
            found["mediaResolution"] = self._parameters.media_resolution
        if thinking := self._thinking(sent):
            found["thinkingConfig"] = thinking
        return found

    def _thinking(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """Reasoning by level where one is asked for, else on or off by its budget."""
        found: dict[str, Any] = {}
        if "effort" in sent:
            found["thinkingLevel"] = sent["effort"]
        elif "thinking" in sent:
            found["thinkingBudget"] = _DYNAMIC if sent["thinking"] else _OFF
        if self._parameters.thoughts:
            found["includeThoughts"] = True
        return found

    async def _parts(self, message: Message) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for part in loose(message.parts):
            if isinstance(part, Text):
                found.append({"text": part.text})
            elif isinstance(part, Image):
                found.append({"inlineData": {"mimeType": part.media_type, "data": Verbatim(part.base64)}})
            else:
                found.append(await self._video(part))
        return found

    async def _video(self, part: VideoFile) -> dict[str, Any]:
        uploaded = await self._uploads.of(part)
        found: dict[str, Any] = {"fileData": {"mimeType": uploaded.media_type, "fileUri": uploaded.uri}}
        if part.fps is not None:
            found["videoMetadata"] = {"fps": part.fps}
        return found


def _form_of(request: ChatRequest) -> Any:
    """How a clip is shown, in the words of :attr:`Reply.form`."""
    if any(isinstance(part, VideoFile) for part in request.parts):
        return "file"
    return "images" if any(isinstance(part, Frames) for part in request.parts) else None


def _reply_of(answered: Answered) -> Reply:
    """The reply in a body of the Gemini interface.

    Raises:
        ChatError: there is none, or the model declined.
    """
    document = mapping(answered.document)
    blocked = mapping(document.get("promptFeedback")).get("blockReason")
    if blocked:
        raise ChatError(Reason.CONTENT_FILTER, f"{_NAME} declined the request: {str(blocked)[:100]}")
    candidates = entries(document.get("candidates"))
    if not candidates:
        raise ChatError(Reason.ENDPOINT_ERROR, f"{_NAME} answered without a candidate", retry=True)
    said = candidates[0].get("finishReason")
    ending = said if isinstance(said, str) else None
    if ending in _DECLINED:
        raise ChatError(Reason.CONTENT_FILTER, f"the reply was stopped: {ending}", {"finish_reason": ending})
    if ending is None or ending in _BROKEN:
        raise ChatError(Reason.ENDPOINT_ERROR, f"{_NAME} gave up on the reply ({said!r:.40})", retry=True)
    pieces = entries(mapping(candidates[0].get("content")).get("parts"))
    texts = [(one["text"], bool(one.get("thought"))) for one in pieces if isinstance(one.get("text"), str)]
    usage = mapping(document.get("usageMetadata"))
    answer, thought = (count_of(usage.get(name)) for name in ("candidatesTokenCount", "thoughtsTokenCount"))
    completion = None if answer is None and thought is None else (answer or 0) + (thought or 0)
    return Reply(
        text="".join(text for text, is_thought in texts if not is_thought),
        finish_reason=_ENDINGS.get(ending, ending),
        usage=usage_of(usage.get("promptTokenCount"), completion, thought, usage.get("cachedContentTokenCount")),
        reasoning="".join(text for text, is_thought in texts if is_thought) or None,
        logprobs=_chances_of(mapping(candidates[0].get("logprobsResult"))),
        model=document["modelVersion"] if isinstance(document.get("modelVersion"), str) else None,
        seconds=answered.seconds,
        raw=document,
    )


def _chances_of(found: Mapping[str, Any]) -> tuple[TokenChance, ...] | None:
    """Log-probabilities: what was chosen, and beside it the likeliest at each place."""
    chosen, top = entries(found.get("chosenCandidates")), entries(found.get("topCandidates"))
    chances = []
    for place, one in enumerate(chosen):
        alone = likeliest([one], "logProbability")
        if not alone:
            continue
        others = likeliest(top[place].get("candidates"), "logProbability") if place < len(top) else {}
        ((token, value),) = alone.items()
        chances.append(TokenChance(token, value, others))
    return tuple(chances) or None
