"""`judge calibrate`: a judge is asked about clips whose truth is known, in a run that goes on where it was stopped."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import gen_eval
from api.services.asking import CLIP, Question, QuestionGroup, ask_groups_async
from api.services.judging.clips import FPS, FRAMES, SIZE, Clip, clips_of
from api.services.manifest_entries import Progress, environment, silent
from gen_eval.mllm import ChatRequest, Reply
from gen_eval.mllm.asking import Asker, Limits, Tally, open_client
from gen_eval.mllm.showing import Shown
from gen_eval.protocols.shown import ShownPreset, load_shown
from gen_eval.records import Answer, InputError
from gen_eval.records.answer import MAIN
from gen_eval.records.files import remove_leftovers, write_atomic
from gen_eval.records.run import MANIFEST_FORMAT, RunFolder
from judge import simulated
from judge.calibration import (
    OTHER_ORDER,
    REPEAT,
    SHUFFLED,
    WITHOUT_VIDEO,
    Calibration,
    Looking,
    Trial,
    calibrate,
)
from judge.entry import JudgeEntry, load_judge
from judge.prompting import OTHER_ORDER as OTHER_PROMPT
from judge.prompting import JudgePrompt, load_prompt
from judge.questions import JudgeQuestion
from judge.service import show_video
from judge.simulated import truth_of
from judge.soft import Confidence, confidence, yes_probability
from judge.verdict import verdict_of

TRACK = "calibration"
_READING = "replies"
_OTHER = "other"
_FOLDER = "clips"
_RESULT = "calibration.json"
_KEPT = 32


@dataclass(frozen=True)
class CalibrationRequest:
    """What a judge is asked.

    Attributes:
        judge: name of a judge, of a model, or the path of a ``.yaml``.
        endpoint: address of the server, in place of the entry's own.
        served_as: the model's name on that server.
        prompt: in place of the judge's own.
        preset: in place of the judge's own.
        scenes: how many; each is shown true and broken.
        repeats: how often each question is asked again.
        seed: of the first scene of each kind.
        size: height and width of the clips in pixels.
        fps: of the clips.
        frames: of each clip.
        device: where a judge in this process runs.
        dtype: its number format; ``None`` for the checkpoint's own.
    """

    judge: str
    endpoint: str | None = None
    served_as: str | None = None
    prompt: str | None = None
    preset: str | None = None
    scenes: int = 16
    repeats: int = 1
    seed: int = 0
    size: tuple[int, int] = SIZE
    fps: float = FPS
    frames: int = FRAMES
    device: str = "auto"
    dtype: str | None = None


@dataclass(frozen=True)
class Calibrated:
    """What came of it.

    Attributes:
        run: id of the run.
        judge: who was asked.
        identity: what answered.
        preset: what was shown.
        clips: how many clips, twins included.
        calibration: the estimates.
        confidence: how far its probabilities can be believed.
        tally: requests, retries, tokens and cost of this call alone.
    """

    run: str
    judge: JudgeEntry
    identity: Mapping[str, Any]
    preset: ShownPreset
    clips: int
    calibration: Calibration
    confidence: Confidence
    tally: Tally

    @property
    def currency(self) -> str | None:
        """Of the cost."""
        return None if self.judge.model.price is None else self.judge.model.price.currency

    @property
    def sentence(self) -> str:
        """The verdict for people."""
        return {
            Looking.LOOKS: "It looks: the right video makes its answers clearly better.",
            Looking.DOES_NOT_LOOK: (
                "It does not look: with the right video it is hardly better than without one or with another scene's. "
                "Do not trust its scores."
            ),
            Looking.NOT_CLEAR: (
                "Whether it looks is not clear: too few questions to tell a weak judge from a blind one. "
                "--scenes with more of them tells."
            ),
            Looking.NOT_ASKED: "Whether it looks was not found out: no question about that has an answer.",
        }[self.calibration.looking]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; nothing that differs between two calls on the same answers."""
        return {
            "run": self.run,
            "judge": {**self.judge.to_json(), "simulated": self.judge.simulated, "identity": dict(self.identity)},
            "preset": {"name": self.preset.name, "digest": self.preset.digest},
            "clips": self.clips,
            "currency": self.currency,
            **self.calibration.to_json(),
            "confidence": self.confidence.to_json(),
        }


