"""Networks that do not fit what a protocol asks of them, and networks that run out of memory or give no numbers."""

import numpy as np
import pytest

from gen_eval import quality
from gen_eval.records import InputError

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
