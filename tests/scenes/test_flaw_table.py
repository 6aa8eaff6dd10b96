"""The flaw x metric table against the metrics themselves: each twin is scored against the clean clip."""

from functools import cache
from itertools import pairwise

import cv2
import numpy as np
import pytest

import control_metrics
from bench import stand_in
from gen_eval.networks.motion import Magnitude
from gen_eval.protocols import load_protocol
from gen_eval.quality import (
    background_consistency,
    i2v_background,
    i2v_subject,
    subject_consistency,
    temporal_flickering,
)
from gen_eval.quality.dynamic_degree import METRIC as DEGREE
from gen_eval.quality.dynamic_degree import Motion, Sample
from gen_eval.quality.motion_smoothness import METRIC as SMOOTHNESS
from gen_eval.quality.motion_smoothness import InterpolationErrors
from gen_eval.scenes import FLAWS, KINDS, render
from gen_eval.scenes.flaw_table import FLAW_TABLE, FULL_STRENGTH, Effect
from gen_eval.settings import settings

SIZE, FPS, FRAMES = (28, 44), 6, 10
COMPARED = ("blur_ssim", "edge_f1", "depth_si_rmse", "mask_miou", "mask_miou.all")
LOWER_IS_BETTER = ("depth_si_rmse",)


def masks(clip, clean):
    result = control_metrics.mask_miou(clip.masks, clean.masks)
    return {"mask_miou": float(result), "mask_miou.all": result.values["all"]}


def guessed(clip, clean):
    """Motion smoothness with the mean of two frames in place of AMT-S."""
    frames = clip.frames.astype(np.float64)
    middle = np.floor((frames[:-2:2] + frames[2::2]) / 2)
    errors = np.abs(middle - frames[1:-1:2]).mean(axis=(1, 2, 3)).tolist()
    counts = InterpolationErrors(frames.shape[1:3], frames=len(frames), errors=errors)
    return {
        "motion_smoothness": float(SMOOTHNESS.decide(counts, load_protocol("motion_smoothness", "corrected").decide))
    }


def motion(clip, clean):
    """Dynamic degree with the flow of Farneback in place of RAFT's."""
    gray = [cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY) for frame in clip.frames]
    pairs = []
    for first, second in pairwise(gray):
        flow = cv2.calcOpticalFlowFarneback(first, second, None, 0.5, 3, 9, 3, 5, 1.1, 0)
        lengths = np.sort(np.linalg.norm(flow, axis=-1).ravel())[::-1]
        largest = float(lengths[: max(1, int(0.05 * lengths.size))].mean())
        pairs.append(Magnitude(largest, largest))
    sample = Sample(list(range(len(gray))), pairs)
    counts = Motion(gray[0].shape, FPS, 8.0, frames=len(gray), by_index=sample, by_time=sample)
    result = DEGREE.decide(counts, load_protocol("dynamic_degree", "corrected").decide)
    return {"dynamic_degree": float(result), "dynamic_degree.motion": result.values["motion"]}


METRICS = {
    "blur_ssim": lambda clip, clean: {"blur_ssim": float(control_metrics.blur_ssim(clip.frames, clean.frames))},
    "edge_f1": lambda clip, clean: {"edge_f1": float(control_metrics.edge_f1(clip.frames, clean.frames))},
    "depth_si_rmse": lambda clip, clean: {
        "depth_si_rmse": float(control_metrics.depth_si_rmse(clip.depth, clean.depth))
    },
    "mask_miou": masks,
    "diversity": lambda clip, clean: {"diversity": float(control_metrics.diversity([clip.frames, clean.frames]))},
    "temporal_flickering": lambda clip, clean: {"temporal_flickering": float(temporal_flickering(clip.frames))},
    # with networks whose numbers are drawn at random
    "subject_consistency": lambda clip, clean: {"subject_consistency": float(subject_consistency(clip.frames))},
    "background_consistency": lambda clip, clean: {
        "background_consistency": float(background_consistency(clip.frames))
    },
    "i2v_subject": lambda clip, clean: {"i2v_subject": float(i2v_subject(clip.frames, clean.frames[0]))},
    "i2v_background": lambda clip, clean: {"i2v_background": float(i2v_background(clip.frames, clean.frames[0]))},
    # the arithmetic behind their networks
    "motion_smoothness": guessed,
    "dynamic_degree": motion,
}


@pytest.fixture(scope="module", autouse=True)
def _small_networks(tmp_path_factory):
    environment = stand_in.write(
        tmp_path_factory.mktemp("networks"),
        ["dino_vitb16", "clip_vitb32_visual", "dreamsim_ensemble", "lpips_vgg"],
        small=True,
    )
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        settings.cache_clear()
        yield
    settings.cache_clear()


