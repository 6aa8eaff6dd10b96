"""A judge that is no model: it is told what is true, and says it with stated chances.

It proves that calibration finds what is there, and lets demonstrations run anywhere. Everything that names it says that
it is simulated.

Its answers are fixed by its seed and by what a request is *about*, never by the pixels. About a clip whose truth it was
told it says yes with the chance ``sensitivity`` where yes is true and ``1 - specificity`` where no is; about anything
else (no clip, another sample's clip, or when it does not look) with the chance ``yes_bias``.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gen_eval.mllm import (
    Capabilities,
    ChatClient,
    ChatRequest,
    Frames,
    Identity,
    Image,
    ModelEntry,
    Reply,
    Text,
    TokenChance,
    VideoFile,
)
from gen_eval.records import InputError
from judge.entry import SIMULATED, question_key
from judge.questions import JudgeQuestion

Place: TypeAlias = tuple[str, str] | str
"""What a truth holds for: (video, question), or a question about any video of its sample."""

_UNREADABLE = "I cannot tell."
_WORDS = {"yes": "Yes", "no": "No"}
_SUREST = 0.999
_BARELY = 0.501


class Parameters(BaseModel):
    """What a simulated judge is like (``parameters`` of its model entry); all of it stands in its identity."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sensitivity: float = Field(0.9, ge=0, le=1, description="chance of yes where yes is true")
    specificity: float = Field(0.9, ge=0, le=1, description="chance of no where no is true")
    yes_bias: float = Field(0.5, ge=0, le=1, description="chance of yes about what it has not seen")
    unreadable: float = Field(0.0, ge=0, le=1, description="share of replies that say neither")
    order_effect: float = Field(0.0, ge=-1, le=1, description="how much rarer yes is when no is named first")
    noise: float = Field(0.0, ge=0, le=1, description="chance that a repeated question is answered anew")
    looks: bool = Field(True, description="whether it looks at what it is shown")
    seed: int = Field(0, ge=0)


