"""Masks of clips that come without any: made by networks, then measured like given ones; and by a perfect detector."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from control_metrics import mask_miou
from control_metrics.segmentation_file import read_segmentation
from gen_eval.features import ClipFrames, StreamInfo
from gen_eval.features.plan import Plan
from gen_eval.features.planner import score_group
from gen_eval.media import write_clip
from gen_eval.protocols import Preset, load_protocol
from gen_eval.records import Generation, Group, Reason, Sample, Status
from gen_eval.registry import load
from gen_eval.scenes import KINDS, render
from gen_eval.scenes.signals import eroded

pytest.importorskip("transformers")
METRIC = load("gen_eval.metrics", "mask_miou")
SMALL = "mask_miou: {base: %s, measure: {detection_side: 96, detection_longest: 160%s}}\n"
TEXT = "A red ball on the table. A robot arm moves it."


@pytest.fixture
def protocol(tmp_path):
    """`protocol(base, more)`: a shipped one with small pictures for the detector."""

    def make(base="corrected", more=""):
        path = tmp_path / f"small-{base}.yaml"
        path.write_text(SMALL % (base, more))
        return load_protocol("mask_miou", str(path))

    return make


@pytest.fixture
def clip(tmp_path, make_clip):
    def make(seed=0, frames=3, **size):
        path = tmp_path / f"clip-{seed}-{frames}.mp4"
        write_clip(path, make_clip(seed, frames=frames, **size), 24.0, lossless=True)
        return path

    return make


def score(protocol, member, reference, prompt=TEXT):
    plan = Plan.of([(METRIC, [protocol])], Preset("all", None), 2)
    sample = Sample("s", reference=reference, prompt=prompt)
    (outcome,) = score_group(Group("m", sample, (Generation("s", "0", member),)), plan).outcomes
    return outcome.result


# --- small networks


@pytest.mark.parametrize("base", ["reference", "reference-v2", "corrected"])
def test_a_clip_against_itself(segmenters, protocol, clip, base):
    path = clip()
    first = score(protocol(base), path, path)
    assert first.status is Status.OK
    assert first.values["recall"] == 1.0
    assert first.value == 1.0
    again = score(protocol(base), path, path)
    assert (again.value, again.values, again.detail) == (first.value, first.values, first.detail)


def test_another_clip_is_worse_and_the_row_says_how_its_masks_were_made(segmenters, protocol, clip):
    result = score(protocol(), clip(1), clip(0))
    assert result.status is Status.OK
    assert 0 <= result.values["same_phrase"] < 1
    told = json.dumps(result.detail)
    assert "tokens_cut" in told
    assert "grounding_dino_tiny" in told


def test_nothing_is_found_on_either_side(segmenters, protocol, clip):
    strict = ", box_threshold: 1.0"
    own = score(protocol("corrected", strict), clip(1), clip(0))
    assert (own.value, own.reason) == (None, Reason.NO_REFERENCE_OBJECTS)
    public = score(protocol("reference", strict), clip(1), clip(0))
    assert (public.value, public.values["recall"]) == (0.0, 0.0)


def test_no_caption(segmenters, protocol, clip):
    result = score(protocol(), clip(1), clip(0), prompt=" ")
    assert (result.status, result.reason) == (Status.FAILED, Reason.MISSING_PROMPT)


def test_networks_that_are_not_there(monkeypatch, tmp_path, protocol, clip):
    from gen_eval.settings import settings as project_settings

    monkeypatch.setenv("GEN_EVAL_WEIGHTS", str(tmp_path / "empty"))
    project_settings.cache_clear()
    result = score(protocol(), clip(1), clip(0))
    project_settings.cache_clear()
    assert result.status is Status.SKIPPED
    assert "gen-eval weights fetch grounding_dino_tiny" in str(result.detail)


# --- a perfect detector: boxes and masks are those of the scene


class Perfect:
    """Detector and segmenter in one that know a scene: `masks` are (phrase, (T, H, W) bool) of each body."""

    casts_weights, looks_back, side = True, 16, 16

    def __init__(self, masks):
        self.masks = masks
        self.frame = 0

    def prefer_stable(self, delta, threshold):
        """Its masks are."""

    def detect(self, picture, text, **thresholds):
        from gen_eval.networks.grounding import Detections

        count = len(self.masks)
        boxes = np.zeros((count, 4), np.float32)
        return Detections(boxes, np.ones(count, np.float32), tuple(phrase for phrase, _ in self.masks), 0)

    def segment(self, picture, boxes):
        return self.logits(0, range(len(self.masks)))

    def track(self, points, frames):
        height, width = self.masks[0][1].shape[1:]
        places = np.rint(points.numpy() * (width, height)).astype(int)
        self.followed = [
            number
            for own in places
            for number, (_, mask) in enumerate(self.masks)
            if mask[0, own[:, 1], own[:, 0]].all()
        ]
        assert len(self.followed) == len(points)  # bodies do not overlap, and every point lies on its own
        self.frame = 0
        return self

    def step(self, picture):
        self.frame += 1
        return self.logits(self.frame - 1, self.followed)

    def logits(self, frame, chosen):
        import torch

        return torch.from_numpy(np.stack([self.masks[number][1][frame] for number in chosen]).astype(np.float32) - 0.5)


SCENES = st.builds(
    lambda kind, seed: render(kind, seed=seed, size=(96, 160), frames=3), st.sampled_from(KINDS), st.integers(0, 99)
)


def segmented(scene, masks, folder):
    """The file that a perfect detector and segmenter give of `scene`, whose bodies have `masks`."""
    network = Perfect(masks)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gen_eval.networks.loading.able", lambda name, task: network)
        target = folder / "made.masks.json"
        info = StreamInfo(*scene.frames.shape[1:3], scene.fps, scene.prompt)
        signal = METRIC.clip_signal(load_protocol("mask_miou", "corrected").measure)
        facts = signal(ClipFrames(info, [scene.frames]), target)
    found = read_segmentation(target)
    assert facts["boxes"] == len(found) + facts["dropped_masks"] + facts["without_phrase"]
    return [(phrase, mask) for phrase, mask in found]


@given(scene=SCENES)
@settings(max_examples=8)
def test_a_perfect_detector_gives_the_masks_of_the_scene(tmp_path_factory, scene):
    found = segmented(scene, scene.masks, tmp_path_factory.mktemp("identity"))
    expected = [(phrase, mask) for phrase, mask in scene.masks if mask[0].sum() > 10]
    assert [phrase for phrase, _ in found] == [phrase for phrase, _ in expected]
    for (_, mask), (_, exact) in zip(found, expected, strict=True):
        assert np.array_equal(mask, exact)
    result = mask_miou(found, scene.masks)
    if len(expected) == len(scene.masks):
        assert (result.value, result.values["recall"], result.values["same_phrase"]) == (1.0, 1.0, 1.0)
        assert result.flags == ()


@given(scene=SCENES)
@settings(max_examples=8)
def test_eroded_masks_lower_the_value_step_by_step(tmp_path_factory, scene):
    folder = tmp_path_factory.mktemp("erosion")
    whole = segmented(scene, scene.masks, folder)
    values = []
    for share in (0.0, 0.15, 0.35, 0.6):
        masks = eroded([mask for _, mask in scene.masks], share)
        worse = segmented(scene, [(phrase, mask) for (phrase, _), mask in zip(scene.masks, masks, strict=True)], folder)
        values.append(mask_miou(worse, whole).values["same_phrase"])
    assert values[0] == 1.0
    assert values == sorted(values, reverse=True)
    assert values[1] < 1.0


def test_an_object_without_a_phrase_is_not_followed(tmp_path):
    scene = render("colliding", seed=1, size=(96, 160), frames=3)
    assert len(scene.masks) >= 2
    (_, first), *others = scene.masks
    found = segmented(scene, [("", first), *others], tmp_path)
    assert [phrase for phrase, _ in found] == [phrase for phrase, _ in others]
    assert np.array_equal(found[0][1], others[0][1])
