"""Masks of what a caption names: the networks' steps beside those of transformers, points, streams, odd clips."""

import json
from dataclasses import replace

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from control_metrics.segmentation_file import read_segmentation
from gen_eval.features import ClipFrames, StreamInfo
from gen_eval.networks.loading import loaded
from gen_eval.networks.segmentation import Segmenting, draw_points, masks_signal
from gen_eval.protocols import load_protocol
from gen_eval.records import InputError, ItemError, Reason

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
SHIPPED = Segmenting.of(load_protocol("mask_miou", "corrected").measure)
RULE = replace(SHIPPED, detection_side=96, detection_longest=160)
TEXT = "A red ball on the table. A robot arm moves it."


@pytest.fixture
def segment(segmenters, tmp_path):
    """`segment(frames, text, rule, chunk)`: facts and bytes of the file."""

    def run(frames, text=TEXT, rule=RULE, chunk=4):
        target = tmp_path / "made.masks.json"
        info = StreamInfo(*frames.shape[1:3], fps=24.0, prompt=text)
        chunks = (frames[start : start + chunk] for start in range(0, len(frames), chunk))
        facts = masks_signal(vars(rule))(ClipFrames(info, chunks), target)
        return facts, target.read_bytes()

    return run


def pictures(count, side=128, seed=0):
    """(count, 1, 3, side, side): a disc that moves over a gradient."""
    y, x = torch.meshgrid(torch.arange(float(side)), torch.arange(float(side)), indexing="ij")
    discs = [((x - 30 - 4 * number - seed) ** 2 + (y - 60) ** 2 < 400) * 2.0 - 1 for number in range(count)]
    return torch.stack([torch.stack([x / side, y / side, disc])[None] for disc in discs])


def some_points(count):
    return torch.rand((count, 10, 2), generator=torch.Generator().manual_seed(count))


# --- the steps


@pytest.mark.parametrize("frames", [1, 2, 18])
@torch.inference_mode()
def test_frame_by_frame_is_all_at_once(segmenters, frames):
    from transformers import Sam2VideoInferenceSession, Sam2VideoProcessor
    from transformers.models.sam2.image_processing_sam2 import Sam2ImageProcessor
    from transformers.models.sam2_video.video_processing_sam2_video import Sam2VideoVideoProcessor

    segmenter, points, seen = loaded("sam2_hiera_large"), some_points(2), pictures(frames)
    processor = Sam2VideoProcessor(Sam2ImageProcessor(), Sam2VideoVideoProcessor(), target_size=128)
    session = Sam2VideoInferenceSession(video=seen[:, 0], video_height=48, video_width=64, dtype=torch.float32)
    pixels = (points * torch.tensor([64.0, 48.0]))[None].tolist()
    labels = torch.ones((1, 2, 10), dtype=torch.int64).tolist()
    processor.add_inputs_to_inference_session(
        session, frame_idx=0, obj_ids=[1, 2], input_points=pixels, input_labels=labels
    )
    segmenter.network(session, frame_idx=0)
    whole = [output.pred_masks[:, 0] for output in segmenter.network.propagate_in_video_iterator(session)]
    tracker = segmenter.track(points, frames if frames < segmenter.looks_back else None)
    streamed = [tracker.step(picture) for picture in seen]
    assert len(whole) == len(streamed) == frames
    for one, other in zip(whole, streamed, strict=True):
        assert torch.allclose(one, other, atol=2e-4)  # points go through other units
    if frames > 1:
        assert not torch.allclose(streamed[0], streamed[-1], atol=1e-2)


@torch.inference_mode()
def test_what_is_remembered_does_not_grow(segmenters):
    segmenter = loaded("sam2_hiera_large")
    tracker = segmenter.track(some_points(1), None)
    held = []
    for picture in pictures(24):
        tracker.step(picture)
        (own,) = tracker._session.output_dict_per_obj.values()
        tensors = [value for kind in own.values() for frame in kind.values() for value in frame.values()]
        held.append(sum(value.numel() for value in tensors if isinstance(value, torch.Tensor)))
    assert len(tracker._session.processed_frames) == 1
    assert held[-1] == held[-5]
    assert held[-1] < 1.5 * held[8]
    memories = [frame for frame in own["non_cond_frame_outputs"].values() if "maskmem_features" in frame]
    assert len(memories) == 6
    assert len(own["non_cond_frame_outputs"]) == 15


