"""Protocols and presets as data."""

import pytest

from gen_eval.protocols import load_preset, load_protocol, preset_names, protocol_names
from gen_eval.records import InputError, Reason


def test_a_base_is_taken_over_and_changes_are_listed():
    reference, newer = (load_protocol("edge_f1", name) for name in ("reference", "reference-v2"))
    changed = {key for key in reference.measure if reference.measure[key] != newer.measure[key]}
    assert changed == {"picture"}
    assert reference.digest != newer.digest


def test_equal_parameters_have_equal_digests():
    assert load_protocol("blur_ssim", "reference").digest == load_protocol("blur_ssim", "reference-v2").digest


def test_how_scores_are_averaged_does_not_change_the_digest_of_one_score():
    from dataclasses import replace

    protocol = load_protocol("blur_ssim", "corrected")
    assert replace(protocol, aggregate={"members": "pooled"}).digest == protocol.digest


def test_reasons_are_renamed_as_the_protocol_says():
    assert load_protocol("blur_ssim", "reference").reason(Reason.TOO_SMALL) is Reason.REFERENCE_STOPS
    assert load_protocol("blur_ssim", "corrected").reason(Reason.TOO_SMALL) is Reason.TOO_SMALL


def test_an_own_file_builds_on_a_shipped_protocol(tmp_path):
    path = tmp_path / "sharper.yaml"
    path.write_text("edge_f1: {base: corrected, measure: {low: 50, high: 100}}")
    own, shipped = load_protocol("edge_f1", str(path)), load_protocol("edge_f1", "corrected")
    assert (own.name, own.measure["low"], own.measure["picture"]) == ("sharper", 50, "rgb")
    assert own.decide == shipped.decide
    assert own.digest != shipped.digest


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("blur_ssim: {base: corrected}", "says nothing of edge_f1; it holds blur_ssim"),
        ("edge_f1: {base: newest}", "no protocol 'newest'"),
        ("edge_f1: {base: corrected, thresholds: {}}", "unknown sections"),
        ("edge_f1: [1]", "must be a mapping"),
        ("edge_f1: {base: corrected, reasons: {too_small: tiny}}", "unknown reason 'tiny'"),
        ("[1, 2]", "must hold a mapping"),
        ("{", "cannot be read as YAML"),
    ],
)
def test_a_malformed_file_is_explained(tmp_path, content, expected):
    path = tmp_path / "own.yaml"
    path.write_text(content)
    with pytest.raises(InputError, match=expected):
        load_protocol("edge_f1", str(path))


def test_an_own_file_cannot_take_a_shipped_name(tmp_path):
    path = tmp_path / "corrected.yaml"
    path.write_text("edge_f1: {base: reference}")
    with pytest.raises(InputError, match="another name"):
        load_protocol("edge_f1", str(path))


def test_presets(tmp_path):
    assert load_preset("121-frames").limit == 121
    assert load_preset("all-frames").limit is None
    assert preset_names() == ["121-frames", "all-frames"]
    (tmp_path / "p.yaml").write_text("first-16: {limit: 16}")
    assert load_preset(str(tmp_path / "p.yaml")).limit == 16


@pytest.mark.parametrize(
    "content", ["a: {limit: 0}", "a: {limit: x}", "a: {frames: 3}", "a: 3", "{}", "a: {limit: 1}\nb: {limit: 2}"]
)
def test_a_malformed_preset_is_explained(tmp_path, content):
    (tmp_path / "p.yaml").write_text(content)
    with pytest.raises(InputError, match="preset"):
        load_preset(str(tmp_path / "p.yaml"))


def test_unknown_names_list_the_known_ones():
    with pytest.raises(InputError, match="it has reference, reference-v2, corrected"):
        load_protocol("blur_ssim", "newest")
    with pytest.raises(InputError, match="121-frames, all-frames"):
        load_preset("1-frame")
    with pytest.raises(InputError, match="blur_ssim, bradley_terry, depth_si_rmse, diversity, domain_score"):
        protocol_names("sharpness")


def test_a_folder_of_configurations_that_is_not_there_is_named(monkeypatch, tmp_path):
    from gen_eval.protocols import config_path

    monkeypatch.setenv("GEN_EVAL_CONFIGS", str(tmp_path / "absent"))
    with pytest.raises(InputError, match="GEN_EVAL_CONFIGS must name a folder"):
        config_path("benchmarks", "scenes")
