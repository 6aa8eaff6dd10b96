"""The documents of runs and reports, read back as scores of systems and of videos. Rows are made by hand."""

import json

import pytest

from api.services.reporting import render
from api.services.results import RunResults
from gen_eval.arena import read_scores, read_video_scores
from gen_eval.protocols import total_rules, totals_of
from gen_eval.records import Reason, Score, Status, digest_of
from gen_eval.records.run import MANIFEST_FORMAT

EIGHT = total_rules()["quality"].mean_of
VIDEOS = [("s", "0"), ("s", "1"), ("t", "0")]


def run_of(model, metrics, shift):
    """A run of three videos under one protocol; the last one has no value."""
    entries = {
        metric: {"version": 1, "protocols": {"corrected": "d"}, "members": {"corrected": "sample_first"}}
        for metric in metrics
    }
    samples = [{"id": name, "domain": None, "members": []} for name in "st"]
    manifest = {
        "format": MANIFEST_FORMAT, "gen_eval": "0", "track": "quality", "model": model, "layout": "pai-g",
        "metrics": entries, "totals": {name: rule.to_json() for name, rule in totals_of(metrics).items()},
        "protocol": "corrected", "preset": {}, "chunk": 8, "environment": {}, "networks": None, "seeds": None,
        "domains": None, "limit": None, "unknown_videos": [], "not_asked_videos": [], "rejected": [],
        "samples": samples,
    }  # fmt: skip
    rows = [
        Score(model, sample, member, metric, "corrected", shift + place / 10, Status.OK)
        if sample == "s"
        else Score(model, sample, member, metric, "corrected", None, Status.FAILED, Reason.UNDECODABLE)
        for metric in metrics
        for place, (sample, member) in enumerate(VIDEOS)
    ]
    return RunResults(digest_of([manifest, shift]), manifest, rows)


@pytest.fixture
def runs():
    """Two systems, each with its Quality in one run and its Domain score in another."""
    return [
        run_of(model, metrics, shift)
        for model, shift in (("x", 0.5), ("y", 0.3))
        for metrics in (EIGHT, ("domain_score",))
    ]


def test_published_names_come_out_of_a_report(runs, tmp_path):
    path = tmp_path / "report.json"
    path.write_bytes(render(runs, ".json"))
    columns = read_scores(path).columns
    assert set(columns) == {*EIGHT, "domain", "quality", "overall"}
    for column in columns.values():
        assert column.values == pytest.approx({"x": 0.55, "y": 0.35})
        assert column.higher_is_better


def test_the_document_of_a_run(runs, tmp_path):
    path = tmp_path / "run.json"
    path.write_text(json.dumps(runs[0].to_json()))
    assert set(read_scores(path).columns) == {*EIGHT, "quality"}
    found = {one.metric: one for one in read_video_scores(path)}
    assert set(found) == set(EIGHT)
    for one in found.values():
        assert one.protocol == "corrected"
        assert one.values == {("x", "s"): {"0": 0.5, "1": 0.6}, ("x", "t"): {}}
        assert one.of("x", "s") == pytest.approx(0.55)
        assert one.of("x", "t") is None
