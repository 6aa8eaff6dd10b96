"""Backend for servers of the chat completions interface: vLLM, ``transformers serve``, hosted ones.

What a server does with a request is its engine's (``configs/engines``); which engine it is, is asked of it where the
entry does not say. Frames are sent as loose pictures in ``data:`` addresses, which all of them take, and as one video
where the engine has a form for it and the entry's model is best shown one.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from gen_eval.mllm.chat import ChatRequest, Form, Frames, Image, Message, Part, Reply, Text, VideoFile
from gen_eval.mllm.client import Capabilities, ChatClient, ChatError, Identity
from gen_eval.mllm.conversation import clip_facts
from gen_eval.mllm.encoding import (
    address_of,
    address_of_video,
    chances_of,
    check_parts,
    content_of,
    entries,
    loose,
    mapping,
    usage_of,
)
from gen_eval.mllm.engines import Engine, VideoParts, engine_names, load_engine
from gen_eval.mllm.entry import ModelEntry
from gen_eval.mllm.obeying import disobeyed
from gen_eval.mllm.parameters import PictureParameters, check_effort
from gen_eval.mllm.wire import Answered, Wire
from gen_eval.records import InputError, MissingPart, Reason

_FALLBACK = "generic"
_FAILED = frozenset({"error", "abort"})


class Client(ChatClient):
    """Asks one model at one address.

    Args:
        entry: the model; ``endpoint.base_url`` is the address up to and with ``/v1``.

    Raises:
        InputError: the address, the engine or a parameter of the entry cannot be used.
    """

    def __init__(self, entry: ModelEntry) -> None:
        super().__init__(entry)
        self._parameters = PictureParameters.of(entry)
        self._wire = Wire(entry)
        self._engine = None if entry.endpoint.engine is None else load_engine(entry.endpoint.engine)
        self._identity: Identity | None = None
        self.context: int | None = None
        """Tokens that the server takes, prompt and reply together, when it says so."""

    @property
    def engine(self) -> Engine:
        """What is known of the server; the least that all have, until it was asked."""
        return self._engine or self._least

    @cached_property
    def _least(self) -> Engine:
        return load_engine(_FALLBACK)

    @property
    def capabilities(self) -> Capabilities:
        """What the engine does with a request for this model."""
        return self.engine.capabilities(self.entry.thinking, self._parameters.without)

    async def identity(self) -> Identity:
        """Ask the server which models it has and what it is."""
        if self._identity is None:
            try:
                listed = await self._listed()
                self._engine = self._engine or await self._recognised(listed)
                served = self._served_name(listed)
                version = await self._version()
            except ChatError as error:
                raise MissingPart(
                    f"the model server cannot be asked: {error}. Start it, or correct its address"
                ) from None
            self._identity = Identity(served, self.entry.revision, self.engine.name, version, _root_of(listed, served))
        return self._identity

    async def reply(self, request: ChatRequest) -> Reply:
        """Ask once."""
        served = (await self.identity()).model
        check_parts(request, self.capabilities, self.engine.title)
        check_effort(self.entry, request.options.effort)
        sent, ignored = self.capabilities.split(request.options)
        form = _form_of(request.parts, self._video(request.parts))
        body = self._body(request, served, sent, form)
        answered = await self._asked(body)
        reply = replace(_reply_of(answered), form=form)
        unheeded = set(disobeyed(request.options, reply)) | set(ignored) | _unsent(request.parts)
        return replace(reply, ignored=tuple(sorted(unheeded)))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._wire.aclose()

    # --- the request ------------------------------------------------------------------------------------------------

    def _video(self, parts: Sequence[Part]) -> VideoParts | None:
        """How frames are sent as a video; ``None`` where they are sent as pictures.

        The places of frames are said once for the whole request, so there can be one such video only.
        """
        clips = [part for part in parts if isinstance(part, Frames)]
        if len(clips) != 1 or clips[0].form != "video" or self.entry.sees.form == "images":
            return None
        return self.engine.video

    def _body(
        self, request: ChatRequest, served: str, sent: Mapping[str, Any], form: Form | str | None
    ) -> dict[str, Any]:
        video = self.engine.video if form == "video" else None
        body: dict[str, Any] = {
            "model": served,
            "messages": [self._turn(message, video) for message in request.messages],
            **{field: sent[name] for name, field in self.engine.options.items() if name in sent},
            **self._special_options(sent),
        }
        if "stop" in body:
            body["stop"] = list(body["stop"])
        if video is not None:
            clip = next(part for part in request.parts if isinstance(part, Frames))
            body |= _frame_options(video, clip)
        return self._parameters.added(body)

    def _special_options(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """Options that are more than a number in a field."""
        engine = self.engine
        found: dict[str, Any] = {}
        if "choices" in sent and engine.choices:
            found[engine.choices] = {"choice": list(sent["choices"])}
        if "schema" in sent and engine.schema_as:
            schema = {"name": "reply", "schema": dict(sent["schema"]), "strict": True}
            found[engine.schema_as] = {"type": "json_schema", "json_schema": schema}
        if "logprobs" in sent:
            found |= {"logprobs": True, "top_logprobs": sent["logprobs"]}
        if "thinking" in sent and engine.thinking:
            found[engine.thinking] = {self.entry.thinking.template_key: sent["thinking"]}
        if "effort" in sent and engine.effort:
            found[engine.effort] = sent["effort"]
        return found

    def _turn(self, message: Message, video: VideoParts | None) -> dict[str, Any]:
        """One turn; a single text goes as plain text, which every chat template takes."""
        if len(message.parts) == 1 and isinstance(message.parts[0], Text):
            return {"role": message.role, "content": message.parts[0].text}
        content: list[dict[str, Any]] = []
        for part in message.parts:
            if isinstance(part, Frames) and video is not None:
                address = address_of_video(*(one.base64 for one in part.pictures), media_type="video/jpeg")
                content.append({"type": "video_url", "video_url": {"url": address}})
            else:
                content += [self._part(one) for one in loose([part])]
        return {"role": message.role, "content": content}

    def _part(self, part: Text | Image | VideoFile) -> dict[str, Any]:
        if isinstance(part, Text):
            return {"type": "text", "text": part.text}
        if isinstance(part, VideoFile):
            content = base64.b64encode(content_of(part)).decode("ascii")
            return {"type": "video_url", "video_url": {"url": address_of_video(content, media_type="video/mp4")}}
        picture = {"url": address_of(part)}
        detail = {"detail": self._parameters.detail} if self.engine.detail else {}
        return {"type": "image_url", "image_url": {**picture, **detail}}

    async def _asked(self, body: Mapping[str, Any]) -> Answered:
        try:
            return await self._wire.post("/chat/completions", body)
        except InputError as error:  # no such model: say which there are
            try:
                names = ", ".join(_names(await self._listed())) or "nothing that it lists"
            except (ChatError, MissingPart, InputError):
                raise error from None
            raise InputError(f"{error}. Asked for {body['model']!r}; the server has {names}") from None

    # --- the server -------------------------------------------------------------------------------------------------

    async def _listed(self) -> list[Mapping[str, Any]]:
        """What ``/models`` lists; nothing where there is no such list."""
        try:
            answered = await self._wire.get("/models")
        except InputError:  # 404: not every gateway has it
            return []
        return entries(mapping(answered.document).get("data"))

    async def _recognised(self, listed: Sequence[Mapping[str, Any]]) -> Engine:
        engines = [load_engine(name) for name in engine_names()]
        owners = {str(one.get("owned_by")) for one in listed}
        host = urlsplit(self._wire.base).hostname
        for engine in engines:
            if owners & set(engine.recognise.owned_by) or host in engine.recognise.hosts:
                return engine
        routes = await self._routes() if any(engine.recognise.route for engine in engines) else frozenset()
        return next((one for one in engines if one.recognise.route in routes), load_engine(_FALLBACK))

    async def _routes(self) -> frozenset[str]:
        """The paths that the server describes, if it describes any."""
        try:
            answered = await self._wire.get(f"{self._wire.root}/openapi.json")
        except (ChatError, InputError, MissingPart):
            return frozenset()
        return frozenset(mapping(mapping(answered.document).get("paths")))

    async def _version(self) -> str | None:
        if self.engine.version_at is None:
            return None
        try:
            answered = await self._wire.get(f"{self._wire.root}{self.engine.version_at}")
        except (ChatError, InputError):
            return None
        version = mapping(answered.document).get("version")
        return version if isinstance(version, str) else None

    def _served_name(self, listed: Sequence[Mapping[str, Any]]) -> str:
        """The name to ask for.

        Raises:
            InputError: the server has other models, or several of which none is the entry's.
        """
        names, wanted = _names(listed), self.entry.endpoint.served_as
        known = {str(one["id"]): one for one in listed if isinstance(one.get("id"), str)}
        if wanted is not None:
            if names and self.engine.lists_models and wanted not in names:
                raise InputError(f"the server has no model {wanted!r}; it has {', '.join(names)}")
            chosen = wanted
        elif self.entry.id in names or not names or not self.engine.lists_models:
            chosen = self.entry.id
        elif len(names) == 1:
            chosen = names[0]
        else:
            raise InputError(
                f"the server has several models and none is called {self.entry.id!r}: {', '.join(names)}; "
                "say which with endpoint.served_as"
            )
        length = mapping(known.get(chosen)).get("max_model_len")
        self.context = length if isinstance(length, int) and length > 0 else None
        return chosen


def _names(listed: Sequence[Mapping[str, Any]]) -> list[str]:
    return sorted({one["id"] for one in listed if isinstance(one.get("id"), str)})


def _root_of(listed: Sequence[Mapping[str, Any]], served: str) -> dict[str, str]:
    """What stands behind a name that the operator of the server made up, when the server says it."""
    roots = [one["root"] for one in listed if one.get("id") == served and isinstance(one.get("root"), str)]
    return {"root": roots[0]} if roots and roots[0] != served else {}


def _form_of(parts: Sequence[Part], video: VideoParts | None) -> Form | Any:
    """How frames are shown: in the words of :attr:`Reply.form`."""
    if any(isinstance(part, VideoFile) for part in parts):
        return "file"
    if not any(isinstance(part, Frames) for part in parts):
        return None
    return "images" if video is None else "video"


def _frame_options(video: VideoParts, clip: Frames) -> dict[str, Any]:
    """Where the frames of ``clip`` lie in time, and that they are not to be sampled again."""
    known = clip_facts(clip)  # exact times also where the rate varies
    named = ("fps", "frames_indices", "total_num_frames", "duration")
    places = {
        "num_frames": len(clip.pictures),
        **{name: known[name] for name in named},
        "do_sample_frames": False,
    }
    return {
        video.media_options: {"video": places},
        video.processor_options: {"do_sample_frames": False, "fps": clip.fps},
    }


def _unsent(parts: Sequence[Part]) -> set[str]:
    """What parts ask for and this interface has no place for."""
    return {"fps"} if any(isinstance(part, VideoFile) and part.fps is not None for part in parts) else set()


def _reply_of(answered: Answered) -> Reply:
    """The reply in a body of the chat completions interface.

    Raises:
        ChatError: there is none, or the model declined.
    """
    document = mapping(answered.document)
    choices = entries(document.get("choices"))
    if not choices:
        raise ChatError(Reason.ENDPOINT_ERROR, "the server answered without a choice to read", retry=True)
    message, finish = choices[0].get("message"), choices[0].get("finish_reason")
    if not isinstance(message, Mapping):
        raise ChatError(Reason.ENDPOINT_ERROR, "the server answered with a choice that holds no message", retry=True)
    text = _text_of(message.get("content"))
    _check_ending(finish, message, text)
    usage = mapping(document.get("usage"))
    reasoning = message.get("reasoning_content", message.get("reasoning"))
    return Reply(
        text=text,
        finish_reason=finish if isinstance(finish, str) else "unknown",
        usage=usage_of(
            usage.get("prompt_tokens"),
            usage.get("completion_tokens"),
            mapping(usage.get("completion_tokens_details")).get("reasoning_tokens"),
            mapping(usage.get("prompt_tokens_details")).get("cached_tokens"),
        ),
        reasoning=reasoning if isinstance(reasoning, str) and reasoning else None,
        logprobs=chances_of(mapping(choices[0].get("logprobs")).get("content")),
        model=document["model"] if isinstance(document.get("model"), str) else None,
        seconds=answered.seconds,
        raw=document,
    )


def _check_ending(finish: Any, message: Mapping[str, Any], text: str) -> None:
    refusal = message.get("refusal")
    if finish == "content_filter" or (isinstance(refusal, str) and refusal.strip()):
        said = refusal if isinstance(refusal, str) and refusal.strip() else "its filter stopped the reply"
        raise ChatError(Reason.CONTENT_FILTER, f"the model declined: {said[:300]}", {"partial": text[:200]})
    if isinstance(finish, str) and finish in _FAILED:
        raise ChatError(Reason.ENDPOINT_ERROR, f"the server gave up on the reply ({finish})", retry=True)


def _text_of(content: Any) -> str:
    """The text of a message; empty where it has none, which is a reply that says nothing."""
    if isinstance(content, str):
        return content
    return "".join(one["text"] for one in entries(content) if isinstance(one.get("text"), str))