@torch.inference_mode()
def test_masks_of_boxes_are_those_of_the_image_network(segmenters):
    from transformers import Sam2Config, Sam2Model

    segmenter, picture = loaded("sam2_hiera_large"), pictures(1)[0]
    config = segmenter.network.config
    image_network = Sam2Model(
        Sam2Config(
            vision_config=config.vision_config,
            prompt_encoder_config=config.prompt_encoder_config.to_dict(),
            mask_decoder_config=config.mask_decoder_config.to_dict(),
        )
    ).eval()
    own = image_network.state_dict()
    image_network.load_state_dict({name: segmenter.network.state_dict()[name] for name in own})
    boxes = torch.rand((19, 4), generator=torch.Generator().manual_seed(1)).sort(dim=1).values[:, [0, 2, 1, 3]]
    segmenter.prefer_stable(0.05, 0.98)
    expected = image_network(pixel_values=picture, input_boxes=boxes[None] * 128, multimask_output=False)
    assert torch.allclose(segmenter.segment(picture, boxes), expected.pred_masks[0, :, 0], atol=1e-4)


@torch.inference_mode()
def test_stability_decides_which_mask_is_taken(segmenters):
    segmenter, picture = loaded("sam2_hiera_large"), pictures(1)[0]
    box = torch.tensor([[0.1, 0.2, 0.5, 0.8]])
    made = {}
    for threshold in (0.0, 1.0):
        segmenter.prefer_stable(0.5, threshold)
        made[threshold] = segmenter.segment(picture, box)
    assert not torch.equal(made[0.0], made[1.0])


@torch.inference_mode()
def test_detections_are_those_of_the_processor(segmenters):
    from tokenizers import Tokenizer
    from transformers import BertTokenizer, GroundingDinoProcessor
    from transformers.models.grounding_dino.image_processing_grounding_dino import GroundingDinoImageProcessor

    detector = loaded("grounding_dino_tiny")
    vocabulary = Tokenizer.from_str(detector._tokenizer.to_str()).get_vocab()
    tokenizer = BertTokenizer(vocab=vocabulary)
    processor = GroundingDinoProcessor(GroundingDinoImageProcessor(), tokenizer)
    picture = pictures(1)[0]
    for text in (TEXT, "word " * 400):
        tokens = processor.tokenizer(text, truncation=True, max_length=256, return_tensors="pt")
        outputs = detector.network(pixel_values=picture, **tokens)
        (expected,) = processor.post_process_grounded_object_detection(
            outputs, tokens["input_ids"], threshold=0.3, text_threshold=0.25, target_sizes=[(100, 200)]
        )
        found = detector.detect(picture, text, max_tokens=256, box_threshold=0.3, text_threshold=0.25)
        assert 0 < len(found.boxes) <= 4
        assert list(found.phrases) == expected["text_labels"]
        assert np.allclose(found.scores, expected["scores"].numpy(), atol=1e-6)
        assert np.allclose(found.boxes * [200, 100, 200, 100], expected["boxes"].numpy(), atol=1e-3)
    assert found.cut == len(processor.tokenizer(text)["input_ids"]) - 256 > 0


def test_a_text_that_is_too_long_for_the_network(segmenters):
    detector = loaded("grounding_dino_tiny")
    with pytest.raises(ValueError, match="it takes 3 to 256"):
        detector.tokens("text", 300)


# --- arithmetic


def test_holes_by_hand():
    from gen_eval.networks.video_segments import fill_holes

    masks = torch.ones((2, 12, 12))
    masks[0, 2:4, 2:4] = -1.0  # 4 pixels
    masks[0, 4, 4] = 0.0  # touches at a corner, and is not above 0: the fifth
    masks[0, 7:10, 7:10] = -1.0  # 9 pixels
    masks[1] = -5.0
    filled = fill_holes(masks, 8)
    assert (filled[0] <= 0).sum() == 9
    assert filled[0, 4, 4] == filled[0, 2, 2] == torch.tensor(0.1)
    assert torch.equal(filled[1], masks[1])
    assert (fill_holes(masks, 4)[0] <= 0).sum() == 14
    assert fill_holes(masks, 0) is masks


@given(arrays.arrays(np.int8, (1, 9, 11), elements=st.integers(-1, 1)), st.integers(1, 12))
def test_filling_holes_only_adds(logits, area):
    from gen_eval.networks.video_segments import fill_holes

    masks = torch.from_numpy(logits.astype(np.float32))
    filled = fill_holes(masks, area)
    changed = filled != masks
    assert (filled[changed] > 0).all()
    assert (masks[changed] <= 0).all()
    again = fill_holes(filled, area)
    assert torch.equal(again, filled)
    count, _, figures, _ = cv2.connectedComponentsWithStats((filled[0] <= 0).numpy().astype(np.uint8))
    assert all(figures[number, cv2.CC_STAT_AREA] > area for number in range(1, count))


