"""Stream features of motion on networks that can be followed by hand: frames, padding, steps, memory."""

import numpy as np
import pytest
import torch

from gen_eval.features import StreamInfo
from gen_eval.networks import to_device
from gen_eval.networks.motion import (
    flow_feature,
    interpolation_feature,
    mean_of_longest,
    padded,
    unpadded,
)

MEASURE = {"network": "stub", "updates": 20, "sampling_rate": 8, "fastest": 0.05}


class Stub:
    """Interpolates by the mean; flow is as long as the mean difference, and twice as long in the padding."""

    def __init__(self):
        self.sizes, self.encoded, self.compared = [], 0, 0
        self.fails_at = None

    def interpolate(self, first, last, scratch=None):
        self.sizes.append(tuple(first.shape[2:]))
        self.compared += len(first)
        if self.fails_at is not None and self.compared >= self.fails_at:
            self.fails_at = None
            raise MemoryError
        return (first + last) / 2

    def features(self, frames):
        self.encoded += len(frames)
        return frames

    def flow(self, frames, own, others, updates):
        self.compared += 1
        if self.fails_at is not None and self.compared >= self.fails_at:
            self.fails_at = None
            raise MemoryError
        assert torch.equal(frames, own)
        assert updates == MEASURE["updates"]
        self.sizes.append(tuple(frames.shape[2:]))
        length = (others - own).mean((1, 2, 3))
        flow = torch.zeros(1, 2, *frames.shape[2:])
        flow[:, 0] = 2 * length
        unpadded(flow, *self.shown)[:, 0] = length
        return flow


@pytest.fixture
def stub(monkeypatch):
    stub = Stub()
    monkeypatch.setattr("gen_eval.networks.loading.loaded", lambda name: stub)
    return stub


def run(feature, clip, chunk=8, fps=8.0, times=None):
    times = np.arange(len(clip)) / (fps or 1) if times is None else times
    function = feature.compute(StreamInfo(*clip.shape[1:3], fps=fps), **dict(feature.parameters))
    pieces, buffer = [], np.empty((chunk, *clip.shape[1:]), np.uint8)
    for start in range(0, len(clip), chunk):
        part = buffer[: len(clip[start : start + chunk])]
        part[:] = clip[start : start + chunk]
        pieces.append(function(to_device(part), times[start : start + chunk]))
        buffer[:] = 77
    return np.concatenate(pieces)


def grey(*values, height=128, width=130):
    return np.repeat(np.array(values, np.uint8)[:, None, None, None], 3, axis=-1) + np.zeros(
        (height, width, 1), np.uint8
    )


def test_errors_stand_at_the_frame_that_completes_the_pair(stub):
    errors = run(interpolation_feature(MEASURE), grey(10, 40, 20, 25, 40, 90))
    np.testing.assert_array_equal(errors, [np.nan, np.nan, 25, np.nan, 5, np.nan])
    assert set(stub.sizes) == {(128, 144)}


def test_steps_are_cut_off_and_not_rounded(stub):
    assert run(interpolation_feature(MEASURE), grey(0, 0, 199))[2] == 99  # 99.5


def test_padding_repeats_the_border_and_is_taken_off_again():
    frames = torch.arange(2 * 3 * 5 * 7).view(2, 3, 5, 7).float()
    around = padded(frames, 8)
    assert around.shape == (2, 3, 8, 8)
    assert torch.equal(unpadded(around, 5, 7), frames)
    assert torch.equal(around[..., 0, :7], frames[..., 0, :])  # one of three rows above, none of one column at the left
    assert torch.equal(around[..., 7, 7], frames[..., 4, 6])
    assert torch.equal(padded(around, 8), around)


def test_a_clip_that_is_too_small_does_not_reach_the_network(stub):
    assert np.isnan(run(interpolation_feature(MEASURE), grey(1, 2, 3, 4, 5, height=112))).all()
    (*_, last) = run(flow_feature(MEASURE), grey(1, 2, height=120))
    assert np.isnan(last.time_pairs).all()
    assert stub.compared == 0
    stub.shown = (121, 130)
    assert not np.isnan(run(interpolation_feature(MEASURE), grey(1, 2, 3, height=113))[2])
    assert not np.isnan(run(flow_feature(MEASURE), grey(1, 2, height=121))[1].time_pairs).any()


