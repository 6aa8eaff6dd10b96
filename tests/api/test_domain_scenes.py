"""The simulated judge on clips of scenes."""

from api.services.domain import DomainRequest, Judging, score_domain
from api.services.generation import generate_videos
from api.services.results import RunResults
from api.services.scene_data import make_benchmark


def test_a_simulated_judge_sees_the_flaw_of_a_scene(tmp_path):
    data = tmp_path / "data"
    make_benchmark(data, per_kind=1, kinds=("falling", "rolling"), size=(32, 48), fps=8.0, frames=9, controls=False)
    judge = tmp_path / "sure.yaml"
    entry = "{id: sure, backend: simulated, parameters: {sensitivity: 1, specificity: 1}}"
    judge.write_text(f"title: simulated\nmodel: {entry}\n")
    found = {}
    for name, options in (("clean", {}), ("jumpy", {"flaw": "teleport"})):
        generate_videos("scenes", data, tmp_path / name, options=options)
        score_domain(
            DomainRequest(tmp_path / name / "videos", data, judge=str(judge)), tmp_path / f"run-{name}", Judging()
        )
        results = RunResults.read(tmp_path / f"run-{name}")
        found[name] = {one["uid"]: one["right"] for row in results.rows for one in row.detail["questions"]}
    assert all(found["clean"].values())
    assert {name for name, right in found["jumpy"].items() if not right} >= {"jumps"}
