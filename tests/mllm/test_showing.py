"""What a model sees: the published frame plans, sizes and tokens, and what becomes of odd clips."""

import io
import json
from fractions import Fraction

import av
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from PIL import Image as Pillow

from gen_eval.media import write_clip
from gen_eval.mllm.chat import VideoFile
from gen_eval.mllm.entry import entry_of
from gen_eval.mllm.showing import frame_indices, loose_parts, show, shown_size, token_count
from gen_eval.protocols.shown import load_shown
from gen_eval.records import Flag, InputError, ItemError, Reason

COLUMNS = {
    "judge_2fps_v0_0_8_patch14": ("2fps-qwen-0.0.8", 28),
    "judge_2fps_v0_0_14_patch14": ("2fps-qwen-0.0.14", 28),
    "judge_2fps_v0_0_14_patch16": ("2fps-qwen-0.0.14", 32),
    "understanding_16_frames_v0_0_14_patch16": ("16-uniform-qwen-0.0.14", 32),
}
QWEN = {"form": "video", "patch_factor": 28, "frames_per_token": 2}


def entry(context=None, **sees):
    return entry_of("tester", {"id": "tester", "context": context, "sees": {**QWEN, **sees}})


@pytest.mark.parametrize("column", COLUMNS)
def test_published_frame_plans(goldens, column):
    clips = json.loads((goldens / "judge" / "frame_sampling.json").read_text())["clips"]
    preset, factor = load_shown(COLUMNS[column][0]), COLUMNS[column][1]
    for clip in clips:
        expected = clip[column]
        if "raises" in expected:
            with pytest.raises(ItemError) as caught:
                frame_indices(preset, clip["frames"], clip["fps"])
            assert caught.value.reason is Reason.TOO_FEW_FRAMES
            kept = frame_indices(load_shown("16-uniform"), clip["frames"], clip["fps"])
            assert kept == list(range(clip["frames"]))
            continue
        indices = frame_indices(preset, clip["frames"], clip["fps"])
        height, width = shown_size(preset, clip["height"], clip["width"], family=factor)
        tokens = token_count(len(indices), height, width, factor=factor, frames_per_token=2)
        found = {"n": len(indices), "height": height, "width": width, "tokens": tokens}
        if "indices" in expected:
            found["indices"] = indices
        else:
            found |= {"indices_head": indices[:8], "indices_tail": indices[-8:]}
        assert found == expected, clip["clip"]


def test_uniform_and_the_package_agree_where_the_package_answers(goldens):
    for clip in json.loads((goldens / "judge" / "frame_sampling.json").read_text())["clips"]:
        row = clip["understanding_16_frames_v0_0_14_patch16"]
        assert frame_indices(load_shown("16-uniform"), clip["frames"], clip["fps"]) == row.get(
            "indices", list(range(clip["frames"]))
        )


@pytest.mark.parametrize(
    ("count", "total", "expected"),
    [(1, 9, [4]), (1, 10, [4]), (2, 10, [0, 9]), (3, 10, [0, 4, 9]), (5, 3, [0, 1, 2]), (4, 1, [0]), (3, 6, [0, 2, 5])],
)
def test_uniform_frames_by_hand(count, total, expected):
    """9 / 2 = 4.5 goes to 4 and 5 / 2 = 2.5 to 2: halves to even."""
    assert frame_indices(load_shown("16-uniform").with_frames(count), total, 24.0) == expected


@pytest.mark.parametrize("name", ["2fps-qwen-0.0.8", "2fps-qwen-0.0.14"])
def test_one_frame_is_shown_unless_the_preset_stops(name):
    assert frame_indices(load_shown(name), 1, 24.0) == [0]
    with pytest.raises(ItemError, match="cannot show 0 of the clip's 1 frames"):
        frame_indices(load_shown(name).stopping(), 1, 24.0)


