"""A real server, asked over HTTP with real frames: killed and started again in between."""

import pytest

from api.services.results import RunResults
from api.services.understanding.request import TaskRequest
from api.services.understanding.running import Working, run_task
from gen_eval.mllm.asking import Limits
from gen_eval.records.run import RunFolder

QUICK = Working(limits=Limits(concurrency=2, attempts=1, first_wait=0.0))
COUNT = 6


@pytest.fixture
def request_(tmp_path, make_clip, write_lines):
    """The request for a small benchmark of yes/no questions and a server's address."""
    from gen_eval.media import write_clip

    def make(url, engine):
        for clip in range(COUNT // 2):
            write_clip(tmp_path / f"{clip}.mp4", make_clip(clip, frames=6), 8.0, lossless=True)
        data = write_lines(
            "u.jsonl",
            [
                {
                    "id": f"q{place}",
                    "video": f"{place // 2}.mp4",
                    "question": f"Was task {place} done?",
                    "options": {"A": "Yes", "B": "No"},
                    "answer": "AB"[place % 2],
                    "subcategory": "RoboVQA",
                }
                for place in range(COUNT)
            ],
        )
        entry = tmp_path / "tiny.yaml"
        entry.write_text(
            "id: tiny\nbackend: http\nfamily: qwen3_vl\nsees: {form: images, patch_factor: 32}\n"
            f"endpoint: {{base_url: '{url}', engine: {engine}}}\n"
        )
        preset = tmp_path / "small.yaml"
        preset.write_text("small: {counting: {count: 2}, pixels: {least: 1024, most: 9216}}")
        return TaskRequest("pai/u", data, str(entry), preset=str(preset), label="tiny")

    return make


@pytest.mark.xdist_group("vlm")
@pytest.mark.parametrize("engine", ["transformers", pytest.param("vllm", marks=pytest.mark.vllm)])
def test_a_server_that_is_killed_and_started_again(engine, tiny_vlm, request_, tmp_path, request):
    serve = request.getfixturevalue({"transformers": "vlm_server", "vllm": "vllm_server"}[engine])
    server = serve(tiny_vlm("qwen3_vl", head=64))
    request = request_(server.url, engine)
    whole = run_task(request, tmp_path / "whole", QUICK)

    def kill_after_two(label, done, _total):
        if label == "asking" and done == 2:
            server.kill()

    broken = run_task(request, tmp_path / "run", QUICK, progress=kill_after_two)
    with RunFolder(tmp_path / "run") as run:
        kept = [one.sample for one in run.answers() if one.reply is not None]
    assert 0 < len(kept) < COUNT
    assert broken.to_json()["aggregate"]["n"] == len(kept)
    server.start()
    again = run_task(request, tmp_path / "run", QUICK)
    assert again.runs[0].tally.requests == COUNT - len(kept)
    assert again.to_json() == whole.to_json()
    assert run_task(request, tmp_path / "run", QUICK).runs[0].tally.requests == 0
    first, second = (RunResults.read(tmp_path / name) for name in ("whole", "run"))
    assert first.to_json() == second.to_json()
    assert first.aggregate["accuracy"]["corrected"].main.n == COUNT
    rows = whole.to_json()["rows"]
    assert all(row["reply"] in {"Yes", "No"} and row["rule"] for row in rows)
    assert all(row["parsed"] == {"Yes": "A", "No": "B"}[row["reply"]] for row in rows)
