"""What a judge is told: versioned texts (``judge/prompts/*.yaml``), and the messages made from them.

Media come before everything that differs between questions, and the question comes last, so that an engine can keep
what it has computed for a clip over all questions about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from gen_eval.mllm import Frames, Message, VideoFile
from gen_eval.records import InputError, digest_of

DEFAULT = "yes-no"
"""The prompt of a judge that names none."""

WITHOUT_VIDEO = "without-video"
"""The prompt of the reference point in which nothing is shown."""

OTHER_ORDER = {"yes-no": "no-yes", "no-yes": "yes-no"}
"""Prompts that differ in the order of the two words only."""

_FOLDER = Path(__file__).parent / "prompts"
_PLACE = "{question}"


class JudgePrompt(BaseModel):
    """One way of asking.

    The user turn is the media, then ``lead``, the question and ``close`` with a blank line between them.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    version: int = Field(ge=1, description="raised whenever a word changes")
    title: str
    system: str = Field(min_length=1)
    lead: str = ""
    question: str
    close: str = ""
    first: Literal["yes", "no"] = Field(description="which of the two words is named first")
    media: Literal["shown", "none"] = Field("shown", description="whether it speaks of a video")
    reply_schema: Mapping[str, Any] | None = Field(None, alias="schema", description="the reply is JSON of this form")

    @field_validator("question")
    @classmethod
    def _has_a_place(cls, text: str) -> str:
        if text.count(_PLACE) != 1:
            raise ValueError(f"must hold {_PLACE} exactly once")
        return text

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that is sent."""
        return digest_of(self.model_dump(mode="json", by_alias=True, exclude={"title", "name"}))

    @property
    def shows(self) -> bool:
        """Whether a clip is to be shown with it."""
        return self.media == "shown"

    def to_json(self) -> dict[str, Any]:
        """What a manifest records."""
        return {"name": self.name, "version": self.version, "digest": self.digest}

    def text(self, question: str) -> str:
        """The text of the user turn."""
        # not str.format: a question may hold braces
        return "\n\n".join(part for part in (self.lead, self.question.replace(_PLACE, question), self.close) if part)

    def messages(self, part: Frames | VideoFile | None, question: str) -> tuple[Message, ...]:
        """System turn and user turn.

        Args:
            part: what is shown; ``None`` for nothing.
            question: the text that is asked; the key is never shown.

        Raises:
            ValueError: a clip with a prompt that denies it, or none with one that speaks of it.
        """
        if (part is not None) != self.shows:
            given = "a clip" if part is not None else "no clip"
            raise ValueError(f"the prompt {self.name!r} is for media {self.media!r}; it was given {given}")
        shown = () if part is None else (part,)
        return (Message.of("system", self.system), Message.of("user", *shown, self.text(question)))


def load_prompt(name: str) -> JudgePrompt:
    """The prompt ``name``: a shipped one, or the ``.yaml`` file of that path.

    Raises:
        InputError: there is none, or it is malformed; the message names the field.
    """
    path = Path(name)
    if path.suffix in {".yaml", ".yml"}:
        return _read(path.stem, path)
    return _shipped(name)


def prompt_names() -> list[str]:
    """The shipped prompts."""
    return sorted(path.stem for path in _FOLDER.glob("*.yaml"))


@lru_cache(maxsize=16)
def _shipped(name: str) -> JudgePrompt:
    if name not in prompt_names():
        raise InputError(f"no prompt {name!r}; there are {', '.join(prompt_names())} (or give a path to a .yaml)")
    return _read(name, _FOLDER / f"{name}.yaml")


def _read(name: str, path: Path) -> JudgePrompt:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"the prompt file {path} cannot be read as YAML: {error}") from error
    if not isinstance(content, dict):
        raise InputError(f"the prompt file {path} must hold a mapping, not {type(content).__name__}")
    try:
        return JudgePrompt.model_validate({**content, "name": name})
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, one['loc'])) or 'prompt'}: {one['msg']}" for one in error.errors())
        raise InputError(f"the prompt {name!r} cannot be used: {problems}") from None


__all__ = ["DEFAULT", "OTHER_ORDER", "WITHOUT_VIDEO", "JudgePrompt", "load_prompt", "prompt_names"]
