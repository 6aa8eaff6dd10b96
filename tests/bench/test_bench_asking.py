"""The bench of asking on a few questions: what is counted, and what misses its target."""

from bench.asking import limits, measure


def test_requests_are_counted_by_the_server():
    found = measure(0.01, 5, frames=1, rounds=1)
    assert (found["asked"], found["asked_again"]) == ([5], [0])
    assert found["ideal"] == 0.01
    assert found["ratio"] >= 1
    assert found["plain"] >= 1


def test_limits():
    found = {"ideal": 2.0, "ratio": 1.1, "asked_again": [0, 0]}
    assert all(value <= most for _, value, most in limits(found))
    found = {"ideal": 2.0, "ratio": 1.2, "asked_again": [0, 1]}
    assert not any(value <= most for _, value, most in limits(found))
