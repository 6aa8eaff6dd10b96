"""Totals from scores of videos: means of means, each part with equal weight, nested as a benchmark nests them."""

import numpy as np
import pytest

from gen_eval.arena import VideoScores
from gen_eval.arena.video_means import MetricTable, name_of, resampled_means


def scores(name, values, **facts):
    return VideoScores(name, {key: {"0": value} for key, value in values.items()}, **facts)


ONE = scores("one", {("x", "s"): 0.2, ("x", "t"): 0.4, ("y", "s"): 0.6})
TWO = scores("two", {("x", "s"): 0.8, ("y", "s"): 0.0, ("y", "t"): 1.0})
DOMAIN = scores("domain", {("x", "s"): 0.5, ("y", "s"): 0.9})


def test_a_total_of_a_total_is_the_mean_of_means():
    table = MetricTable.of("overall", [[ONE, TWO], DOMAIN])
    assert name_of([[ONE, TWO], DOMAIN]) == "mean of mean of one, two, domain"
    assert table.weights == (0.25, 0.25, 0.5)
    # x: quality (0.3 + 0.8) / 2, y: (0.6 + 0.5) / 2
    assert table.column(["x", "y"]).values == pytest.approx({"x": (0.55 + 0.5) / 2, "y": (0.55 + 0.9) / 2})


def test_resamples_that_draw_every_sample_once_have_the_mean_itself():
    table = MetricTable.of("overall", [[ONE, TWO], DOMAIN])
    sums = table.sums(["x", "y"], {"s": 0, "t": 1})
    means, present = resampled_means(sums, np.array([[1.0, 1.0], [2.0, 0.0], [0.0, 2.0]]))
    assert means[0].tolist() == pytest.approx(list(table.column(["x", "y"]).values.values()))
    assert means[1].tolist() == pytest.approx([((0.2 + 0.8) / 2 + 0.5) / 2, ((0.6 + 0.0) / 2 + 0.9) / 2])
    # nobody has a domain score of t
    assert present.tolist() == [True, True, False]


@pytest.mark.parametrize("parts", [[], [[ONE], []]])
def test_a_total_without_parts_is_refused(parts):
    with pytest.raises(ValueError, match="no parts"):
        MetricTable.of("overall", parts)


def test_scores_and_errors_are_not_mixed():
    with pytest.raises(ValueError, match="mixes scores and errors"):
        MetricTable.of("overall", [ONE, [scores("error", {("x", "s"): 1.0}, higher_is_better=False)]])
