"""Settings from the environment: a value that cannot be used is named together with its variable."""

import pytest

from gen_eval.records import InputError
from gen_eval.settings import settings


@pytest.fixture(autouse=True)
def fresh():
    settings.cache_clear()
    yield
    settings.cache_clear()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("WORKERS", "-1"),
        ("WORKERS", "many"),
        ("THREADS", "-1"),
        ("CHUNK", "0"),
        ("ATTEMPTS", ""),
        ("MAX_PIXELS", "1.5"),
        ("DECODE_TIMEOUT", "nan"),
        ("DECODE_TIMEOUT", "inf"),
        ("DECODE_TIMEOUT", "-1"),
    ],
)
def test_a_bad_value_is_named(monkeypatch, name, value):
    monkeypatch.setenv(f"GEN_EVAL_{name}", value)
    with pytest.raises(InputError, match=f"GEN_EVAL_{name} is '{value}': Input should be"):
        settings()


def test_a_good_value_is_taken(monkeypatch):
    monkeypatch.setenv("GEN_EVAL_WORKERS", "3")
    monkeypatch.setenv("GEN_EVAL_DECODE_TIMEOUT", "0.5")
    assert (settings().workers, settings().decode_timeout) == (3, 0.5)
