"""Clips of one task made from several captions: how they are named makes no difference, and a task counts once."""

from dataclasses import replace

import numpy as np
import pytest

from api.services.preparation import prepare
from api.services.published import tables_of
from api.services.request import ScoreRequest, condition_hint
from api.services.results import RunResults
from api.services.scoring import Execution, score
from gen_eval.media import write_clip
from gen_eval.records import InputError, Reason

TASKS = {"task_0000": 3, "task_0001": 1}  # captions of each
DOUBLE = {"first": lambda task, k: f"{task}__{k}", "later": lambda task, k: task if k == 0 else f"{task}_caption{k}"}


@pytest.fixture
def folders(tmp_path, make_clip):
    """References, and the same clips under both naming schemes: `folders[scheme]`."""
    data = tmp_path / "data"
    for number, (task, captions) in enumerate(TASKS.items()):
        reference = make_clip(number, 3)
        write_clip(data / f"{task}.mp4", reference, 24.0, lossless=True)
        for caption in range(captions):
            for scheme, name in DOUBLE.items():
                clip = np.roll(reference, 2 * caption + 1, axis=2)
                write_clip(tmp_path / scheme / f"{name(task, caption)}.mp4", clip, 24.0, lossless=True)
    return {"data": data, **{scheme: tmp_path / scheme for scheme in DOUBLE}}


def scored(folders, scheme, out, **options):
    request = ScoreRequest("control", folders[scheme], data=folders["data"], metrics=("edge_f1",), model="m", **options)
    score(request, out, Execution(workers=1))
    return RunResults.read(out)


def numbers(run):
    return {row.key: (row.value, row.reason, row.flags, dict(row.values)) for row in run.rows}


def test_both_schemes_give_the_same_rows_and_means(folders, tmp_path):
    runs = [scored(folders, scheme, tmp_path / f"run-{scheme}") for scheme in DOUBLE]
    assert numbers(runs[0]) == numbers(runs[1])
    assert {row.member for row in runs[0].rows} == {"0", "1", "2"}
    first, second = (run.aggregate["edge_f1"]["corrected"] for run in runs)
    assert first == second
    assert (first.main.n, first.main.N, first.main.members) == (2, 2, (4, 4))


def test_a_task_counts_once_however_many_captions_it_has(folders, tmp_path):
    run = scored(folders, "first", tmp_path / "run")
    of = {row.key[1:3]: row.value for row in run.rows if row.protocol == "corrected"}
    first = np.mean([of["task_0000", str(k)] for k in range(3)])
    (table,) = tables_of([run], ["corrected"])
    cell = dict(zip((head.name for head in table.heads), table.lines[0].cells, strict=True))["edge_f1"]
    assert cell.value == pytest.approx((first + of["task_0001", "0"]) / 2, abs=1e-15)
    pooled = run.aggregate["edge_f1"]["reference"].main.value
    assert pooled == pytest.approx(np.mean(list(of.values())), abs=1e-15), "the public code's mean is over clips"


def test_public_scorers_know_the_first_way_of_naming_only(folders, tmp_path):
    """The public means of the later release are those of the original captions, and nobody's value is lost."""
    run = scored(folders, "later", tmp_path / "run")
    of = {row.key[1:3]: row.value for row in run.rows if row.protocol == "reference"}
    assert len(of) == 4
    found = run.aggregate["edge_f1"]["reference"].main
    assert found.value == pytest.approx(np.mean([of["task_0000", "0"], of["task_0001", "0"]]), abs=1e-15)
    assert (found.n, found.N, found.members) == (2, 2, (2, 2))
    first = scored(folders, "first", tmp_path / "first").aggregate["edge_f1"]["reference"].main
    assert first.members == (4, 4)


def test_a_folder_that_mixes_them_is_read_and_two_files_of_one_clip_are_no_clip(folders, tmp_path):
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    for name in ("task_0000__0", "task_0000__2", "task_0001__0"):
        (mixed / f"{name}.mp4").write_bytes((folders["first"] / f"{name}.mp4").read_bytes())
    (mixed / "task_0000_caption1.mp4").write_bytes((folders["later"] / "task_0000_caption1.mp4").read_bytes())
    whole = scored(folders, "first", tmp_path / "whole")
    assert numbers(scored({**folders, "mixed": mixed}, "mixed", tmp_path / "run")) == numbers(whole)

    (mixed / "task_0000_caption2.mp4").write_bytes((folders["later"] / "task_0000_caption2.mp4").read_bytes())
    run = scored({**folders, "mixed": mixed}, "mixed", tmp_path / "twice")
    twice = [row for row in run.rows if row.reason is Reason.DUPLICATE_VIDEO]
    assert {row.key[1:3] for row in twice} == {("task_0000", "2")}
    assert twice[0].detail["files"] == ["task_0000__2.mp4", "task_0000_caption2.mp4"]
    others = {key: found for key, found in numbers(whole).items() if key[1:3] != ("task_0000", "2")}
    assert {key: found for key, found in numbers(run).items() if key in others} == others


def test_the_condition_is_part_of_what_was_asked(folders, tmp_path):
    ids = set()
    for given in (None, "edge", "all"):
        run = scored(folders, "first", tmp_path / f"run-{given}", condition=given)
        assert (run.condition, run.to_json()["condition"]) == (given, given)
        ids.add(run.run)
        assert run.manifest["condition"] == given
    assert len(ids) == 3
    quality = ScoreRequest("quality", folders["first"], metrics=("temporal_flickering",))
    assert "condition" not in prepare(quality).manifest
    with pytest.raises(InputError, match="unknown condition 'canny'; expected blur, edge, depth, seg, all"):
        scored(folders, "first", tmp_path / "bad", condition="canny")


def test_the_name_of_a_folder_is_no_condition(folders, tmp_path):
    videos = tmp_path / "wan" / "edge" / "videos"
    videos.mkdir(parents=True)
    (videos / "task_0001__0.mp4").write_bytes((folders["first"] / "task_0001__0.mp4").read_bytes())
    request = ScoreRequest("control", videos, data=folders["data"], metrics=("edge_f1",))
    assert prepare(request).manifest["condition"] is None
    assert "--condition edge --model NAME" in condition_hint(request)
    assert condition_hint(replace(request, condition="edge")) == ""
    assert condition_hint(replace(request, track="quality")) == ""
    assert "--model" not in condition_hint(replace(request, model="wan"))
    assert condition_hint(replace(request, videos=folders["first"])) == ""


def test_options_of_both_tracks_are_those_of_networks(cli):
    for track in ("quality", "control"):
        said = cli("score", track, "--help").out
        assert all(option in said for option in ("--device", "--dtype", "--compile"))
        assert ("--condition" in said) is (track == "control")
