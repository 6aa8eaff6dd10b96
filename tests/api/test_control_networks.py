"""`gen-eval score control` with all its networks, small ones with stand-in numbers: every kind of unusual clip."""

import json
import math
import time

import numpy as np
import pytest

from api.services.request import ScoreRequest
from api.services.results import RunResults
from api.services.scoring import Execution
from api.services.scoring import score as run_services
from bench import stand_in
from gen_eval import weights
from gen_eval.media import write_clip
from gen_eval.records.run import RunFolder
from gen_eval.settings import settings

SIX = ("blur_ssim", "edge_f1", "depth_si_rmse", "mask_miou", "visual_quality", "diversity")
PAIRS = SIX[:4]
CAPTION = "A red ball on the table. A robot arm moves it."
HEIGHT, WIDTH, FRAMES = 48, 64, 4


@pytest.fixture(scope="module")
def networks(tmp_path_factory):
    """The environment in which small networks are found."""
    pytest.importorskip("transformers")
    unused = {"lpips_alex", "depth_anything_v2_small"}
    known = (weights.checkpoint(name) for name in weights.checkpoint_names() if name not in unused)
    names = [one.name for one in known if one.track == "control" and one.network]
    return stand_in.write(tmp_path_factory.mktemp("networks"), names, small=True)


