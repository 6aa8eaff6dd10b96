"""The demonstration: built-in scenes as three models, scored, judged, compared and reported.

One model keeps all laws, one flickers, one lets things jump; the last one also lost a file and damaged another, as
happens, to show what becomes of them. The judge is a simulated one and says so everywhere: it is told what happens in
each clip, and answers right so and so often. So are the people who vote: their answers are drawn, nobody looked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from api.services.arena import Correlated, people_of
from api.services.comparison import Comparison, compare
from api.services.domain import DomainRequest, Judging, score_domain
from api.services.generation import generate_videos
from api.services.manifest_entries import Progress, silent
from api.services.reporting import write_report
from api.services.request import ScoreRequest, Track
from api.services.results import RunResults
from api.services.scene_data import make_benchmark
from api.services.scoring import Execution, score
from gen_eval.arena import Vote
from gen_eval.arena.simulated import simulated_votes
from gen_eval.records.files import write_atomic

MODELS: dict[str, str | None] = {"lawful": None, "flickering": "flicker", "jumpy": "teleport"}
"""Model -> the flaw that the simulator is given."""

PEOPLE = {
    "quality": {"lawful": 1.0, "jumpy": 0.4, "flickering": -1.4},
    "plausibility": {"lawful": 1.2, "flickering": 0.1, "jumpy": -1.3},
}
"""How strong simulated people find each model: flicker is ugly, and jumping breaks the laws."""

_SEEDS = (0, 1)
_SIZE = (144, 256)
_FRAMES = 17
_TRACKS: tuple[Track, ...] = ("quality", "control")
_JUDGE = "simulated"


@dataclass(frozen=True)
class Demonstration:
    """What the demonstration made.

    Attributes:
        runs: results: a control, a quality and a domain run a model.
        comparison: each other model against the lawful one, on control.
        people: what simulated people say of the models, and how far scores agree with them.
        votes: the file of their votes.
        report: the page that holds all of it.
    """

    runs: list[RunResults]
    comparison: Comparison
    people: Correlated
    votes: Path
    report: Path


def demonstrate(
    out: Path, *, workers: int = 0, progress: Progress = silent, say: Callable[[str], None] = lambda line: None
) -> Demonstration:
    """Render, score, compare and report into ``out``; what is there already is kept."""
    data = out / "data"
    say("1/5 scenes with known truth")
    make_benchmark(data, per_kind=1, size=_SIZE, frames=_FRAMES, controls=False, progress=progress)
    say("2/5 three models generate videos")
    for model, flaw in MODELS.items():
        options = {} if flaw is None else {"flaw": flaw}
        generate_videos("scenes", data, out / "models" / model, seeds=_SEEDS, options=options, progress=progress)
    _damage(out / "models" / "jumpy" / "videos")
    say("3/5 scoring, and asking a simulated judge")
    runs = [_scored(track, model, data, out, workers, progress) for track in reversed(_TRACKS) for model in MODELS]
    runs += [_judged(model, data, out, progress) for model in MODELS]
    say("4/5 simulated people vote")
    votes = _voted(out, [sample["id"] for sample in runs[0].manifest["samples"]])
    folders = tuple(run.path for run in runs if run.path is not None)
    people, agreement = people_of(folders, votes=votes)
    say("5/5 comparing and reporting")
    report = out / "report.html"
    write_report(runs, report, people=people)
    control = [run for run in runs if run.manifest["track"] == "control"]
    return Demonstration(runs, compare(*control, protocol="corrected"), agreement, votes, report)


def _voted(out: Path, samples: Sequence[str]) -> Path:
    """Votes of simulated people, as a file that anybody could have brought."""
    path = out / "votes-simulated.jsonl"
    lines = []
    for vote in simulated_votes(PEOPLE, samples):
        known = {name: value for name in Vote.__slots__ if (value := getattr(vote, name)) not in (None, {})}
        lines.append(json.dumps(known, ensure_ascii=False))
    write_atomic(path, ("\n".join(lines) + "\n").encode())
    return path


def _scored(track: Track, model: str, data: Path, out: Path, workers: int, progress: Progress) -> RunResults:
    videos = out / "models" / model / "videos"
    request = ScoreRequest(track, videos, data=data, model=model, seeds=tuple(str(seed) for seed in _SEEDS))
    run = out / "runs" / f"{model}-{track}"

    def labelled(label: str, done: int, total: int) -> None:
        progress(f"{model}, {track}: {label}", done, total)

    score(request, run, Execution(workers=workers, update=True), progress=labelled)
    results = RunResults.read(run)
    write_report([results], run / "report.html")
    return results


def _judged(model: str, data: Path, out: Path, progress: Progress) -> RunResults:
    request = DomainRequest(
        out / "models" / model / "videos", data, model=model, judge=_JUDGE, seeds=tuple(str(seed) for seed in _SEEDS)
    )
    run = out / "runs" / f"{model}-domain"

    def labelled(label: str, done: int, total: int) -> None:
        progress(f"{model}, domain: {label}", done, total)

    score_domain(request, run, Judging(update=True), progress=labelled)
    results = RunResults.read(run)
    write_report([results], run / "report.html")
    return results


def _damage(videos: Path) -> None:
    """Lose the first video and cut the second one short, once."""
    mark = videos.parent / "damaged"
    if mark.exists():
        return
    first, second = sorted(videos.glob("*.mp4"))[:2]
    first.unlink()
    content = second.read_bytes()
    second.write_bytes(content[: len(content) * 6 // 10])
    mark.touch()