@given(
    name=st.sampled_from(["2fps-qwen-0.0.8", "2fps-qwen-0.0.14", "4fps", "16-uniform", "8-uniform"]),
    total=st.integers(1, 5000),
    fps=st.floats(0.1, 240),
    most=st.none() | st.integers(1, 40),
)
def test_frames_are_ascending_and_hold_both_ends(name, total, fps, most):
    preset = load_shown(name)
    indices = frame_indices(preset, total, fps, most=most)
    assert indices == sorted(set(indices))
    assert len(indices) <= min(total, most or total)
    if len(indices) > 1:
        assert (indices[0], indices[-1]) == (0, total - 1)
        assert len(indices) % preset.counting.multiple == 0
        step = Fraction(total - 1, len(indices) - 1)
        assert all(abs(index - number * step) <= Fraction(1, 2) for number, index in enumerate(indices))
    else:
        assert indices == [(total - 1) // 2]
    if preset.counting.count:
        assert len(indices) == min(preset.counting.count, total, most or total)


@given(
    name=st.sampled_from(["2fps-qwen-0.0.8", "2fps-qwen-0.0.14", "16-uniform"]),
    family=st.sampled_from([None, 28, 32]),
    height=st.integers(8, 3000),
    width=st.integers(8, 3000),
    share=st.floats(0.1, 1),
)
def test_sizes_keep_the_bounds_and_the_aspect(name, family, height, width, share):
    assume(max(height, width) <= 20 * min(height, width))
    preset = load_shown(name)
    factor = preset.pixels.factor or family or 28
    least, most = preset.pixels.bounds(factor)
    most = max(least, int(most * share))
    high, wide = shown_size(preset, height, width, family=family, most=most)
    assert high % factor == wide % factor == 0
    assert high * wide <= most or most < 2 * least  # enlarging rounds up, which a tight bound cannot hold
    assert high * wide >= least or height * width > most
    scales = [((side - factor) / of, (side + factor) / of) for side, of in ((high, height), (wide, width))]
    assert max(low for low, _ in scales) < min(top for _, top in scales)  # one scale is within a step of both sides


@pytest.mark.parametrize(("height", "width"), [(1, 100_000), (100_000, 1), (3, 9000)])
def test_a_strip_stays_within_the_bounds(height, width):
    high, wide = shown_size(load_shown("2fps-qwen-0.0.8"), height, width)
    assert min(high, wide) == 28
    assert high * wide <= 602_112


def flat(values, height=48, width=64):
    return np.stack([np.full((height, width, 3), value, np.uint8) for value in values])


def pixels(picture):
    return np.asarray(Pillow.open(io.BytesIO(picture.data)))


def test_the_pictures_are_those_of_the_indices(tmp_path):
    write_clip(tmp_path / "clip.mp4", flat(range(0, 240, 10)), 12.0, lossless=True)
    shown = show(tmp_path / "clip.mp4", load_shown("2fps-qwen-0.0.8"), entry())
    part = shown.part
    assert part.indices == (0, 8, 15, 23)
    assert part.times == pytest.approx((0, 8 / 12, 15 / 12, 23 / 12))
    assert [round(pixels(one).mean()) for one in part.pictures] == [0, 80, 150, 230]
    assert {(one.height, one.width, one.media_type) for one in part.pictures} == {(280, 392, "image/jpeg")}
    assert pixels(part.pictures[0]).shape == (280, 392, 3)
    assert (part.form, part.source_fps, part.total_frames, part.fps) == ("video", 12.0, 24, pytest.approx(36 / 23))
    assert shown.flags == (Flag.ENLARGED,)
    facts = json.loads(json.dumps(shown.facts, allow_nan=False))
    assert facts["tokens"] == 2 * 10 * 14
    assert (facts["preset"], facts["digest"]) == ("2fps-qwen-0.0.8", load_shown("2fps-qwen-0.0.8").digest)
    assert facts["clip"]["decoded_frames"] == 24
    assert facts["encoding"] == {"format": "jpeg", "quality": 95, "subsampling": "4:4:4", "filter": "bicubic"}
    assert facts["budget"]["lowered"] == 0


def test_png_keeps_every_value(tmp_path):
    frames = np.random.default_rng(3).integers(0, 256, (5, 56, 84, 3), dtype=np.uint8)
    write_clip(tmp_path / "clip.mp4", frames, 5.0, lossless=True)
    own = "exact: {counting: {count: 3}, pixels: {most: 5000}, encoding: {format: png}}"
    (tmp_path / "own.yaml").write_text(own)
    part = show(tmp_path / "clip.mp4", load_shown(str(tmp_path / "own.yaml")), entry(frames_per_token=1)).part
    assert np.array_equal(np.stack([pixels(one) for one in part.pictures]), frames[[0, 2, 4]])


def test_odd_numbers_are_padded_only_for_families_that_need_pairs(tmp_path):
    write_clip(tmp_path / "clip.mp4", flat(range(0, 70, 10)), 7.0)
    pairs = show(tmp_path / "clip.mp4", load_shown("16-uniform"), entry(), frames=3)
    assert pairs.part.indices == (0, 3, 6, 6)
    assert pairs.part.pictures[2] is pairs.part.pictures[3]
    assert Flag.FRAMES_REPEATED in pairs.flags
    assert (pairs.facts["frames"], pairs.facts["repeated"]) == (3, 1)
    loose = show(tmp_path / "clip.mp4", load_shown("16-uniform"), entry(form="images"), frames=3)
    assert (loose.part.indices, loose.part.form) == ((0, 3, 6), "images")
    assert Flag.FRAMES_REPEATED not in loose.flags
    assert loose.facts["tokens"] == 3 * loose.facts["height"] * loose.facts["width"] // 784


def test_short_clips(tmp_path):
    write_clip(tmp_path / "one.mp4", flat([90]), 8.0)
    one = show(tmp_path / "one.mp4", load_shown("2fps-qwen-0.0.8"), entry())
    assert one.part.indices == (0, 0)
    assert Flag.FEW_FRAMES in one.flags
    with pytest.raises(ItemError, match="takes no video of one frame") as caught:
        show(tmp_path / "one.mp4", load_shown("2fps-qwen-0.0.8"), entry(single_frame=False))
    assert caught.value.reason is Reason.TOO_FEW_FRAMES
    write_clip(tmp_path / "three.mp4", flat([90, 100, 110]), 8.0)
    three = show(tmp_path / "three.mp4", load_shown("16-uniform"), entry(frames_per_token=1))
    assert three.part.indices == (0, 1, 2)
    assert Flag.FEW_FRAMES not in three.flags  # the flag is for a single frame; how many were shown stands in the facts
    with pytest.raises(ItemError, match="cannot show 16 of the clip's 3 frames"):
        show(tmp_path / "three.mp4", load_shown("16-uniform-qwen-0.0.14"), entry())


def test_a_clip_shorter_than_its_header_is_sampled_over_what_it_has(tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (24, 48, 64, 3), dtype=np.uint8)
    write_clip(tmp_path / "whole.mp4", noise, 12.0)
    with av.open(tmp_path / "whole.mp4") as source, av.open(tmp_path / "ends.mkv", "w") as target:
        stream = target.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(video=0):
            if packet.dts is not None:
                packet.stream = stream
                target.mux(packet)
    data = (tmp_path / "ends.mkv").read_bytes()
    (tmp_path / "ends.mkv").write_bytes(data[: len(data) // 2])
    shown = show(tmp_path / "ends.mkv", load_shown("8-uniform"), entry())
    total = shown.part.total_frames
    assert 8 <= total < 24
    assert Flag.TRUNCATED in shown.flags
    assert shown.part.indices == tuple(frame_indices(load_shown("8-uniform"), total, 12.0))
    assert len(shown.part.pictures) == 8


def test_times_of_a_variable_rate_are_presentation_times(tmp_path):
    with av.open(tmp_path / "vfr.mp4", "w") as container:
        stream = container.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt, stream.time_base = 64, 48, "yuv420p", Fraction(1, 1000)
        stream.codec_context.time_base = Fraction(1, 1000)
        for number in range(24):
            frame = av.VideoFrame.from_ndarray(flat([number * 10])[0], format="rgb24")
            frame.pts = number * 40 if number < 12 else 480 + (number - 12) * 120
            frame.time_base = Fraction(1, 1000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    shown = show(tmp_path / "vfr.mp4", load_shown("8-uniform"), entry())
    assert Flag.VARIABLE_FPS in shown.flags
    assert shown.part.indices == (0, 3, 7, 10, 13, 16, 20, 23)
    assert shown.part.times == pytest.approx((0, 0.12, 0.28, 0.4, 0.6, 0.96, 1.44, 1.8))


def test_the_picture_area_gives_way_until_the_question_fits(tmp_path):
    write_clip(tmp_path / "clip.mp4", flat(range(0, 160, 10), 360, 640), 8.0)
    preset = load_shown("2fps-qwen-0.0.8")
    roomy = show(tmp_path / "clip.mp4", preset, entry(), context=8192, reserve=1024).facts
    assert (roomy["budget"]["lowered"], roomy["tokens"], roomy["height"], roomy["width"]) == (0, 2 * 13 * 23, 364, 644)
    tight = show(tmp_path / "clip.mp4", preset, entry(context=1024), reserve=600).facts
    assert tight["tokens"] + 2 * 12 + 600 <= 1024
    assert tight["budget"]["lowered"] > 0
    assert (
        tight["budget"] | {"context": 1024, "reserve": 600, "largest": 602_112, "smallest": 100_352} == tight["budget"]
    )
    with pytest.raises(ItemError, match="tokens even at") as caught:
        show(tmp_path / "clip.mp4", preset, entry(), context=700, reserve=600)
    assert caught.value.reason is Reason.CONTEXT_OVERFLOW
    assert caught.value.detail["context"] == 700
    unknown = show(tmp_path / "clip.mp4", preset, entry(patch_factor=None), context=10).facts
    assert unknown["tokens"] is None


def test_models_that_take_files(tmp_path):
    write_clip(tmp_path / "clip.mp4", flat(range(0, 160, 10)), 8.0)
    whole = show(tmp_path / "clip.mp4", load_shown("2fps-qwen-0.0.8"), entry(form="file"))
    assert isinstance(whole.part, VideoFile)
    assert (whole.part.fps, whole.facts["form"], whole.facts["sampled_by"]) == (2.0, "file", "backend")
    counted = show(tmp_path / "clip.mp4", load_shown("8-uniform"), entry(form="file"))
    assert (counted.part.form, len(counted.part.pictures)) == ("images", 8)


def test_what_cannot_be_shown(tmp_path):
    with pytest.raises(ItemError) as caught:
        show(tmp_path / "absent.mp4", load_shown("16-uniform"), entry())
    assert caught.value.reason is Reason.MISSING_VIDEO
    (tmp_path / "text.mp4").write_text("no clip")
    for form in ("video", "file"):
        with pytest.raises(ItemError) as caught:
            show(tmp_path / "text.mp4", load_shown("2fps-qwen-0.0.8"), entry(form=form))
        assert caught.value.reason is Reason.UNDECODABLE
    with pytest.raises(InputError, match="shows 2 frames a second"):
        show(tmp_path / "text.mp4", load_shown("2fps-qwen-0.0.8"), entry(), frames=3)


def test_most_frames_of_a_model(tmp_path):
    write_clip(tmp_path / "clip.mp4", flat(range(0, 160, 10)), 8.0)
    assert len(show(tmp_path / "clip.mp4", load_shown("16-uniform"), entry(most_frames=6)).part.indices) == 6


def test_stamps_and_form_are_the_presets(tmp_path):
    write_clip(tmp_path / "clip.mp4", flat(range(0, 160, 10)), 8.0)
    own = "own: {counting: {count: 2}, pixels: {most: 5000}, form: images, stamps: true}"
    (tmp_path / "own.yaml").write_text(own)
    part = show(tmp_path / "clip.mp4", load_shown(str(tmp_path / "own.yaml")), entry()).part
    assert part.form == "images"
    parts = [getattr(one, "text", "picture") for one in loose_parts(part)]
    assert parts == ["<0.0 seconds>", "picture", "<1.9 seconds>", "picture"]
