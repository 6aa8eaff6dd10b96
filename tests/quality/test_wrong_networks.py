"""Networks that do not fit what a protocol asks of them, and networks that run out of memory or give no numbers."""

import sys

import numpy as np
import pytest

from gen_eval import quality
from gen_eval.records import InputError, Reason

pytestmark = pytest.mark.usefixtures("small_networks")


def clip(frames=3, height=126, width=130):
    return np.random.default_rng(frames).integers(0, 256, (frames, height, width, 3), dtype=np.uint8)


@pytest.fixture
def own(tmp_path):
    """The path of a protocol that differs from `corrected` in its measure section (or, with `decide`, in that)."""

    def write(metric, section="measure", **changes):
        entries = ", ".join(f"{name}: {value}" for name, value in changes.items())
        path = tmp_path / "own.yaml"
        path.write_text(f"{metric}: {{base: corrected, {section}: {{{entries}}}}}")
        return str(path)

    return write


@pytest.mark.parametrize(
    ("metric", "changes", "expected"),
    [
        ("subject_consistency", {"network": "viclip"}, r"viclip \(ViCLIP\) does not look at pictures"),
        ("subject_consistency", {"network": "aesthetic_head"}, "takes .n, 768. embeddings"),
        ("subject_consistency", {"side": 8}, "sides of 16 or more, not .3, 3, 8, 8."),
        ("subject_consistency", {"network": "clip_vitb32_visual"}, "CLIP sees .n, 3, 224, 224."),
        ("subject_consistency", {"resize": "sideways"}, "no resize 'sideways'; expected one of shorter"),
        ("aesthetic_quality", {"network": "clip_vitb32_visual"}, "takes .n, 768. embeddings, not .3, 64."),
        ("imaging_quality", {"network": "dino_vitb16"}, "gives 96 numbers a frame, and one rating is needed"),
        ("motion_smoothness", {"network": "dino_vitb16"}, "does not guess the frame between two frames"),
        ("overall_consistency", {"network": "dino_vitb16"}, r"dino_vitb16 \(ViT\) does not read texts"),
        ("overall_consistency", {"frames": 5}, "must be .B, 8, 3, 224, 224."),
        ("overall_consistency", {"frames": 0}, "1 or more, not 0"),
        ("overall_consistency", {"crop": "none"}, "not .1, 8, 3, 224, 231."),
    ],
)
def test_another_kind_of_network_or_view_is_bad_input(own, metric, changes, expected):
    more = {"prompt": "a box"} if metric == "overall_consistency" else {}
    with pytest.raises(InputError, match=expected):
        getattr(quality, metric)(clip(), protocol=own(metric, **changes), **more)


@pytest.mark.parametrize("changes", [{"sampling_rate": 0}, {"fastest": 2}, {"updates": 0}, {"updates": 1.5}])
def test_numbers_that_mean_nothing_are_bad_input(own, changes):
    from gen_eval.features import StreamInfo
    from gen_eval.protocols import load_protocol
    from gen_eval.quality.dynamic_degree import METRIC

    with pytest.raises(InputError, match=next(iter(changes))):
        METRIC.meter(load_protocol(METRIC.name, own(METRIC.name, **changes)).measure, StreamInfo(128, 128, fps=8.0))


def test_a_scale_must_be_positive(own):
    with pytest.raises(InputError, match="above 0, not 0"):
        quality.aesthetic_quality(clip(1), protocol=own("aesthetic_quality", "decide", scale=0))


def fail_once(monkeypatch, module, task, error):
    """Let the first call of a network's ``task`` fail."""
    whole, calls = getattr(module, task), []

    def call(*arguments):
        calls.append(len(arguments[0]))
        if len(calls) == 1:
            raise error
        return whole(*arguments)

    monkeypatch.setitem(module.__dict__, task, call)
    return calls


@pytest.mark.parametrize(
    ("network", "metric"), [("dino_vitb16", "subject_consistency"), ("musiq_spaq", "imaging_quality")]
)
def test_a_chunk_that_does_not_fit_is_halved_and_the_score_stays(monkeypatch, network, metric):
    import torch

    from gen_eval.networks.loading import loaded

    before = float(getattr(quality, metric)(clip(5)))
    calls = fail_once(monkeypatch, loaded(network), "embed", torch.OutOfMemoryError("CUDA out of memory"))
    assert float(getattr(quality, metric)(clip(5))) == pytest.approx(before, abs=1e-5)
    assert calls == [5, 2, 2, 1]


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("std::bad_alloc"), "OutOfMemoryError"])
def test_a_network_that_does_not_fit_is_out_of_memory_and_tried_again_the_next_time(monkeypatch, error):
    import torch

    from gen_eval.networks import loading

    def load(*_arguments):
        raise torch.OutOfMemoryError("CUDA out of memory") if isinstance(error, str) else error

    loading.forget()
    with monkeypatch.context() as patched:
        patched.setattr(loading, "_load", load)
        for result in (quality.subject_consistency(clip()), quality.overall_consistency(clip(), "a box")):
            assert result.reason is Reason.OUT_OF_MEMORY
            assert "does not fit into memory" in result.detail["message"]
    assert quality.subject_consistency(clip()).value is not None


def test_networks_that_cannot_be_compiled_end_the_command(monkeypatch):
    import torch

    from gen_eval.features import measure_single
    from gen_eval.networks import Placement, loading
    from gen_eval.protocols import load_protocol
    from gen_eval.quality.subject_consistency import METRIC

    def compile_(_function):
        def call(*_arguments):
            raise torch._dynamo.exc.TorchDynamoException("No working C++ compiler found\nSet VERBOSE=1")

        return call

    monkeypatch.setattr(torch, "compile", compile_)
    protocol = load_protocol(METRIC.name, "corrected")
    try:
        with pytest.raises(
            InputError, match=r"cannot be compiled here \(No working C\+\+ compiler found\); leave --comp"
        ):
            measure_single(METRIC, clip(), protocol, placement=Placement(compile=True))
    finally:
        loading.forget()


def test_strips_are_measured_where_they_are_cropped():
    strip = clip(2, 3, 500)
    result = quality.subject_consistency(strip)
    assert result.reason is Reason.TOO_SMALL
    assert "500x3" in result.detail["message"]
    assert quality.subject_consistency(clip(2, 3, 12)).value is not None
    assert quality.aesthetic_quality(clip(1, 16, 8192)).value is not None


def test_a_package_that_is_absent_says_nothing_of_the_file(monkeypatch):
    from api.services import weights

    monkeypatch.delitem(sys.modules, "gen_eval.networks.vit", raising=False)
    monkeypatch.setitem(sys.modules, "timm.models.vision_transformer", None)
    (line,) = weights.verify(["dino_vitb16"])
    assert line["status"] == "ok"
    assert line["names"].startswith("not compared: the network dino_vitb16 needs the package timm")


def test_without_torch_there_is_no_device_to_look_for(monkeypatch):
    from gen_eval.networks import placement_of

    monkeypatch.setitem(sys.modules, "torch", None)
    assert placement_of("auto").device == "cpu"
    with pytest.raises(InputError, match="CUDA has 0 devices here"):
        placement_of("cuda")
