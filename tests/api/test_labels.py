"""Labels of models: how a run gets one, and what happens when several runs are called alike."""

import re
from pathlib import Path

import pytest

from api.cli.door import console
from api.cli.tables import print_problems
from api.services.comparison import compare
from api.services.reporting import write_report
from api.services.request import label_of
from api.services.results import RunResults
from api.services.systems import systems_of
from gen_eval.records import Reason


@pytest.mark.parametrize(
    ("folder", "label"),
    [("/data/my-model/videos", "my-model"), ("/data/my-model", "my-model"), ("/videos", "videos")],
)
def test_the_label_is_the_folder_that_tells_models_apart(folder, label):
    assert label_of(Path(folder)) == label


def test_a_relative_folder_is_resolved_first(tmp_path, monkeypatch):
    (tmp_path / "beta" / "videos").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "beta" / "videos")
    assert label_of(Path()) == "beta"


@pytest.fixture
def run(maker):
    def make(name, *metrics, model="alpha", change=None, prompt="p"):
        wanted = dict.fromkeys(metrics, ("corrected",))
        manifest = maker.manifest([maker.sample("s1", prompt=prompt), maker.sample("s2")], model=model, metrics=wanted)
        return RunResults.read(str(maker(name, manifest, pictures=False, change=change)))

    return make


def test_runs_of_one_label_without_a_common_metric_are_one_system(run):
    one, two = run("a", "edge_f1"), run("b", "blur_ssim")
    assert [(found.label, found.metrics) for found in systems_of([one, two])] == [("alpha", {"edge_f1", "blur_ssim"})]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_a_third_run_is_not_credited_to_one_of_two_that_are_called_alike(run, order):
    runs = [run("a", "edge_f1"), run("b", "edge_f1", prompt="q"), run("c", "blur_ssim")]
    found = systems_of([runs[place] for place in order])
    assert [len(one.runs) for one in found] == [1, 1, 1]
    assert [one.label for one in found] == [f"alpha ({runs[place].run[:8]})" for place in order]


def test_a_comparison_of_runs_that_are_called_alike_says_which_is_which(run):
    first, other = run("a", "edge_f1"), run("b", "edge_f1", prompt="q")
    found = compare(first, other)
    assert (found.label, found.others[0].label) == (f"alpha ({first.run[:8]})", f"alpha ({other.run[:8]})")
    assert found.to_json()["first"]["model"] == found.to_json()["comparisons"][0]["model"] == "alpha"
    assert compare(first, run("c", "edge_f1", model="beta")).others[0].label == "beta"


def test_nothing_to_pair_is_no_finding(run, maker):
    first = run("a", "edge_f1")
    other = run("b", "edge_f1", model="beta", change=lambda row: maker.missing(row, Reason.MISSING_VIDEO))
    found = compare(first, other)
    assert [one.verdict for one in found.others[0].metrics] == ["no common value"]
    assert not found.worse
    assert not found.decidable


def test_a_page_with_two_runs_called_alike_leads_to_each_by_its_id(run, tmp_path):
    runs = [run("a", "edge_f1"), run("b", "edge_f1", prompt="q"), run("c", "edge_f1", model="beta")]
    write_report(runs, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    links = [re.sub("<[^>]+>", "", link) for link in re.findall('<a href="#run-.*?</a>', page)]
    ids = [one.run[:8] for one in runs]
    assert links == [f"alpha, control ({ids[0]})", f"alpha, control ({ids[1]})", "beta, control"]


def test_samples_with_fewer_videos_than_others_are_mentioned(maker, capsys):
    samples = [maker.sample("s1"), maker.sample("s2", members=("0",))]
    for seeds, spoken in ((None, True), (["0", "1"], False)):
        found = RunResults.read(maker(f"run-{spoken}", maker.manifest(samples, seeds=seeds), pictures=False))
        print_problems(console(), found)
        assert ("samples have 1 to 2 videos" in capsys.readouterr().out) is spoken