def picture(seed=0, frames=FRAMES, height=HEIGHT, width=WIDTH):
    """Noise that stands and a box that moves."""
    rng = np.random.default_rng(seed)
    clip = np.repeat(rng.integers(30, 220, (1, height, width, 3), dtype=np.uint8), frames, axis=0)
    for number, frame in enumerate(clip):
        frame[height // 4 : height // 2, 3 * number : 3 * number + width // 3] = (210, 40, 30)
    return clip


UNUSUAL = {
    "0": (picture(1), 24.0),
    "1": (picture(2, frames=2), 24.0),  # shorter
    "2": (picture(3, frames=7), 24.0),  # longer
    "3": (picture(4, height=36, width=48), 24.0),  # smaller
    "4": (picture(5), 12.0),  # other rate
    "5": (np.full((FRAMES, HEIGHT, WIDTH, 3), 90, np.uint8), 24.0),  # one colour
}
FLAGS = {"1": "short_clip", "2": "long_clip", "3": "resized", "4": "fps_mismatch"}


@pytest.fixture(autouse=True)
def fresh_settings(monkeypatch):
    settings.cache_clear()
    yield
    monkeypatch.undo()
    settings.cache_clear()


def folder(tmp_path, clips, *, name="{id}__{k}", sample="task_0000", data=True):
    root = tmp_path / "data"
    if data:
        (root / "captions").mkdir(parents=True, exist_ok=True)
        (root / "captions" / f"{sample}.json").write_text(json.dumps({"caption": CAPTION}))
        write_clip(root / "videos" / f"{sample}.mp4", picture(0), 24.0, lossless=True)
    for k, (clip, fps) in clips.items():
        write_clip(tmp_path / "videos" / f"{name.format(id=sample, k=k)}.mp4", clip, fps, lossless=True)
    return {"videos": tmp_path / "videos", "data": root}


def quick(folder, base):
    """The protocol ``base`` with small pictures for the networks, and boxes that stand-in numbers find."""
    measure = {
        "depth_si_rmse": {"base_side": 70},
        "mask_miou": {
            "detection_side": 96, "detection_longest": 160, "box_threshold": 0.05, "text_threshold": 0.05,
        },
        "visual_quality": {"frames": 8},
    }  # fmt: skip
    path = folder / "quick.yaml"
    path.write_text(json.dumps({name: {"base": base, "measure": measure.get(name, {})} for name in SIX}))
    return str(path)


def scored(where, out, monkeypatch, networks, base="corrected", **options):
    for name, value in networks.items():
        monkeypatch.setenv(name, value)
    settings.cache_clear()
    protocol = quick(where["videos"].parent, base)
    request = ScoreRequest("control", **where, device="cpu", protocol=protocol, **options)
    run_services(request, out, Execution(workers=1))
    with RunFolder(out) as run:
        return list(run.rows()), run.manifest


def by(rows, protocol="quick"):
    return {(row.member, row.metric): row for row in rows if row.protocol == protocol}


def test_six_columns_of_a_task_with_every_kind_of_clip(tmp_path, monkeypatch, networks):
    rows, manifest = scored(folder(tmp_path, UNUSUAL), tmp_path / "run", monkeypatch, networks, condition="edge")
    found = by(rows)
    assert {metric for _, metric in found} == set(SIX)
    numbers = [row.value for row in rows] + [value for row in rows for value in row.values.values()]
    assert all(number is None or math.isfinite(number) for number in numbers)
    for member, flag in FLAGS.items():
        for metric in PAIRS:
            assert flag in found[member, metric].flags, (member, metric)
    for member in UNUSUAL:
        assert found[member, "blur_ssim"].value is not None
        assert found[member, "depth_si_rmse"].value > 0
        masks = found[member, "mask_miou"]  # the detector finds something in every clip, so none is without a value
        assert (masks.status, masks.reason) == ("ok", None), member
        assert 0 <= masks.value <= 1
        assert min(masks.detail["objects"].values()) > 0, member
        assert 0 <= found[member, "visual_quality"].value <= 100
        assert found[member, "visual_quality"].values["reference"] == found["0", "visual_quality"].values["reference"]
        assert {"enlarged"} <= set(found[member, "visual_quality"].flags)
    assert "few_frames" in found["1", "visual_quality"].flags
    assert "no_edges_one_side" in found["5", "edge_f1"].flags
    assert (found["all", "diversity"].status, found["all", "diversity"].reason) == ("failed", "size_mismatch")
    assert manifest["condition"] == "edge"
    assert set(manifest["networks"]["weights"]) >= {"vda_small", "grounding_dino_tiny", "sam2_hiera_large", "dover"}
    assert None not in manifest["networks"]["weights"].values()
    assert found["0", "blur_ssim"].weights is None
    assert found["0", "depth_si_rmse"].weights == manifest["networks"]["weights"]["vda_small"]
    summary = RunResults.read(tmp_path / "run").to_json()["aggregate"]["diversity"]["quick"]
    assert (summary["n"], summary["N"]) == (0, 1)


def test_identity_is_perfect_and_equal_clips_are_not_diverse(tmp_path, monkeypatch, networks):
    same = {str(k): (picture(0), 24.0) for k in range(2)}
    rows, _ = scored(folder(tmp_path, same), tmp_path / "run", monkeypatch, networks)
    found = by(rows)
    for member in same:
        assert found[member, "blur_ssim"].value == pytest.approx(1, abs=1e-9)
        assert found[member, "edge_f1"].value == 1
        assert found[member, "depth_si_rmse"].value == pytest.approx(0, abs=1e-6)
        assert found[member, "mask_miou"].value == 1
        assert found[member, "mask_miou"].values == {"recall": 1, "all": 1, "same_phrase": 1}
        own = found[member, "visual_quality"]
        assert own.value == own.values["reference"]
    assert found["all", "diversity"].value == 0
    assert "clip_count" in found["all", "diversity"].flags


@pytest.mark.parametrize("protocol", ["reference", "reference-v2"])
def test_other_protocols_on_unusual_clips_by_both_naming_schemes(tmp_path, monkeypatch, networks, protocol):
    """A shorter clip, a smaller one and one of one colour: the public code stops, has nothing, or has a value."""
    clips = {k: UNUSUAL[k] for k in ("1", "3", "5")}
    without = {
        ("1", "mask_miou"): ("failed", "reference_stops"),  # masks of fewer frames than the reference's
        ("5", "edge_f1"): ("undefined", "reference_unset"),  # no edge in the clip
    }
    home, single = tmp_path / "a", SIX[:5]
    rows, _ = scored(folder(home, clips), home / "run", monkeypatch, networks, base=protocol, metrics=single)
    found = by(rows)
    assert set(found) == {(member, metric) for member in clips for metric in single}
    assert {key: (row.status, row.reason) for key, row in found.items() if row.value is None} == without
    assert all((row.status, row.reason) == ("ok", None) for row in found.values() if row.value is not None)
    assert found["1", "mask_miou"].detail["reference_exception"] == "AssertionError"
    for metric in PAIRS:
        assert "resized" in found["3", metric].flags, metric
        assert metric == "mask_miou" or "short_clip" in found["1", metric].flags, metric
    del clips["3"]
    home, chosen = tmp_path / "b", ("blur_ssim", "mask_miou", "diversity")
    where = folder(home, clips, name="{id}_caption{k}")
    rows, _ = scored(where, home / "run", monkeypatch, networks, base=protocol, metrics=chosen)
    named = by(rows)
    together = named.pop(("all", "diversity"))
    assert (together.value, together.reason) == (None, "reference_unset")  # two clips, and the public code takes six
    assert set(named) == {(member, metric) for member in clips for metric in chosen[:2]}
    for key, row in named.items():
        assert (row.value, row.reason, row.flags) == (found[key].value, found[key].reason, found[key].flags), key


def test_given_files_make_networks_needless_and_the_row_owes_nothing_to_them(tmp_path, monkeypatch, networks):
    from gen_eval.data.signal_files import write_depth

    where = folder(tmp_path, {"0": UNUSUAL["0"]})
    maps = np.random.default_rng(0).random((FRAMES, HEIGHT, WIDTH)).astype(np.float32) + 0.1
    write_depth(where["data"] / "depth_npzs" / "task_0000.npz", maps)
    write_depth(tmp_path / "signals" / "depth_npzs" / "task_0000__0.npz", 3 * maps)
    options = {"metrics": ("depth_si_rmse",), "signals": tmp_path / "signals"}
    rows, manifest = scored(where, tmp_path / "run", monkeypatch, networks, **options)
    assert manifest["networks"] is None
    assert all(row.weights is None for row in rows)
    assert by(rows)["0", "depth_si_rmse"].value == pytest.approx(0, abs=1e-6)
    without, _ = scored(where, tmp_path / "made", monkeypatch, networks, metrics=("depth_si_rmse",))
    assert all(row.weights is not None for row in without)
    assert by(without)["0", "depth_si_rmse"].inputs != by(rows)["0", "depth_si_rmse"].inputs


def test_absent_weights_skip_what_needs_them_and_say_how_to_get_them(tmp_path, cli):
    where = folder(tmp_path, {"0": UNUSUAL["0"]})
    arguments = ["score", "control", "--videos", where["videos"], "--data", where["data"], "--out", tmp_path / "run"]
    done = cli(*arguments, "--json", GEN_EVAL_WEIGHTS=str(tmp_path / "none"))
    assert done.code == 0, done
    reasons = {row["metric"]: row["reason"] for row in done.json["rows"] if row["protocol"] == "corrected"}
    assert reasons == {
        "blur_ssim": None,
        "edge_f1": None,
        "depth_si_rmse": "missing_ground_truth",
        "mask_miou": "missing_ground_truth",
        "visual_quality": "missing_weights",
        "diversity": "missing_weights",
    }
    said = {row["metric"]: row["detail"]["message"] for row in done.json["rows"] if row["reason"]}
    for metric, checkpoint in (("depth_si_rmse", "vda_small"), ("visual_quality", "dover"), ("diversity", "vgg16")):
        assert f"gen-eval weights fetch {checkpoint}" in said[metric], said[metric]


def test_the_same_twice_gives_the_same_rows(tmp_path, monkeypatch, networks):
    where = folder(tmp_path, {"0": UNUSUAL["1"], "1": UNUSUAL["5"]})
    first, _ = scored(where, tmp_path / "a", monkeypatch, networks)
    second, _ = scored(where, tmp_path / "b", monkeypatch, networks)
    assert first == second
    stamp = (tmp_path / "a" / "scores.sqlite").stat().st_mtime_ns
    time.sleep(0.01)
    again, _ = scored(where, tmp_path / "a", monkeypatch, networks)
    assert again == first
    assert (tmp_path / "a" / "scores.sqlite").stat().st_mtime_ns == stamp
