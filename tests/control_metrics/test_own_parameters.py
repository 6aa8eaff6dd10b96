"""Own protocols of the control metrics: what makes no sense is refused before anything is measured, also where a clip
would never have come to need it."""

import numpy as np
import pytest
import yaml

from control_metrics import blur_ssim, depth_si_rmse, edge_f1, mask_miou
from control_metrics.depth import METRIC as DEPTH
from control_metrics.diversity import METRIC as DIVERSITY
from control_metrics.diversity import DiversityCounts
from control_metrics.mask import METRIC as MASKS
from control_metrics.visual_quality import fragments_selection
from gen_eval.features import StreamInfo
from gen_eval.features.rendition import Rendition
from gen_eval.networks.depth import DepthView
from gen_eval.networks.windows import WindowRule
from gen_eval.protocols import load_protocol
from gen_eval.records import InputError

MASK = np.ones((2, 8, 8), bool)
MAPS = np.random.default_rng(0).random((2, 8, 8)) + 0.5
FRAMES = np.random.default_rng(0).integers(0, 255, (2, 16, 16, 3), dtype=np.uint8)
INFOS = [StreamInfo(48, 64)] * 2
COUNTS = DiversityCounts(2, [1, 1], [np.array([0.25])])


def own(tmp_path, metric, name, value, section="measure"):
    path = tmp_path / "own.yaml"
    path.write_text(yaml.safe_dump({metric: {"base": "corrected", section: {name: value}}}))
    return str(path)


def measured(metric, name, value):
    return {**load_protocol(metric, "corrected").measure, name: value}


@pytest.mark.parametrize(
    ("name", "value"),
    [("resize", "x"), ("residual_cap", 0), ("residual_cap", -1), ("residual_cap", -1e-300)],
)
def test_depth_refuses_what_it_cannot_count_by(tmp_path, name, value):
    with pytest.raises(InputError, match=name):
        depth_si_rmse(MAPS, MAPS, protocol=own(tmp_path, "depth_si_rmse", name, value))


def test_a_cap_that_no_residual_reaches_changes_nothing(tmp_path):
    other = MAPS[:, ::-1].copy()
    plain = depth_si_rmse(other, MAPS).value
    assert plain > 0
    # the model protocols hold a number or null here, so both forms are taken
    assert depth_si_rmse(other, MAPS, protocol=own(tmp_path, "depth_si_rmse", "residual_cap", 1e6)).value == plain


@pytest.mark.parametrize("metric", [blur_ssim, edge_f1])
@pytest.mark.parametrize(("name", "value"), [("resize", "x"), ("aspect_tolerance", -0.5)])
def test_alignment_is_checked_for_clips_of_one_size_too(tmp_path, metric, name, value):
    with pytest.raises(InputError, match=name):
        metric(FRAMES, FRAMES, protocol=own(tmp_path, metric.__name__, name, value))


def test_a_tolerance_of_nothing_accepts_equal_shapes(tmp_path):
    path = own(tmp_path, "edge_f1", "aspect_tolerance", 0)
    assert edge_f1(FRAMES, FRAMES, protocol=path).value == 1
    assert edge_f1(FRAMES[:, :8], FRAMES, protocol=path).reason == "aspect_mismatch"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("overlaps", "x"),
        ("empty_classes", "x"),
        ("short_clip", "x"),
        ("class_order", "x"),
        ("max_objects", 0),
        ("max_objects", -1),
        ("max_objects", 2.5),
    ],
)
def test_masks_refuse_rules_that_are_none(tmp_path, name, value):
    with pytest.raises(InputError, match=name):
        mask_miou([("a", MASK)], [("a", MASK)], protocol=own(tmp_path, "mask_miou", name, value))


