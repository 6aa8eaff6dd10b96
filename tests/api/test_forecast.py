"""A dry run on a folder that holds something already says what the run itself would do."""

import pytest

from api.services.forecast import forecast
from api.services.request import ScoreRequest
from api.services.scoring import Execution, score
from gen_eval.records import InputError


@pytest.fixture
def scored(small_benchmark, tmp_path):
    """A finished run of three videos, one of which has another content now."""
    _, videos = small_benchmark(count=3, seeds=(0,), frames=5)
    request = ScoreRequest("quality", videos, metrics=("temporal_flickering",))
    score(request, tmp_path / "run", Execution(workers=1))
    (videos / "item00__0.mp4").write_bytes((videos / "item01__0.mp4").read_bytes())
    return request


def test_an_update_scores_only_what_changed(scored, tmp_path):
    found = forecast(scored, tmp_path / "run", Execution(workers=1, update=True))
    assert (found.samples, found.settled, found.videos) == (3, 2, 1)
    assert score(scored, tmp_path / "run", Execution(workers=1, update=True)).scored == 1
    again = forecast(scored, tmp_path / "run", Execution(workers=1))
    assert (again.settled, again.videos, again.seconds) == (3, 0, None)


def test_what_the_run_would_refuse_the_dry_run_refuses(scored, tmp_path):
    for attempt in (forecast, score):
        with pytest.raises(InputError, match="holds another run"):
            attempt(scored, tmp_path / "run", Execution(workers=1))


def test_absent_weights_and_the_place_of_the_networks_are_named(small_benchmark, tmp_path, monkeypatch):
    monkeypatch.setenv("GEN_EVAL_WEIGHTS", str(tmp_path / "nowhere"))
    _, videos = small_benchmark(count=1, seeds=(0,), frames=3)
    request = ScoreRequest("quality", videos, metrics=("subject_consistency", "temporal_flickering"), device="cpu")
    found = forecast(request, tmp_path / "run", Execution(workers=1))
    assert found.absent_weights == ("dino_vitb16",)
    assert found.placement == {"device": "cpu", "dtype": "float32", "compile": False}
    plain = forecast(
        ScoreRequest("quality", videos, metrics=("temporal_flickering",)), tmp_path / "run", Execution(workers=1)
    )
    assert (plain.absent_weights, plain.placement) == ((), None)
