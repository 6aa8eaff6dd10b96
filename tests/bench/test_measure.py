"""The runner of benches, and the plain references that our kernels are measured against."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bench import measure, plain
from control_metrics import blur_ssim, depth_si_rmse, mask_miou
from control_metrics.blur import METRIC as BLUR
from control_metrics.blur import blur_feature, moments_feature
from control_metrics.edge import count_edges
from gen_eval.features import StreamInfo
from gen_eval.protocols import load_protocol
from gen_eval.quality import temporal_flickering

ROOT = Path(__file__).parents[2]


def test_both_sides_run_in_alternation_and_each_round_has_a_ratio():
    calls = []
    found = measure.compare("x", lambda: calls.append("ours"), lambda: calls.append("plain"), rounds=3, wall=True)
    assert calls[:2] == ["ours", "plain"]  # for memory
    assert calls[2:] == ["ours", "plain", "plain", "ours", "ours", "plain"]
    assert [len(values) for values in (found.ratios, found.ours, found.plain)] == [3, 3, 3]
    assert found.ratio == sorted(found.ratios)[1]
    assert found.ratios == tuple(slow / fast for slow, fast in zip(found.plain, found.ours, strict=True))


def test_a_reference_that_does_a_part_of_the_work_counts_for_all_of_it(monkeypatch):
    monkeypatch.setattr(measure, "seconds", lambda step, wall: step() or 1.0)
    found = measure.compare("x", lambda: None, lambda: None, rounds=2, plain_share=0.25)
    assert (found.ours, found.plain, found.ratio) == ((1.0, 1.0), (4.0, 4.0), 4.0)


def test_no_round_is_refused():
    with pytest.raises(ValueError, match="rounds"):
        measure.compare("x", lambda: None, lambda: None, rounds=0)


def test_peak_memory_sees_what_is_taken():
    """In a fresh process: one that has freed much before takes nothing new for an array."""
    code = "import numpy as np; from bench import measure; print(measure.peak_memory(lambda: np.ones(8 * 2**20)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert done.returncode == 0, done.stderr
    peak = done.stdout.strip()
    assert peak == "None" or 60 < float(peak) < 80  # 64 MiB


def test_table_and_file(tmp_path, monkeypatch):
    monkeypatch.setattr(measure, "RESULTS", tmp_path / "results")
    good = measure.Comparison("good", 12.0, (11.0, 12.0, 30.0), (0.1,) * 3, (1.2,) * 3, 3.0, None, 10)
    bad = measure.Comparison("bad", 2.0, (2.0,), (1.0,), (2.0,), None, None, 10)
    text = measure.table([good, bad])
    assert "11.0..30.0" in text
    assert ">= 10 ok" in text
    assert ">= 10 MISSED" in text
    document = json.loads(measure.save("kernels", [good, bad], more=1).read_text())
    assert [one["met"] for one in document["results"]] == [True, False]
    assert document["more"] == 1
    assert document["machine"]["cores"] >= 1


def test_plain_references_compute_what_ours_do(noise):
    own, real = noise(2, seed=1), noise(2, seed=2)
    chosen = load_protocol("blur_ssim", "reference").measure
    blurred, moments = blur_feature(chosen), moments_feature(chosen)
    meter = BLUR.meter(chosen, StreamInfo(24, 30))
    meter.update({blurred: own}, {blurred: real, moments: moments(real)})
    assert np.mean(meter.counts().frames) == pytest.approx(plain.ssim(own, real), abs=1e-12)
    assert float(blur_ssim(own, real)) == pytest.approx(plain.ssim(blurred(own), blurred(real)), abs=1e-12)

    left, right = own[..., 0] // 128 * 255, real[..., 0] // 128 * 255
    both, predicted, expected = count_edges(left, right).sum(axis=0)
    assert plain.edge_counts(left, right) == (both, predicted - both, expected - both)
    with pytest.raises(ValueError, match="one value"):
        plain.edge_counts(left * 0, right)

    maps = own[..., 0].astype(float), real[..., 0].astype(float)
    maps[1][1] = 0
    assert float(depth_si_rmse(*maps, protocol="reference")) == pytest.approx(plain.si_rmse(*maps))

    objects = [[(f"c{number % 2}", clip[..., number] > 128) for number in range(3)] for clip in (own, real)]
    result = mask_miou(*objects, protocol="reference")
    assert (result.value, result.values["recall"]) == pytest.approx(plain.miou(*objects), abs=1e-6)

    assert float(temporal_flickering(own, protocol="reference")) == pytest.approx(plain.flickering(own), abs=1e-6)


def test_all_benches_run_even_after_one_that_missed_its_target(monkeypatch):
    import bench.__main__ as everything
    from bench import arena, asking, diversity, kernels, networks, pipeline, stats

    ran = []
    benches = (kernels, stats, pipeline, networks, diversity, asking, arena)
    for module in benches:
        met = module is not kernels
        monkeypatch.setattr(module, "main", lambda arguments, name=module.__name__, met=met: ran.append(name) or met)
    assert everything.main() is False
    assert ran == [module.__name__ for module in benches]


def test_limits_of_the_pass_over_all_dimensions():
    from bench.networks import limits

    found = {
        "prepare": {"ratio": 0.25},
        "plain": {"peak_mib": 400.0},
        "float32": {"ratio": 0.96, "peak_mib": 100.0, "deviations": {"a": 1e-7, "b": -1e-3}},
        "bfloat16": {"ratio": 0.6, "deviations": {"a": 0.1}},
    }
    assert [value <= most for _, value, most in limits(found, "cpu")] == [True, False, True, True, False]
    assert [value <= most for _, value, most in limits(found, "cuda")] == [True, False, False, False]


def test_growth_of_memory_and_time_has_limits():
    from bench.pipeline import limits

    length, videos = {"60": (200, 50), "600": (230, 60)}, {"4": (200, 80), "40": (205, 80)}
    found = limits(length, videos, {"growth": 12.0})
    assert [value <= most for _, value, most in found] == [True, True, False]
