"""What servers of the chat completions interface do with a request, as data in ``configs/engines/*.yaml``.

Servers differ in what they honour, refuse and ignore in silence. An engine says, for each option, the field it is sent
as; an option that it does not name is not sent, and the reply says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gen_eval.mllm.client import Capabilities
from gen_eval.mllm.entry import Thinking
from gen_eval.protocols.loading import config_names, read_config
from gen_eval.records import InputError

PlainOption = Literal[
    "temperature", "top_p", "top_k", "repetition_penalty", "presence_penalty", "max_tokens", "seed", "stop"
]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Recognise(_Strict):
    """How a server of this kind is told from others; any one of these is enough."""

    owned_by: tuple[str, ...] = Field((), description="as `/models` says of its models")
    hosts: tuple[str, ...] = Field((), description="of the address")
    route: str | None = Field(None, description="path that only this kind lists in `/openapi.json`")


class VideoParts(_Strict):
    """How chosen frames are sent as one video."""

    form: Literal["jpeg_list"] = Field("jpeg_list", description="JPEG files in base64, joined by commas")
    media_options: str = Field(description="field for the frames' places and times")
    processor_options: str = Field(description="field for options of the model's processor")


class Engine(_Strict):
    """One kind of server."""

    name: str
    title: str
    recognise: Recognise = Recognise()
    version_at: str | None = Field(None, description="path, from the server's root, that gives its version")
    lists_models: bool = Field(description="whether a name that `/models` does not list cannot be asked")
    options: Mapping[PlainOption, str] = Field(description="option -> field of the request")
    choices: Literal["structured_outputs"] | None = None
    schema_as: Literal["response_format"] | None = Field(None, alias="schema")
    logprobs: bool = False
    thinking: Literal["chat_template_kwargs"] | None = None
    effort: str | None = Field(None, description="field of the request")
    detail: bool = Field(False, description="whether pictures carry the size at which they are looked at")
    video: VideoParts | None = None
    files: bool = Field(False, description="whether a video file can be sent")
    most_pictures: int | None = Field(None, ge=1)

    def capabilities(self, thinking: Thinking, without: tuple[str, ...]) -> Capabilities:
        """What this engine does for a model with such ``thinking``, which does not take the options ``without``."""
        able = set(map(str, self.options))
        able |= {name for name in ("choices", "logprobs") if getattr(self, name)}
        able |= {"schema"} if self.schema_as else set()
        able |= {"thinking"} if self.thinking and thinking.template_key else set()
        able |= {"effort"} if self.effort and thinking.mode == "effort" else set()
        return Capabilities(
            frozenset(able - set(without)),
            video_form=self.video is not None,
            video_file=self.files,
            most_pictures=self.most_pictures,
        )


def load_engine(name: str) -> Engine:
    """The engine ``name``: a shipped one, or the ``.yaml`` file of that path.

    Raises:
        InputError: there is none, or it is malformed; the message names the field.
    """
    content = read_config("engines", name)
    try:
        return Engine.model_validate({"title": name, **content, "name": name})
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, one['loc'])) or 'engine'}: {one['msg']}" for one in error.errors())
        raise InputError(f"the engine {name!r} cannot be used: {problems}") from None


def engine_names() -> list[str]:
    """The shipped engines."""
    return config_names("engines")