def test_points_by_hand():
    mask = np.zeros((6, 8), bool)
    mask[2, 3:7] = mask[3, 3:7] = mask[4, 3:7] = True
    rows, columns = np.nonzero(mask)
    seed = int(rows.sum() + columns.sum())
    assert seed == 4 * (2 + 3 + 4) + 3 * (3 + 4 + 5 + 6)
    chosen = np.random.default_rng(seed).choice(12, 10, replace=False)
    expected = [[columns[place], rows[place]] for place in chosen]
    assert draw_points([mask], RULE)[0].tolist() == expected
    fixed = replace(RULE, point_seed="fixed")
    generator = np.random.default_rng(0)
    order = [generator.choice(12, 10, replace=False) for _ in range(2)]
    drawn = draw_points([mask, mask], fixed)
    assert [drawn[n].tolist() for n in range(2)] == [[[columns[p], rows[p]] for p in one] for one in order]
    assert drawn[0].tolist() != drawn[1].tolist()


@given(arrays.arrays(bool, (5, 7)).filter(np.any), st.sampled_from(["mask", "fixed"]))
def test_points_lie_in_their_mask(mask, seed):
    (points,) = draw_points([mask], replace(RULE, point_seed=seed))
    assert mask[points[:, 1], points[:, 0]].all()
    assert len({tuple(point) for point in points.tolist()}) == 10 or mask.sum() < 10


@pytest.mark.parametrize(
    ("size", "seen"),
    [((720, 1280), (750, 1333)), ((480, 832), (769, 1333)), ((800, 900), (800, 900)), ((1280, 720), (1333, 750)),
     ((500, 500), (800, 800)), ((1, 40), (33, 1333))],
)  # fmt: skip
def test_sizes_that_the_detector_sees(size, seen):
    from transformers.image_transforms import get_size_with_aspect_ratio

    assert SHIPPED.detection_size(*size) == seen == tuple(get_size_with_aspect_ratio(size, 800, 1333))


def test_a_strip_is_too_small():
    with pytest.raises(ItemError) as error:
        SHIPPED.detection_size(1, 4000)
    assert error.value.reason is Reason.TOO_SMALL


@pytest.mark.parametrize(
    ("name", "value"),
    [("detection_channels", "gray"), ("point_seed", None), ("frame_filter", "lanczos"), ("points", 0),
     ("max_tokens", 2.0), ("box_threshold", "high"), ("stability_threshold", 1.5), ("fill_holes", True)],
)  # fmt: skip
def test_values_that_no_masks_are_made_by(name, value):
    with pytest.raises(InputError, match=name):
        replace(RULE, **{name: value})


def test_a_protocol_that_says_too_little():
    with pytest.raises(InputError, match="segmenter"):
        Segmenting.of({"detector": "grounding_dino_tiny"})


def test_protocols_differ_as_published():
    reference, later, own = (
        load_protocol("mask_miou", name).measure for name in ("reference", "reference-v2", "corrected")
    )
    shown = ("detection_channels", "point_seed", "clip_size", "clip_resize", "clip_aspect_tolerance", "clip_crf")
    assert [reference[name] for name in shown] == ["bgr", "fixed", "reference", "by_height", None, 25]
    assert [later[name] for name in shown] == ["bgr", "mask", "own", "by_height", None, None]
    assert [own[name] for name in shown] == ["rgb", "mask", "reference", "by_pixels", 0.05, None]


# --- whole clips


def test_a_clip(segment, make_clip):
    facts, content = segment(make_clip(1, frames=3))
    document = json.loads(content)
    assert document["size"] == [3, 48, 64]
    assert [one["phrase"] for one in document["objects"]] == facts["phrases"]
    assert (
        len(facts["phrases"])
        == len(facts["scores"])
        == facts["boxes"] - facts["dropped_masks"] - facts["without_phrase"]
    )
    assert facts["phrases"]
    assert facts["tokens_cut"] == 0
    assert all(0.3 < score < 1 for score in facts["scores"])
    assert facts["networks"] == ["grounding_dino_tiny", "sam2_hiera_large"]
    json.dumps(facts)


def test_equal_frames_give_equal_masks_however_they_are_cut(segment, make_clip):
    clip = make_clip(2, frames=4)
    first = segment(clip, chunk=4)
    assert segment(clip, chunk=1) == first
    assert segment(clip, chunk=3) == first


def test_a_clip_that_is_longer_than_what_is_looked_back_at(segment, make_clip):
    clip = make_clip(3, frames=17)
    rule = replace(RULE, box_threshold=0.98)
    facts, content = segment(clip, rule=rule)
    assert json.loads(content)["size"][0] == 17
    assert (facts, content) == segment(clip, rule=rule, chunk=5)
    assert facts["phrases"]