def test_a_limit_of_objects_holds_from_the_next_one_on(tmp_path):
    path = own(tmp_path, "mask_miou", "max_objects", 1)
    assert mask_miou([("a", MASK)], [("a", MASK)], protocol=path).value == 1
    assert mask_miou([("a", MASK)] * 2, [("a", MASK)], protocol=path).reason == "reference_stops"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("clip_size", "x"),
        ("clip_resize", "x"),
        ("clip_aspect_tolerance", -1),
        ("clip_crf", -1),
        ("clip_crf", 52),
        ("clip_crf", 25.5),
        ("clip_crf", 1e9),
    ],
)
def test_clips_are_shown_in_no_other_way_than_there_is(name, value):
    with pytest.raises(InputError, match=name):
        Rendition.of(measured("mask_miou", name, value))


def test_every_rate_factor_of_the_encoder_may_be_taken():
    found = [Rendition.of(measured("mask_miou", "clip_crf", crf)).crf for crf in (None, 0, 25, 51)]
    assert found == [None, 0, 25, 51]


@pytest.mark.parametrize(
    ("name", "value"),
    [("base_side", 10**12), ("base_side", 8194), ("multiple", True), ("widest", 0), ("wide_factor", -1)],
)
def test_a_depth_network_is_shown_no_picture_that_fills_the_memory(name, value):
    names = DepthView.__dataclass_fields__
    view = {key: one for key, one in measured("depth_si_rmse", name, value).items() if key in names}
    with pytest.raises(InputError, match=name):
        DepthView(**view)


def test_windows_are_as_wide_as_clips_are_long_at_most():
    assert WindowRule(1024, 10, 12).step == 1014
    with pytest.raises(InputError, match="window"):
        WindowRule(10**6, 10, 12)


@pytest.mark.parametrize("name", ["detection_side", "detection_longest"])
def test_a_detector_is_shown_no_picture_that_fills_the_memory(name):
    assert MASKS.clip_signal(measured("mask_miou", name, 8192)).uses_prompt
    with pytest.raises(InputError, match=name):
        MASKS.clip_signal(measured("mask_miou", name, 8193))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seed", 2**32),
        ("seed", -1),
        ("step", 10**30),
        ("step", 0),
        ("cells", 1000),
        ("patch", 10**6),
        ("segments", 10**6),
        ("frames", 10**9),
        ("frames", 1.5),
    ],
)
def test_fragments_are_of_numbers_that_can_be_drawn_and_held(name, value):
    with pytest.raises(InputError, match=name):
        fragments_selection(measured("visual_quality", name, value))


def test_the_largest_seed_draws():
    selection = fragments_selection(measured("visual_quality", "seed", 2**32 - 1))
    assert len(selection.indices(7)) == 96


@pytest.mark.parametrize(("name", "value"), [("tail", -1), ("tail", 1.5), ("least_side", 0), ("least_side", 1.5)])
def test_diversity_counts_whole_frames_and_pixels(name, value):
    measure = measured("diversity", name, value)
    with pytest.raises(InputError, match=name):
        (DIVERSITY.set_tail if name == "tail" else lambda one: DIVERSITY.meter(one, INFOS))(measure)
    assert DIVERSITY.set_tail(measured("diversity", "tail", 0)) == 0


@pytest.mark.parametrize("batch", [0, -1, 1.5])
def test_diversity_has_batches_of_a_frame_at_least(batch):
    decide = load_protocol("diversity", "corrected").decide
    assert DIVERSITY.decide(COUNTS, {**decide, "batch": 1}).value == 0.25
    with pytest.raises(InputError, match="batch"):
        DIVERSITY.decide(COUNTS, {**decide, "batch": batch})


def test_the_shipped_protocols_are_as_they_must_be():
    for name in ("corrected", "reference", "reference-v2"):
        Rendition.of(load_protocol("visual_quality", name).measure)
        fragments_selection(load_protocol("visual_quality", name).measure)
        for metric in (DEPTH, MASKS):
            measure = load_protocol(metric.name, name).measure
            Rendition.of(measure)
            assert metric.clip_signal(measure).networks