@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 8])
def test_chunks_change_nothing_and_each_frame_is_encoded_once(stub, chunk):
    stub.shown = (130, 121)
    clip = np.random.default_rng(0).integers(0, 256, (17, 130, 121, 3), dtype=np.uint8)
    whole = run(interpolation_feature(MEASURE), clip, 17)
    np.testing.assert_array_equal(run(interpolation_feature(MEASURE), clip, chunk), whole)
    assert np.flatnonzero(~np.isnan(whole)).tolist() == list(range(2, 17, 2))
    whole = run(flow_feature(MEASURE), clip, 17, fps=24.0)
    stub.encoded = stub.compared = 0
    parts = run(flow_feature(MEASURE), clip, chunk, fps=24.0)
    assert list(parts) == list(whole)
    assert (stub.encoded, stub.compared) == (6, 5)  # frames 0, 3, ..., 15; both ways of sampling share their pairs


def test_magnitudes_stand_where_they_became_known(stub):
    stub.shown = (128, 130)
    clip = grey(0, 9, 9, 3, 9, 9, 8)
    arrivals = run(flow_feature(MEASURE), clip, fps=24.0)
    assert [one.by_index for one in arrivals] == [(0,), (), (), (3,), (), (), (6,)]
    assert [one.by_time for one in arrivals] == [one.by_index for one in arrivals]
    pairs = [one.index_pairs for one in arrivals]
    longer = (768 * 2 + 102) / 870  # of 5 % of 128x136 vectors, all 6 columns of padding are twice as long
    assert pairs == [(), (), (), (pytest.approx((3 * longer, 3)),), (), (), (pytest.approx((5 * longer, 5)),)]
    assert [one.time_pairs for one in arrivals] == pairs


def test_a_variable_rate_has_pairs_of_its_own(stub):
    stub.shown = (128, 130)
    times = np.array([0, 1, 2, 12, 13]) / 24
    arrivals = run(flow_feature(MEASURE), grey(0, 1, 5, 25, 90), 2, fps=24.0, times=times)
    assert [one.by_time for one in arrivals] == [(0,), (), (), (2, 2, 3, 3), ()]
    assert [pair.unpadded for one in arrivals for pair in one.time_pairs] == [5, 0, 20, 0]
    assert [pair.unpadded for one in arrivals for pair in one.index_pairs] == [25]


@pytest.mark.parametrize("make", [interpolation_feature, flow_feature])
def test_a_call_that_ran_out_of_memory_is_as_if_it_had_not_been(stub, make):
    stub.shown = (128, 128)
    clip = np.random.default_rng(1).integers(0, 256, (9, 128, 128, 3), dtype=np.uint8)
    feature, times = make(MEASURE), np.arange(9) / 8
    expected = run(feature, clip, 3)
    function = feature.compute(StreamInfo(128, 128, fps=8.0), **dict(feature.parameters))
    found = [function(to_device(clip[:3]), times[:3])]
    stub.fails_at = stub.compared + 2
    with pytest.raises(MemoryError):
        function(to_device(clip[3:9]), times[3:9])
    found += [function(to_device(clip[start : start + 2]), times[start : start + 2]) for start in (3, 5, 7)]
    np.testing.assert_array_equal(np.concatenate(found), expected)


def test_golden_mean_of_longest(quality_goldens):
    import json

    cases = json.loads((quality_goldens / "flicker_motion.json").read_text())["top5"]
    with np.load(quality_goldens / "flicker_motion.npz") as arrays:
        for case in cases:
            flow = torch.from_numpy(arrays[case["key"]])
            assert mean_of_longest(flow, 0.05) == pytest.approx(float(case["reference"]), abs=2e-3, nan_ok=True)
            assert mean_of_longest(flow, 0.05, least=1) == pytest.approx(case["corrected"], abs=1e-6)
    assert len(cases) == 4


def test_mean_of_longest_by_hand():
    flow = torch.zeros(2, 5, 8)
    flow[:, 0, 0] = torch.tensor([3.0, -4.0])
    flow[:, 2, 1] = torch.tensor([0.0, 1.0])
    assert mean_of_longest(flow, 0.05) == 3.0  # two of 40: lengths 5 and 1
    assert mean_of_longest(flow, 0.02, least=1) == 5.0
    assert np.isnan(mean_of_longest(flow, 0.02))