@pytest.mark.parametrize("size", [(37, 51), (128, 128), (20, 90), (9, 9)])
def test_odd_sizes_and_single_frames(segment, make_clip, size, tmp_path):
    height, width = size
    frame = cv2.resize(make_clip(4, frames=1)[0], (width, height))[None]
    facts, _ = segment(frame)
    found = read_segmentation(tmp_path / "made.masks.json")
    assert found.size == (1, *size)
    assert len(found) == len(facts["phrases"])


def test_channels_reach_the_detector_alone(segment, make_clip):
    clip = make_clip(5, frames=2)
    straight = segment(clip)[0]
    turned = segment(clip, rule=replace(RULE, detection_channels="bgr"))[0]
    assert straight["scores"] != turned["scores"]
    flipped = segment(np.ascontiguousarray(clip[..., ::-1]), rule=replace(RULE, detection_channels="bgr"))[0]
    assert flipped["scores"] == straight["scores"]


def test_nothing_is_found(segment, make_clip, tmp_path):
    facts, content = segment(make_clip(6, frames=3), rule=replace(RULE, box_threshold=1.0))
    assert json.loads(content) == {"size": [3, 48, 64], "objects": []}
    assert (facts["boxes"], facts["phrases"], facts["scores"]) == (0, [], [])
    assert read_segmentation(tmp_path / "made.masks.json").size == (3, 48, 64)


def test_what_has_no_phrase_or_is_small_is_dropped(segment, make_clip):
    clip = make_clip(7, frames=2)
    nameless, _ = segment(clip, rule=replace(RULE, text_threshold=1.0))
    assert nameless["without_phrase"] == nameless["boxes"] - nameless["dropped_masks"] > 0
    assert nameless["phrases"] == []
    small, _ = segment(clip, rule=replace(RULE, smallest_mask=48 * 64))
    assert small["dropped_masks"] == small["boxes"] > 0


def test_a_very_long_caption(segment, make_clip):
    facts, _ = segment(make_clip(8, frames=2), text="A red ball rolls over the table. " * 200)
    assert facts["tokens_cut"] > 1000
    assert facts["boxes"] > 0


@pytest.mark.parametrize("text", [None, "", "  \n"])
def test_no_caption(segment, make_clip, text):
    with pytest.raises(ItemError) as error:
        segment(make_clip(9, frames=1), text=text)
    assert error.value.reason is Reason.MISSING_PROMPT
    assert "captions/ID.json of --data, or as captions in --samples" in str(error.value)


def test_no_frame(segment, tmp_path):
    with pytest.raises(ItemError) as error:
        segment(np.zeros((0, 8, 8, 3), np.uint8))
    assert error.value.reason is Reason.UNDECODABLE
    assert not (tmp_path / "made.masks.json").exists()


@pytest.mark.parametrize("name", ["grounding_dino_tiny", "sam2_hiera_large"])
def test_numbers_that_are_not_finite(segment, make_clip, name, tmp_path):
    first = next(iter(loaded(name).parameters()))
    kept = first.clone()
    first.fill_(float("nan"))
    try:
        with pytest.raises(ItemError) as error:
            segment(make_clip(10, frames=2))
    finally:
        first.copy_(kept)
    assert error.value.reason is Reason.NOT_FINITE
    assert not (tmp_path / "made.masks.json").exists()


def test_a_protocol_that_asks_for_more_than_the_network_takes(segment, make_clip):
    with pytest.raises(InputError, match="grounding_dino_tiny cannot look at what the protocol shows it"):
        segment(make_clip(11, frames=1), rule=replace(RULE, max_tokens=300))


def test_networks_in_each_others_place(segment, make_clip):
    with pytest.raises(InputError, match="does not find"):
        segment(make_clip(12, frames=1), rule=replace(RULE, detector="sam2_hiera_large"))


def test_mixed_precision_gives_nearly_the_same(segment, make_clip):
    from gen_eval.networks import Placement, placed

    clip = make_clip(13, frames=1)
    exact, _ = segment(clip)
    with placed(Placement("cpu", "bfloat16")):
        mixed, _ = segment(clip)
    assert (exact["dtype"], mixed["dtype"]) == ("float32", "bfloat16")
    assert mixed["boxes"] > 0


def test_signals_are_the_same_when_all_that_moves_them_is():
    shipped = masks_signal(load_protocol("mask_miou", "corrected").measure)
    assert shipped == masks_signal(vars(SHIPPED))
    assert shipped != masks_signal(load_protocol("mask_miou", "reference-v2").measure)
    assert shipped.uses_prompt
    assert shipped.networks == ("grounding_dino_tiny", "sam2_hiera_large")
