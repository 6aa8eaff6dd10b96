"""What terminal and comparison say of judges: their names, the scores beside the score, options without effect."""

import copy

import pytest

from api.services.answer_tables import answer_tables
from api.services.comparison import compare
from api.services.domain import DomainRequest, score_domain
from api.services.pairing import not_comparable
from api.services.results import RunResults
from api.services.scene_data import make_benchmark
from api.services.systems import System, judges_line
from gen_eval.records import InputError


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """Two judges of two scenes."""
    root = tmp_path_factory.mktemp("judged")
    make_benchmark(root / "data", per_kind=1, kinds=("falling", "rolling"), size=(32, 48), fps=8.0, frames=5)
    for judge in ("simulated", "simulated-blind"):
        request = DomainRequest(
            root / "data" / "videos", root / "data", model="real", judge=judge, conditions=("shuffled",), logprobs=5
        )
        score_domain(request, root / "runs" / judge)
    return root / "runs"


def test_scores_beside_the_score_and_options_without_effect_are_told(judged):
    table = answer_tables(RunResults.read(judged / "simulated"))[0]
    names = [line.name for line in table.lines]
    assert names[-2:] == [
        "the same questions about another sample's video",
        "by the chance of the right answer (soft score)",
    ]
    assert any("no effect" in note and "top_k" in note for note in table.notes)


def test_two_judges_are_named_in_one_line(judged):
    first, second = (RunResults.read(judged / judge) for judge in ("simulated", "simulated-blind"))
    found = [one for one in compare(first, second).others[0].differences if one.about.startswith("judge")]
    assert len(found) == 1
    assert "scores of two judges do not compare" in found[0].text


def test_a_folder_of_runs_names_them(judged):
    with pytest.raises(InputError, match=r"it holds runs, name one of them: .*simulated.*simulated-blind"):
        RunResults.read(judged)


def test_judges_that_differ_are_not_compared_and_close_no_gate(judged):
    found = compare(*(RunResults.read(judged / judge) for judge in ("simulated", "simulated-blind")))
    other = found.others[0]
    assert not other.metrics
    assert {one.metric for one in other.not_compared} == {"domain_score"}
    assert "judged in different ways: parameters of the judge differ" in other.not_compared[0].why
    assert not found.worse


@pytest.mark.parametrize(
    ("place", "value", "what"),
    [
        (("judge", "model", "revision"), "b", "the judge differs"),
        (("judge", "identity", "engine"), "vllm", "what answered differs"),
        (("judge", "prompt", "digest"), "0" * 64, "the prompt differs"),
        (("judge", "options", "temperature"), 0.7, "options differ"),
        (("preset", "digest"), "0" * 64, "what was shown differs"),
        (("judge", "name"), "stored replies", "who gave stored replies is not known"),
        (("judge", "identity", "version"), "9", ""),
        (("judge", "title"), "another", ""),
    ],
)
def test_what_of_a_judge_makes_scores_incomparable(judged, place, value, what):
    own, other = RunResults.read(judged / "simulated"), RunResults.read(judged / "simulated")
    manifest = copy.deepcopy(dict(other.manifest))
    entry = manifest
    for name in place[:-1]:
        entry = entry[name]
    entry[place[-1]] = value
    other = RunResults(other.run, manifest, other.rows)
    why = not_comparable(own, other, "domain_score", "corrected")
    assert what in why
    assert bool(why) == bool(what)
    line = judges_line([System("a", "a", runs=[own]), System("b", "b", runs=[other])])
    if what and place != ("judge", "name"):
        assert "do not compare" in line
        assert what in line


@pytest.mark.parametrize("label", ["Source Videos", "source", "source_videos"])
def test_source_videos_under_the_same_judge_stand_beside(judged, label):
    own, blind = RunResults.read(judged / "simulated"), RunResults.read(judged / "simulated-blind")
    source = RunResults("s", {**own.manifest, "model": label}, own.rows)
    table = answer_tables(own, [own, source])[0]
    lines = {line.name: line for line in table.lines}
    assert lines["source videos (ceiling)"].value == lines["videos (headline)"].value
    assert lines["source videos, domain physics"].value == lines["domain physics"].value
    assert any("ceiling" in note for note in table.notes)
    other = answer_tables(blind, [own, source, blind])[0]
    assert not any("ceiling" in line.name for line in other.lines)
    assert any("judged in another way: parameters of the judge differ" in note for note in other.notes)
    assert answer_tables(source, [own, source]) == answer_tables(source)
    assert answer_tables(own, [own, blind]) == answer_tables(own)
