"""The bench of diversity on a small network: both sides agree, and pictures are counted."""

from bench import stand_in
from bench.diversity import measure
from gen_eval.settings import settings


def test_both_sides_agree_and_pictures_are_counted(tmp_path, monkeypatch):
    for name, value in stand_in.write(tmp_path, ["lpips_vgg"], small=True).items():
        monkeypatch.setenv(name, value)
    settings.cache_clear()
    found, passes = measure(2, 16, 32, rounds=1)
    settings.cache_clear()
    assert passes == (6 * 2, 60 * 2)
    assert len(found.ratios) == 1
