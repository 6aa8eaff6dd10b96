"""Model entries: what is known of a model and where it answers, as data in ``configs/models/*.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gen_eval.protocols.loading import config_names, read_config
from gen_eval.records import InputError

IN_PROCESS = ("local", "vllm")
"""Backends that run the model themselves."""


_UNQUOTED = frozenset({"extra_forbidden", "missing"})


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Sees(_Strict):
    """How a model takes video."""

    form: Literal["video", "images", "file"] = Field("images", description="what it is best shown")
    patch_factor: int | None = Field(None, ge=1, description="sides of a picture are multiples of this (patch x merge)")
    frames_per_token: int = Field(1, ge=1, description="frames that share their tokens in the video form")
    single_frame: bool = Field(True, description="whether it takes a video of one frame")
    most_frames: int | None = Field(None, ge=1)


class Coordinates(_Strict):
    """Unit and order of boxes in its replies; declared, never guessed."""

    unit: Literal["thousandths", "fraction", "pixel_of_input", "pixel_of_source", "bin_100"]
    order: Literal["xyxy", "yxyx"] = "xyxy"
    keys: Mapping[str, Literal["xyxy", "yxyx"]] = Field(default_factory=dict)


class Price(_Strict):
    """What tokens cost."""

    input: float = Field(ge=0, description="per million prompt tokens")
    output: float = Field(ge=0, description="per million completion tokens, reasoning included")
    currency: str = "USD"
    as_of: str = Field(description="date of the price list")


class Thinking(_Strict):
    """Whether it can reason first and how that is switched."""

    mode: Literal["none", "switch", "effort", "always"] = "none"
    template_key: str | None = Field(None, description="variable of the chat template that switches it")
    efforts: tuple[str, ...] = ()


class PublishedAs(_Strict):
    """How the model was asked for its row of a published table, as far as its authors say."""

    effort: str | None = None
    preset: str | None = Field(None, description="what it was shown, where that is not what the others were shown")


class Endpoint(_Strict):
    """Where it answers. Nothing of this is part of a score's identity."""

    base_url: str | None = None
    api_key_env: str | None = Field(
        None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", description="environment variable that holds the key"
    )
    served_as: str | None = Field(None, description="name under which the server knows the model; default: asked of it")
    engine: str | None = Field(None, description="kind of server, for what it can do; default: asked of it")


class ModelEntry(_Strict):
    """One model."""

    name: str
    title: str
    id: str = Field(description="hub id, provider's id, or path of a folder")
    revision: str | None = None
    backend: str = Field("http", description="entry point of the group gen_eval.chat")
    family: str = Field("generic", description="what its prompts, boxes and frames follow")
    sees: Sees = Sees()
    context: int | None = Field(None, ge=1, description="tokens of prompt and reply together")
    coordinates: Coordinates | None = None
    thinking: Thinking = Thinking()
    price: Price | None = None
    licence: str = "unknown"
    commercial: Literal["yes", "no", "unknown"] = "unknown"
    size: str | None = Field(None, description="of the weights in bfloat16, for people")
    rows: Mapping[str, str] = Field(default_factory=dict, description="published table -> its row there")
    published: Mapping[str, PublishedAs] = Field(default_factory=dict, description="table -> how its row was asked")
    defaults: Mapping[str, Any] = Field(default_factory=dict, description="options of decoding its makers state")
    endpoint: Endpoint = Endpoint()
    parameters: Mapping[str, Any] = Field(default_factory=dict, description="what only its backend understands")

    def to_json(self) -> dict[str, Any]:
        """What a manifest records: everything but where it answers and what it costs."""
        return self.model_dump(mode="json", exclude={"endpoint", "price", "title", "rows", "published", "size"})


def load_model(name: str, *, endpoint: str | None = None, served_as: str | None = None) -> ModelEntry:
    """The model entry ``name``: a shipped one, or the ``.yaml`` file of that path.

    Args:
        name: of the entry.
        endpoint: address that takes the place of the entry's own.
        served_as: the model's name on that server.

    Raises:
        InputError: there is none, or it is malformed; the message names the field.
    """
    content = read_config("models", name)
    called = Path(name).name.removesuffix(".yaml").removesuffix(".yml")  # names have points of their own
    return entry_of(called, content, endpoint=endpoint, served_as=served_as)


def entry_of(
    name: str, content: Mapping[str, Any], *, endpoint: str | None = None, served_as: str | None = None
) -> ModelEntry:
    """The entry written as ``content``.

    An ``endpoint`` makes an entry whose model would run in this process one that is asked over HTTP.

    Raises:
        InputError: it is malformed.
    """
    if endpoint is not None and content.get("backend") in IN_PROCESS:
        content = {**content, "backend": "http"}
    given = {"base_url": endpoint, "served_as": served_as}
    own = content.get("endpoint") or {}
    if not isinstance(own, Mapping):
        raise InputError(
            f"the model entry {name!r} cannot be used: endpoint must be a mapping with base_url and others"
        )
    where = {**own, **{key: value for key, value in given.items() if value is not None}}
    try:
        return ModelEntry.model_validate({"title": name, **content, "name": name, "endpoint": where})
    except ValidationError as error:
        raise InputError(f"the model entry {name!r} cannot be used: {problems_of(error)}") from None


def problems_of(error: ValidationError, whole: str = "entry") -> str:
    """What is wrong with a written entry, field by field.

    Values are shown where they help. Those of unknown fields and of the endpoint are not, nor what is around a missing
    field: people put keys there.
    """
    return "; ".join(
        f"{'.'.join(map(str, one['loc'])) or whole}: {one['msg']}"
        + ("" if one["type"] in _UNQUOTED or "endpoint" in one["loc"] else f" (got {one['input']!r:.60})")
        for one in error.errors()
    )


def model_names() -> list[str]:
    """The shipped model entries."""
    return config_names("models")
