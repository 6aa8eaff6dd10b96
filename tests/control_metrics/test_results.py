"""Results of the control metrics: print, go to pandas, plot themselves, survive pickling between processes."""

import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

from control_metrics import blur_ssim, depth_si_rmse, edge_f1, mask_miou
from gen_eval.records import ItemError


@pytest.fixture
def results(noise, box_mask):
    real, own = noise(3, seed=1), noise(3, seed=2)
    depth = np.random.default_rng(0).random((3, 4, 4)) + 0.1
    depth[2] = 0
    objects = [("a", box_mask(0, 5, 0, 5)), ("b", box_mask(6, 9, 6, 9))]
    return {
        "blur_ssim": blur_ssim(own, real),
        "edge_f1": edge_f1(own, real),
        "depth_si_rmse": depth_si_rmse(depth[:, ::-1], depth),
        "mask_miou": mask_miou(objects[:1], objects),
    }


def test_to_pandas_has_a_row_a_frame_or_one_row(results):
    for name in ("blur_ssim", "edge_f1", "depth_si_rmse"):
        table = results[name].to_pandas()
        assert list(table.columns) == [name]
        assert (table.index.name, len(table)) == ("frame", 3)
        np.testing.assert_array_equal(table[name].to_numpy(), results[name].curves[name])
    assert np.isnan(results["depth_si_rmse"].to_pandas()["depth_si_rmse"]).tolist() == [False, False, True]
    table = results["mask_miou"].to_pandas()
    assert table.to_dict("records") == [{"mask_miou": 1.0, "recall": 1.0, "all": 0.5, "same_phrase": 0.5}]


def test_plots_draw_the_curve_and_the_value(results):
    for name, result in results.items():
        axes = result.plot()
        assert name in axes.get_title()
        drawn = [line.get_ydata() for line in axes.get_lines()]
        if name in result.curves:
            np.testing.assert_array_equal(drawn[0], result.curves[name])
        assert list(drawn[-1]) == [result.value] * 2


def test_plot_of_a_result_without_a_value(noise):
    flat = np.zeros_like(noise(2))
    axes = edge_f1(flat, noise(2), protocol="reference").plot()
    assert "reference_unset" in axes.get_title()


def test_text_and_number(results):
    assert str(results["mask_miou"]) == "mask_miou 1, recall 1, all 0.5, same_phrase 0.5 [missing_class]"
    assert str(results["edge_f1"]).startswith("edge_f1 0.")
    assert float(results["blur_ssim"]) == results["blur_ssim"].value
    undefined = mask_miou([], [])
    with pytest.raises(ItemError, match="no_reference_objects"):
        float(undefined)


def test_details_are_json(results):
    import json

    for result in results.values():
        assert json.loads(json.dumps(result.detail)) == result.detail


def test_results_come_back_from_another_process(noise):
    clip = noise(1, 8, 8)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        found = pool.submit(edge_f1, clip, clip).result()
    assert (found.value, found.precision) == (1.0, 1.0)


def test_importing_the_package_brings_no_scipy_pandas_or_codec():
    heavy = "{'scipy', 'pandas', 'matplotlib', 'pycocotools', 'skimage', 'av', 'torch'}"
    command = f"import sys, control_metrics; print(sorted({heavy} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