class _FreshAsker(Asker):
    """Asks every question anew: a reply from a cache, or shared with an equal request, would repeat itself."""

    async def ask(self, request: ChatRequest, *, fresh: bool = True) -> Reply:
        return await super().ask(request, fresh=True)


def calibrate_judge(
    request: CalibrationRequest, out: Path, *, limits: Limits | None = None, progress: Progress = silent
) -> Calibrated:
    """Ask a judge about scenes, true and broken, and estimate what it is worth.

    Clips are written to ``out/clips``, estimates to ``out/calibration.json``.

    Args:
        request: what is asked.
        out: folder of the run; continued when it holds the same.
        limits: how hard the endpoint is asked; as set by the environment by default.
        progress: told how far it is.

    Raises:
        InputError: bad input, or ``out`` holds another run.
        MissingPart: the endpoint or the judge's package is absent; what was answered is kept.
        KeyboardInterrupt: stopped by the user; what was answered is kept.
    """
    return asyncio.run(calibrate_judge_async(request, out, limits=limits, progress=progress))


async def calibrate_judge_async(
    request: CalibrationRequest, out: Path, *, limits: Limits | None = None, progress: Progress = silent
) -> Calibrated:
    """:func:`calibrate_judge` for callers with an event loop of their own."""
    if request.scenes < 2 or request.repeats < 0:
        raise InputError(
            f"{request.scenes} scenes and {request.repeats} repeats cannot be asked about; at least 2 scenes and no "
            "fewer than 0 repeats are needed"
        )
    judge = load_judge(request.judge, endpoint=request.endpoint, served_as=request.served_as)
    judge = judge if request.prompt is None else judge.with_prompt(request.prompt)
    preset = load_shown(request.preset or judge.preset)
    clips = clips_of(request.scenes, seed=request.seed, size=request.size, fps=request.fps, frames=request.frames)
    client = open_client(judge.model, device=request.device, dtype=request.dtype)
    if isinstance(client, simulated.Client):
        client.learn(truth_of({clip.name: clip.questions for clip in clips}))
    async with _FreshAsker(client, limits=limits or Limits.of_settings()) as asker:
        identity = (await asker.identity()).to_json()
        manifest = _manifest(request, judge, identity, preset, clips)
        with RunFolder.create(out, manifest) as run, run.locked():
            await asyncio.to_thread(_write_clips, clips, out / _FOLDER, progress)
            groups = _Groups(judge, preset, out / _FOLDER, request.repeats).of(clips)
            run.log("start", host=platform.node(), clips=len(clips))
            await ask_groups_async(run, judge.name, groups, asker, lambda *_: (), progress=progress)
            run.log("end", tally=asker.tally.to_json())
            trials = trials_of(clips, run.answers())
            found = Calibrated(
                run.id, judge, identity, preset, len(clips), calibrate(trials), _confidence(trials), asker.tally
            )
            write_atomic(out / _RESULT, _pretty(found.to_json()))
            return found


def trials_of(clips: Iterable[Clip], answers: Iterable[Answer]) -> list[Trial]:
    """The kept answers about ``clips`` as trials."""
    known = {(clip.name, one.uid): (clip, one) for clip in clips for one in clip.questions}
    found = []
    for answer in answers:
        place = known.get((answer.sample, answer.question))
        if place is not None:
            found.append(_trial(*place, answer))
    return found


def _trial(clip: Clip, question: JudgeQuestion, answer: Answer) -> Trial:
    assert question.binary is not None  # clips have no other questions
    verdict = verdict_of(question, answer, _READING)
    return Trial(
        scene=clip.scene,
        clip=clip.name,
        uid=question.uid,
        truth=question.binary,
        condition=answer.condition,
        said=verdict.said,
        failed=verdict.reason,
        flaw=clip.flaw,
        topic=question.task,
        turned=question.uid in clip.turned,
        chance=yes_probability(answer.chances),
        tokens=(answer.usage.get("prompt_tokens"), answer.usage.get("completion_tokens")),
        cost=answer.cost,
    )