def scores(clip, clean, names):
    return {
        key: value
        for name in sorted({name.split(".")[0] for name in names})
        for key, value in METRICS[name](clip, clean).items()
    }


def clip_of(kind, flaw=None, strength=1.0, seed=0, size=SIZE):
    return render(kind, seed=seed, size=size, fps=FPS, frames=FRAMES, flaw=flaw, strength=strength)


@cache
def clean_and_its_scores(kind, seed, size):
    clean = clip_of(kind, seed=seed, size=size)
    return clean, scores(clean, clean, METRICS)


def check(kind, flaw, strength, seed=0, size=SIZE):
    promised = {**FLAW_TABLE[flaw], **(FULL_STRENGTH.get(flaw, {}) if strength == 1 else {})}
    clean, before = clean_and_its_scores(kind, seed, size)
    after = scores(clip_of(kind, flaw, strength, seed, size), clean, promised)
    for name, effect in promised.items():
        gain = (after[name] - before[name]) * (-1 if name in LOWER_IS_BETTER else 1)
        seen = Effect.EQUAL if abs(gain) <= 1e-12 else Effect.WORSE if gain < 0 else Effect.BETTER
        assert seen is effect, f"{name} of {kind} with {flaw} at {strength}: {before[name]} -> {after[name]}"


@pytest.mark.parametrize("flaw", FLAWS)
@pytest.mark.parametrize("kind", ["bouncing", "occluded"])
def test_every_promise_at_full_strength(kind, flaw):
    check(kind, flaw, 1.0)


@pytest.mark.parametrize("flaw", FLAWS)
def test_every_promise_at_half_strength(flaw):
    check("pushed", flaw, 0.5)


@pytest.mark.soak
@pytest.mark.parametrize("flaw", FLAWS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_every_promise_everywhere(kind, flaw, seed):
    for strength in (0.4, 1.0):
        check(kind, flaw, strength, seed, (56, 88))


def test_the_table_knows_every_flaw_and_only_known_metrics():
    assert FLAW_TABLE.keys() == FLAWS.keys()
    assert FULL_STRENGTH.keys() <= FLAWS.keys()
    named = {name.split(".")[0] for row in (*FLAW_TABLE.values(), *FULL_STRENGTH.values()) for name in row}
    assert named == METRICS.keys()


def test_every_flaw_is_seen_by_some_metric_and_every_metric_sees_some_flaw():
    assert all(Effect.WORSE in row.values() for row in FLAW_TABLE.values())
    seen = {name.split(".")[0] for row in FLAW_TABLE.values() for name, effect in row.items() if effect is Effect.WORSE}
    assert seen == METRICS.keys() - {"diversity"}
    assert {row["diversity"] for row in FLAW_TABLE.values()} == {Effect.BETTER, Effect.EQUAL}


def test_a_clip_against_itself_is_perfect():
    for kind in KINDS:
        clean = clip_of(kind)
        own = scores(clean, clean, COMPARED)
        assert own == {
            "blur_ssim": pytest.approx(1, abs=1e-9),
            "edge_f1": 1,
            "depth_si_rmse": 0,
            "mask_miou": 1,
            "mask_miou.all": 1,
        }


@pytest.mark.parametrize(
    ("flaw", "metric"),
    [
        ("blur", "blur_ssim"),
        ("noise", "blur_ssim"),
        ("shift", "mask_miou.all"),
        ("frame_drop", "depth_si_rmse"),
        ("mask_erosion", "mask_miou"),
        ("depth_noise", "depth_si_rmse"),
    ],
)
def test_graded_distortions_move_their_metric_with_their_strength(flaw, metric):
    clips = [
        render("bouncing", size=(64, 96), fps=FPS, frames=8, flaw=flaw if strength else None, strength=strength or 1)
        for strength in (0, 0.25, 0.5, 1.0)
    ]
    found = [scores(clip, clips[0], [metric])[metric] for clip in clips]
    assert found == sorted(found, reverse=metric not in LOWER_IS_BETTER)
    assert len(set(found)) == 4


def test_scaled_depth_scores_the_same():
    clean, broken = clip_of("pushed"), clip_of("pushed", "teleport")
    plain = float(control_metrics.depth_si_rmse(broken.depth, clean.depth))
    assert float(control_metrics.depth_si_rmse(3 * broken.depth, clean.depth)) == pytest.approx(plain, rel=1e-5)
