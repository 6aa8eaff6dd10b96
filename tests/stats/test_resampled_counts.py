"""How often units are drawn: the counts behind the sums of a bootstrap."""

import numpy as np
import pytest

from gen_eval.stats import resampled_counts, resampled_sums


@pytest.mark.parametrize("units", [7, 300])
def test_counts_are_those_of_the_sums(units):
    column = np.arange(units, dtype=float)
    blocks = (one.copy() for one in resampled_counts(units, resamples=11, seed=4, block=3 * units))
    counts = np.concatenate(list(blocks))
    assert counts.shape == (11, units)
    assert set(counts.sum(axis=1)) == {units}
    assert (counts @ column).tolist() == resampled_sums(column[:, None], resamples=11, seed=4)[:, 0].tolist()


@pytest.mark.parametrize(("units", "resamples", "seed"), [(0, 1, 0), (1, 0, 0), (1, 1, -1)])
def test_refused_before_the_first_block(units, resamples, seed):
    with pytest.raises(ValueError, match="needed"):
        resampled_counts(units, resamples=resamples, seed=seed)
