"""The forms in which questions are put to models: data with a digest (``understanding/messages/*.yaml``)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gen_eval.mllm import Options
from gen_eval.records import InputError, digest_of


class PromptForm(BaseModel):
    """One form of asking; every field moves replies and is in the digest."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    system: str | None = Field(None, description="system turn of a question with its video")
    system_without_video: str | None = Field(None, description="the same without; default: that with a video")
    before: str = Field("", description="stands before the question")
    after: str = Field("", description="stands behind the options")
    video: Literal["first", "last", "none"] = "first"
    option: str = Field("{letter}. {text}", description="one option; {letter} and {text} are replaced")
    gap: str = Field("\n", description="between the question and its options")
    drop: tuple[str, ...] = Field((), description="sentences that are taken out of the question")
    ending: str = Field("", description="the very end of the user turn")
    ending_not_for: tuple[str, ...] = Field((), description="model families that do not get the ending")
    reply: str = Field("", description="how a reply that is to be read is shown; {reply} is replaced")
    longest_reply: int | None = Field(None, ge=1, description="characters of a reply that are shown, from its end")
    preset: str | None = Field(None, description="what is shown unless another preset is asked for")
    options: Mapping[str, Any] = Field(default_factory=dict, description="of decoding")
    thinking: Mapping[str, Any] | None = Field(None, description="of decoding when the model may reason first")
    probes: Mapping[str, str] = Field(default_factory=dict, description="replies that choose nothing, by name")

    @property
    def digest(self) -> str:
        """SHA-256 of everything that a message is made of (not of decoding, not of the preset)."""
        return digest_of(self.model_dump(mode="json", exclude={"options", "thinking", "preset", "probes"}))

    def system_turn(self, *, video: bool) -> str | None:
        """The system turn, if there is one."""
        return self.system if video or self.system_without_video is None else self.system_without_video

    def decoding(
        self,
        *,
        thinking: bool | None = None,
        effort: str | None = None,
        seed: int | None = None,
        may_reason: bool = False,
    ) -> Options:
        """How replies are decoded; there is room for reasoning unless it is switched off.

        Args:
            thinking: whether the model is to reason first; ``None`` leaves it to the model.
            effort: how much, by the provider's names.
            seed: of sampling.
            may_reason: whether the model may reason first when nothing is said about it.
        """
        reasons = thinking is not False and (thinking or effort is not None or may_reason)
        values = self.thinking if reasons and self.thinking is not None else self.options
        base: dict[str, Any] = {"temperature": None, "top_p": None, **values}
        return Options(**base, thinking=thinking, effort=effort, seed=seed)


@lru_cache(maxsize=16)
def _forms(file: str) -> dict[str, PromptForm]:
    path = Path(__file__).with_name(f"{file}.yaml")
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    try:
        return {name: PromptForm(name=name, **entry) for name, entry in content.items()}
    except (ValidationError, TypeError, AttributeError) as error:
        raise InputError(f"the prompts {path.name} cannot be used: {error}") from error


def load_form(file: str, name: str) -> PromptForm:
    """The form ``name`` of the prompts ``file``.

    Raises:
        InputError: there is none; the message lists what there is.
    """
    forms = _forms(file)
    if name not in forms:
        raise InputError(f"no prompt form {name!r}; there are {', '.join(forms)}")
    return forms[name]


def form_names(file: str) -> list[str]:
    """The forms in ``file``, in order."""
    return list(_forms(file))
