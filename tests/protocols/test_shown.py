"""Presets of what models see: data, with a digest, apart from the presets of metrics."""

import pytest

from gen_eval.protocols import load_preset, preset_names
from gen_eval.protocols.shown import load_shown, shown_names
from gen_eval.records import InputError

OWN = """
mine:
  counting: {count: 5}
  pixels: {most: 50000}
"""


def test_presets_of_models_and_of_metrics_are_apart():
    assert {"2fps-qwen-0.0.8", "2fps-qwen-0.0.14", "16-uniform", "8-uniform", "4fps"} <= set(shown_names())
    assert not set(shown_names()) & set(preset_names())
    with pytest.raises(InputError, match="no preset '16-uniform' of what metrics are shown; there are 121-frames"):
        load_preset("16-uniform")
    with pytest.raises(InputError, match="no preset 'all-frames' of what a model sees; there are 16-uniform"):
        load_shown("all-frames")


def test_own_preset_by_path(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(OWN)
    preset = load_shown(str(path))
    assert (preset.name, preset.counting.count, preset.pixels.bounds(28)) == ("mine", 5, (784, 50000))
    with pytest.raises(InputError, match="'mine' says what a model sees"):
        load_preset(str(path))
    path.write_text("first: {limit: 3}")
    with pytest.raises(InputError, match="does not say what a model sees"):
        load_shown(str(path))
    with pytest.raises(InputError, match="exactly one preset; it has 0"):
        load_shown(str(tmp_path / "absent.yaml"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("counting: {count: 5, rate: 2}", "exactly one of rate and count"),
        ("counting: {count: 0}", "counting.count"),
        ("counting: {count: 5, fps: 2}", "counting.fps"),
        ("pixels: {least: 5000}", "the largest area must be set"),
        ("pixels: {least: 5000, most: 4000}", "the smallest must come first"),
        ("encoding: {format: webp}", "encoding.format"),
        ("fit: {shrink: 1.0}", "fit.shrink"),
        ("colour: red", "colour"),
    ],
)
def test_malformed_presets_name_what_is_wrong(tmp_path, change, message):
    lines = {"counting": "counting: {count: 5}", "pixels": "pixels: {most: 50000}", change.partition(":")[0]: change}
    path = tmp_path / "mine.yaml"
    path.write_text("mine:\n" + "".join(f"  {line}\n" for line in lines.values()))
    with pytest.raises(InputError, match=f"'mine' cannot be used.*{message}"):
        load_shown(str(path))


def test_digest_covers_values_and_not_the_name(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(OWN)
    first = load_shown(str(path))
    path.write_text(OWN.replace("mine", "other"))
    assert load_shown(str(path)).digest == first.digest
    path.write_text(OWN + "  stamps: true\n")
    assert load_shown(str(path)).digest != first.digest
    assert first.with_frames(4).digest != first.digest
    assert first.stopping().digest != first.digest


def test_number_of_frames_is_for_uniform_presets():
    assert load_shown("16-uniform").with_frames(3).counting.count == 3
    with pytest.raises(InputError, match="shows 2 frames a second"):
        load_shown("2fps-qwen-0.0.8").with_frames(3)
    with pytest.raises(InputError, match="at least one frame"):
        load_shown("16-uniform").with_frames(0)
