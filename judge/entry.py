"""Judges as data (``configs/judges/*.yaml``): a model, how it is asked, what it is shown, how it decodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from gen_eval.mllm import ChatRequest, Frames, ModelEntry, Options, VideoFile, load_model, model_names
from gen_eval.mllm.entry import entry_of, problems_of
from gen_eval.protocols.loading import config_names, read_config
from gen_eval.records import InputError
from judge.prompting import DEFAULT, WITHOUT_VIDEO, JudgePrompt, load_prompt
from judge.questions import JudgeQuestion

OPTIONS = Options(temperature=0.0, top_p=1.0, top_k=0, repetition_penalty=1.0, max_tokens=1024)
"""Decoding of a judge that states none: that of the public code."""

SIMULATED = "simulated"
"""The backend that is no model; every title of it says so."""

_KIND = "judges"
_PATCH_16 = 32


class _Written(BaseModel):
    """A judge as its file has it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str | None = None
    model: str | dict[str, Any] = Field(description="name of a model entry, or the entry itself")
    prompt: str = DEFAULT
    preset: str | None = None
    options: dict[str, Any] = Field(default_factory=dict)
    context: int | None = Field(None, ge=1)


@dataclass(frozen=True)
class JudgeEntry:
    """Who judges, and all that moves its answers.

    Attributes:
        name: of the entry.
        title: for people; that of a simulated judge says so.
        model: who answers.
        prompt: what it is told.
        preset: name of what it is shown.
        options: of decoding.
        context: tokens of prompt and reply that are to fit; ``None`` takes the model's own.
    """

    name: str
    title: str
    model: ModelEntry
    prompt: JudgePrompt
    preset: str
    options: Options = OPTIONS
    context: int | None = None

    @property
    def simulated(self) -> bool:
        """Whether no model answers."""
        return self.model.backend == SIMULATED

    def to_json(self) -> dict[str, Any]:
        """What a manifest records."""
        return {
            "name": self.name,
            "title": self.title,
            "model": self.model.to_json(),
            "prompt": self.prompt.to_json(),
            "options": {name: value for name, value in self.options.asked.items() if name != "schema"},
            "context": self.context,
        }

    def with_prompt(self, name: str) -> JudgeEntry:
        """The same judge, asked in another way.

        Raises:
            InputError: there is no such prompt.
        """
        return replace(self, prompt=load_prompt(name))

    def request(
        self,
        question: JudgeQuestion,
        part: Frames | VideoFile | None,
        *,
        video: str | None = None,
        prompt: JudgePrompt | None = None,
        attempt: int = 0,
    ) -> ChatRequest:
        """The request for one question.

        Args:
            question: what is asked; its key is not part of the request.
            part: what is shown; ``None`` asks without a video, with the prompt for that.
            video: name of the clip that is shown, for logs and simulated judges; by default the question's sample.
            prompt: in place of the judge's own.
            attempt: how often the same was asked before; for logs and simulated judges.

        Raises:
            ValueError: the prompt does not go with what is shown.
        """
        chosen = prompt or (self.prompt if part is not None or not self.prompt.shows else load_prompt(WITHOUT_VIDEO))
        messages = chosen.messages(part, question.question)
        options = replace(self.options, schema=chosen.reply_schema) if chosen.reply_schema else self.options
        about = {
            "video": "" if part is None else (question.sample if video is None else video),
            "question": question_key(question),
            "attempt": str(attempt),
        }
        return ChatRequest(messages, options, about)


def question_key(question: JudgeQuestion) -> str:
    """How a request names a question: uids are unique within a sample only."""
    return f"{question.sample}/{question.uid}"


def load_judge(name: str, *, endpoint: str | None = None, served_as: str | None = None) -> JudgeEntry:
    """The judge ``name``: a shipped one, a model entry (asked in the default way), or the ``.yaml`` file of that path.

    Args:
        name: of the judge or the model; a file is a judge when it has a ``model``, else a model entry.
        endpoint: address that takes the place of the model entry's own.
        served_as: the model's name on that server.

    Raises:
        InputError: there is none of that name, or it is malformed; the message names the field.
    """
    where = {"endpoint": endpoint, "served_as": served_as}
    if Path(name).suffix not in {".yaml", ".yml"}:
        if name not in judge_names() and name in model_names():
            return _of_model(load_model(name, **where))
        if name not in judge_names():
            raise InputError(
                f"no judge {name!r}; there are {', '.join(judge_names())}, the models {', '.join(model_names())}, or "
                "give a path to a .yaml"
            )
    content = read_config(_KIND, name)
    if "model" not in content:
        return _of_model(load_model(name, **where))
    return _judge(Path(name).stem, content, **where)


def judge_names() -> list[str]:
    """The shipped judges."""
    return config_names(_KIND)


def _of_model(model: ModelEntry) -> JudgeEntry:
    title = _title(model.title, model)
    return JudgeEntry(model.name, title, model, load_prompt(DEFAULT), _preset_of(model))


def _judge(name: str, content: Mapping[str, Any], *, endpoint: str | None, served_as: str | None) -> JudgeEntry:
    try:
        written = _Written.model_validate(content)
    except ValidationError as error:
        raise InputError(f"the judge {name!r} cannot be used: {problems_of(error, 'judge')}") from None
    where = {"endpoint": endpoint, "served_as": served_as}
    if isinstance(written.model, str):
        model = load_model(written.model, **where)
    else:
        model = entry_of(name, written.model, **where)
    title = _title(written.title or model.title, model)
    preset = written.preset or _preset_of(model)
    prompt, options = load_prompt(written.prompt), _options(name, written.options)
    return JudgeEntry(name, title, model, prompt, preset, options, written.context)


def _title(title: str, model: ModelEntry) -> str:
    if model.backend == SIMULATED and SIMULATED not in title.casefold():
        return f"{title} (simulated)"
    return title


def _preset_of(model: ModelEntry) -> str:
    """The release of the sampling rule that knows the family's patches."""
    return "2fps-qwen-0.0.14" if model.sees.patch_factor == _PATCH_16 else "2fps-qwen-0.0.8"


def _options(name: str, given: Mapping[str, Any]) -> Options:
    known = set(Options.__dataclass_fields__) - {"schema"}
    if unknown := sorted(set(given) - known):
        raise InputError(f"the judge {name!r}: unknown options {', '.join(unknown)}; known: {', '.join(sorted(known))}")
    try:
        checked: Options = TypeAdapter(Options).validate_python({**vars(OPTIONS), **given})
    except ValidationError as error:
        raise InputError(f"the judge {name!r} has options that cannot be used: {problems_of(error, 'judge')}") from None
    return checked


__all__ = ["OPTIONS", "SIMULATED", "JudgeEntry", "judge_names", "load_judge", "question_key"]