def _confidence(trials: Sequence[Trial]) -> Confidence:
    main = [one for one in trials if one.condition == MAIN and one.failed is None]
    return confidence((one.scene, one.chance, one.truth == "yes") for one in main)


def _write_clips(clips: Sequence[Clip], folder: Path, progress: Progress) -> None:
    """Render what is not there yet; a file appears whole or not at all."""
    remove_leftovers(folder)
    for number, clip in enumerate(clips, start=1):
        if not (path := _path(folder, clip)).exists():
            clip.write(path)
        progress("rendering", number, len(clips))


def _path(folder: Path, clip: Clip) -> Path:
    return folder / f"{clip.name}.mp4"


@dataclass(frozen=True)
class _Groups:
    """Makes the questions of every clip, in every condition."""

    judge: JudgeEntry
    preset: ShownPreset
    folder: Path
    repeats: int

    def of(self, clips: Sequence[Clip]) -> list[QuestionGroup]:
        scenes = [clip for clip in clips if clip.flaw is None]
        following = {one.scene: scenes[(place + 1) % len(scenes)] for place, one in enumerate(scenes)}
        return [self._group(clip, following[clip.scene]) for clip in clips]

    def _group(self, clip: Clip, other: Clip) -> QuestionGroup:
        shown = {name: partial(self._show, one) for name, one in ((CLIP, clip), (_OTHER, other))}
        asked = [asking for question in clip.questions for asking in self._asked(clip, other, question)]
        return QuestionGroup(clip.name, "0", shown, tuple(asked))

    def _show(self, clip: Clip) -> Shown:
        return self._shown(_path(self.folder, clip))

    @cached_property
    def _shown(self) -> Callable[[Path], Shown]:
        """A clip is shown for itself and in the place of others: not decoded each time, as far as memory allows."""
        return lru_cache(maxsize=_KEPT)(lambda path: show_video(path, self.judge, self.preset))

    def _asked(self, clip: Clip, other: Clip, question: JudgeQuestion) -> Iterable[Question]:
        request = partial(self._request, question, clip.name)
        yield Question(question.uid, request)
        yield Question(question.uid, request, WITHOUT_VIDEO, "")
        yield Question(question.uid, partial(self._request, question, other.name), SHUFFLED, _OTHER)
        if self.judge.prompt.name in OTHER_PROMPT:
            turned = load_prompt(OTHER_PROMPT[self.judge.prompt.name])
            yield Question(question.uid, partial(request, prompt=turned), OTHER_ORDER)
        for attempt in range(1, self.repeats + 1):
            yield Question(question.uid, partial(request, attempt=attempt), f"{REPEAT}{attempt}")

    def _request(
        self,
        question: JudgeQuestion,
        video: str,
        shown: Shown | None,
        *,
        prompt: JudgePrompt | None = None,
        attempt: int = 0,
    ) -> ChatRequest:
        part = None if shown is None else shown.part
        return self.judge.request(question, part, video=video, prompt=prompt, attempt=attempt)


def _manifest(
    request: CalibrationRequest,
    judge: JudgeEntry,
    identity: Mapping[str, Any],
    preset: ShownPreset,
    clips: Sequence[Clip],
) -> dict[str, Any]:
    return {
        "format": MANIFEST_FORMAT,
        "gen_eval": gen_eval.__version__,
        "track": TRACK,
        "model": judge.name,
        "environment": environment(),
        "judge": {**judge.to_json(), "simulated": judge.simulated, "identity": dict(identity)},
        "preset": {"name": preset.name, "digest": preset.digest},
        "reading": _READING,
        "repeats": request.repeats,
        "clips": [
            {
                "name": clip.name,
                "recipe": clip.recipe.to_json(),
                "flaw": clip.flaw,
                "questions": [one.identity() for one in clip.questions],
            }
            for clip in clips
        ],
    }


def _pretty(content: Mapping[str, Any]) -> bytes:
    import json

    return (json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


__all__ = ["Calibrated", "CalibrationRequest", "calibrate_judge", "calibrate_judge_async", "trials_of"]