class Client(ChatClient):
    """The backend ``simulated``; :meth:`learn` tells it the truth."""

    def __init__(self, entry: ModelEntry) -> None:
        """Check the entry's parameters.

        Raises:
            InputError: one is not known or out of its range.
        """
        super().__init__(entry)
        try:
            self.parameters = Parameters.model_validate(dict(entry.parameters))
        except ValidationError as error:
            problems = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
            raise InputError(f"the simulated judge {entry.name!r} cannot be used: {problems}") from None
        self._truth: dict[Place, str] = {}

    def learn(self, truth: Mapping[Place, str | None]) -> None:
        """Tell it what is true.

        Args:
            truth: (video, question) as in ``about`` of a request -> ``yes`` or ``no``, or the question alone,
                ``sample/uid``, which then holds for every video of that sample (``sample`` and
                ``sample__seed``). ``None`` stands for a question that is not answered by yes or no.

        Raises:
            ValueError: an answer is neither.
        """
        if strange := [word for word in truth.values() if word is not None and word not in _WORDS]:
            raise ValueError(f"the truth of a yes/no question is yes or no, not {strange[0]!r}")
        self._truth.update({place: word for place, word in truth.items() if word is not None})

    def _known(self, video: str, question: str) -> str | None:
        """The truth about a clip, ``None`` when it is not known."""
        if (video, question) in self._truth:
            return self._truth[video, question]
        of_sample = question.rsplit("/", 1)[0]
        own = video == of_sample or video.rsplit("__", 1)[0] == of_sample
        return self._truth.get(question) if own else None

    @property
    def capabilities(self) -> Capabilities:
        """It takes any form; how replies are decoded is of no effect."""
        return Capabilities(frozenset({"max_tokens", "logprobs", "schema"}), video_form=True, video_file=True)

    async def identity(self) -> Identity:
        """Its parameters, all of them."""
        return Identity(f"{SIMULATED}:{self.entry.id}", None, SIMULATED, "1", self.parameters.model_dump())

    async def reply(self, request: ChatRequest) -> Reply:
        """What it says."""
        about = request.about
        place = (about.get("video", ""), about.get("question", ""))
        truth = self._known(*place) if self.parameters.looks and _media(request) else None
        # what it has not seen is all the same to it: no clip, another one, any clip when it does not look
        drawn = _Draw(self.parameters, [place[0] if truth is not None else "", place[1]], about)
        _, ignored = self.capabilities.split(request.options)
        said = None
        if drawn.number("unreadable") >= self.parameters.unreadable:
            said = "yes" if drawn.number("answer") < self.chance_of_yes(truth, no_first=_no_first(request)) else "no"
        word = _UNREADABLE if said is None else _WORDS[said]
        wanted = request.options.schema is not None and said is not None
        text = json.dumps({"reasoning": "simulated, nothing was looked at", "answer": word.upper()}) if wanted else word
        return Reply(
            text,
            logprobs=self._chances(said, truth) if request.options.logprobs else None,
            model=f"{SIMULATED}:{self.entry.id}",
            form=_form(request),
            ignored=ignored,
            raw={"simulated": True, "about": dict(about)},
        )

    def chance_of_yes(self, truth: str | None, *, no_first: bool = False) -> float:
        """The chance of yes about a clip of this truth (``None``: not seen), with either word named first."""
        own = self.parameters
        base = own.yes_bias if truth is None else own.sensitivity if truth == "yes" else 1 - own.specificity
        return min(max(base - (own.order_effect if no_first else 0.0), 0.0), 1.0)

    def _chances(self, said: str | None, truth: str | None) -> tuple[TokenChance, ...]:
        """What it said has the probability of being right that follows from its parameters at even odds."""
        if said is None:
            return (TokenChance(_UNREADABLE.split()[0], math.log(_SUREST), {}),)
        own = self.parameters
        right, wrong = (
            (own.sensitivity, 1 - own.specificity) if said == "yes" else (own.specificity, 1 - own.sensitivity)
        )
        sure = 0.5 if truth is None or right + wrong == 0 else right / (right + wrong)
        sure = min(max(sure, _BARELY), _SUREST)
        other = "no" if said == "yes" else "yes"
        chances = {_WORDS[said]: math.log(sure), _WORDS[other]: math.log(1 - sure)}
        return (TokenChance(_WORDS[said], chances[_WORDS[said]], chances),)


class _Draw:
    """Numbers in [0, 1) that belong to a question; a repeated one may get new ones."""

    def __init__(self, parameters: Parameters, place: Sequence[str], about: Mapping[str, str]) -> None:
        self._seed, self._place = parameters.seed, list(place)
        attempt = about.get("attempt", "0")
        again = [*self._place, attempt]
        if attempt != "0" and _hashed(self._seed, [*again, "anew"]) < parameters.noise:
            self._place = again

    def number(self, what: str) -> float:
        return _hashed(self._seed, [*self._place, what])


def _hashed(seed: int, parts: Iterable[str]) -> float:
    content = json.dumps([seed, *parts]).encode()
    return int.from_bytes(hashlib.sha256(content).digest()[:8], "big") / 2.0**64


def _media(request: ChatRequest) -> bool:
    return any(isinstance(part, Frames | VideoFile | Image) for part in request.parts)


def _form(request: ChatRequest) -> Literal["video", "images", "file"] | None:
    for part in request.parts:
        if isinstance(part, Frames):
            return part.form
        if isinstance(part, VideoFile):
            return "file"
    return None


def _last_text(request: ChatRequest) -> str:
    return next((part.text for part in reversed(request.parts) if isinstance(part, Text)), "")


def _no_first(request: ChatRequest) -> bool:
    """Whether the last line, which asks for the answer, names no before yes."""
    words = [word.strip(".,:;\"'") for word in _last_text(request).rstrip().rsplit("\n", 1)[-1].split()]
    named = [word for word in words if word in ("YES", "NO")]
    return named[:1] == ["NO"]


def truth_of(questions: Mapping[str, Sequence[JudgeQuestion]]) -> dict[Place, str | None]:
    """What a simulated judge is told so that it knows the answers to ``questions`` about the videos of each sample."""
    return {question_key(one): one.binary for own in questions.values() for one in own}


__all__ = ["Client", "Parameters", "truth_of"]
