"""What terminal and comparison say of judges: their names, the scores beside the score, options without effect."""

import pytest

from api.services.answer_tables import answer_tables
from api.services.comparison import compare
from api.services.domain import DomainRequest, score_domain
from api.services.results import RunResults
from api.services.scene_data import make_benchmark
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
