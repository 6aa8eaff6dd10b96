"""Checkpoints that are read together: which they are, what they are together, and what is said when one is absent."""

import pytest

from gen_eval import weights
from gen_eval.networks.loading import ensure
from gen_eval.records import ItemError, Reason


@pytest.fixture
def pair(folder, catalogue, make_entry):
    """`heads` needs `layers`; both files are there."""
    import torch
    from safetensors.torch import save_file

    def write(heads=("lin.weight",), layers=("features.0.weight",), keep=("features.",)):
        catalogue(
            heads=make_entry({"file": "a.safetensors", "container": "safetensors", "needs": ["layers"]}),
            layers=make_entry({"file": "b.safetensors", "container": "safetensors", "keep": list(keep)}),
        )
        for name, file, tensors in (("heads", "a", heads), ("layers", "b", (*layers, "classifier.weight"))):
            (folder / name).mkdir(exist_ok=True)
            save_file({one: torch.ones(2) for one in tensors}, folder / name / f"{file}.safetensors")
        return folder

    return write


def test_tensors_of_both_without_what_is_left_out(pair):
    pair()
    assert weights.with_needs("heads") == ("heads", "layers")
    assert set(weights.load_together("heads")) == {"lin.weight", "features.0.weight"}
    assert set(weights.load_state("heads")) == {"lin.weight"}


def test_one_digest_stands_for_both(pair):
    folder = pair()
    before = weights.digest("heads")
    assert before not in (weights.locate("heads").sha256, weights.digest("layers"))
    pair(layers=("features.1.weight",))
    assert weights.digest("heads") != before
    (folder / "layers" / "b.safetensors").unlink()
    assert weights.digest("heads") is None


def test_the_absent_one_is_named(pair):
    folder = pair()
    (folder / "layers" / "b.safetensors").unlink()
    for ask in (ensure, weights.load_together):
        with pytest.raises(ItemError, match="weights fetch layers") as caught:
            ask("heads")
        assert caught.value.reason is Reason.MISSING_WEIGHTS


def test_one_name_in_both_files_is_refused(pair):
    pair(heads=("features.0.weight",))
    with pytest.raises(ItemError, match=r"heads and layers both have a tensor features\.0\.weight") as caught:
        weights.load_together("heads")
    assert caught.value.reason is Reason.BAD_WEIGHTS
