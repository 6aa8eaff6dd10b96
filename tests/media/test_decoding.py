"""What becomes of every kind of clip: frames, times, flags, reasons; in a child process and in this one alike."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from gen_eval.media import All, Clip, Uniform, open_clip, probe, read_clip
from gen_eval.records import Flag, ItemError, Reason

GOLDENS = Path(__file__).parent.parent / "goldens" / "quality"

Encode = Callable[..., Path]
Noise = Callable[..., np.ndarray]


@pytest.fixture(params=[True, False], ids=["isolated", "local"])
def read(request: pytest.FixtureRequest) -> Callable[..., Clip]:
    return lambda path, *sampling: read_clip(path, *sampling, isolated=request.param)


def fails(path: Path, reason: Reason, *, isolated: bool = True) -> ItemError:
    with pytest.raises(ItemError) as caught:
        read_clip(path, isolated=isolated)
    assert caught.value.reason is reason
    assert str(path.parent) not in caught.value.message  # rows do not depend on where the data lie
    return caught.value


def plain(path: Path) -> np.ndarray:
    """All frames by PyAV alone."""
    with av.open(str(path)) as container:
        return np.stack([frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)])


def test_golden_of_the_reference_environment(read: Callable[..., Clip]) -> None:
    golden, facts = np.load(GOLDENS / "decode_h264.npz"), json.loads((GOLDENS / "decode_h264.json").read_text())
    clip = read(GOLDENS / facts["file"])
    assert list(clip.frames.shape) == facts["shape"]
    assert clip.info.fps == facts["average_fps"]
    assert clip.info.declared_frames == clip.detail["decoded_frames"] == facts["frame_count"]
    wrong = np.abs(clip.frames[[0, 9, 19]].astype(int) - golden["frames_0_9_19"].astype(int))
    assert wrong.max() <= 1
    assert wrong.mean() <= 0.05
    assert np.abs(clip.frames.mean((1, 2)) - golden["mean_rgb_per_frame"]).max() <= 0.05
    assert clip.flags == ()


def test_constant_rate(clips: Path, read: Callable[..., Clip]) -> None:
    clip = read(clips / "fast.mp4")
    assert np.array_equal(clip.frames, plain(clips / "fast.mp4"))
    assert clip.times.tolist() == [index / 24 for index in range(24)]
    assert clip.indices.tolist() == list(range(24))
    assert (clip.info.width, clip.info.height, clip.info.fps) == (64, 48, 24.0)
    assert (clip.info.codec, clip.info.pixel_format, clip.info.duration) == ("h264", "yuv420p", 1.0)
    assert clip.info.decoder.startswith("PyAV ")
    assert "libavcodec" in clip.info.decoder
    assert clip.detail["timestamps"] == "container"
    json.dumps(clip.detail, allow_nan=False)


def test_cut_file_gives_its_frames_and_says_so(clips: Path, read: Callable[..., Clip]) -> None:
    clip = read(clips / "cut.mp4", Uniform(8))
    assert len(clip.frames) == 8
    assert clip.indices.tolist() == [0, 1, 3, 4, 6, 7, 9, 10]
    assert clip.flags == (Flag.TRUNCATED,)
    assert (clip.detail["declared_frames"], clip.detail["decoded_frames"]) == (24, 11)
    assert np.array_equal(clip.frames, read(clips / "fast.mp4").frames[clip.indices])


def test_variable_rate(clips: Path, read: Callable[..., Clip]) -> None:
    clip = read(clips / "vfr.mp4")
    assert clip.times.tolist() == pytest.approx([*np.arange(12) * 0.04, *(0.48 + np.arange(12) * 0.12)])
    assert clip.flags == (Flag.VARIABLE_FPS,)
    assert clip.info.fps == pytest.approx(100 / 7)


def test_rotation_of_a_phone_clip(clips: Path, read: Callable[..., Clip]) -> None:
    clip = read(clips / "rotated.mp4")
    assert (clip.info.width, clip.info.height, clip.info.rotation) == (48, 64, -90)
    assert clip.frames.flags.c_contiguous
    assert np.array_equal(clip.frames, np.rot90(plain(clips / "rotated.mp4"), -1, axes=(1, 2)))
    assert clip.flags == (Flag.ROTATED,)
    assert clip.detail["rotation_applied"] is True


@pytest.mark.parametrize("mirror", [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("degrees", [0, 90, 180, 270])
def test_every_orientation(
    tmp_path: Path, encode: Encode, noise: Noise, degrees: int, mirror: tuple[bool, bool]
) -> None:
    frames = noise(3)
    path = encode(
        tmp_path / "clip.mp4",
        frames,
        codec="libx264rgb",
        pixel_format="rgb24",
        options={"crf": "0"},
        prepare=lambda stream: stream.set_display_rotation(degrees, *mirror),
    )
    expected = np.rot90(frames, degrees // 90, axes=(1, 2))
    expected = expected[:, :, ::-1] if mirror[0] else expected
    expected = expected[:, ::-1] if mirror[1] else expected
    clip = read_clip(path)
    assert np.array_equal(clip.frames, expected)
    assert (Flag.ROTATED in clip.flags) == (degrees != 0 or any(mirror))


def test_an_angle_between_is_not_applied_and_said(tmp_path: Path, encode: Encode, noise: Noise) -> None:
    frames = noise(3)
    path = encode(tmp_path / "clip.mp4", frames, prepare=lambda stream: stream.set_display_rotation(45))
    clip = read_clip(path)
    assert np.array_equal(clip.frames, plain(path))
    assert clip.flags == ()
    assert (clip.detail["rotation"], clip.detail["rotation_applied"]) == (45, False)


@pytest.mark.parametrize("size", [(47, 63), (49, 64), (1, 1), (2, 7)])
def test_odd_sizes_are_kept(
    tmp_path: Path, encode: Encode, noise: Noise, read: Callable[..., Clip], size: tuple[int, int]
) -> None:
    frames = noise(3, *size)
    path = encode(tmp_path / "clip.mkv", frames, codec="ffv1", pixel_format="bgr0")
    assert np.array_equal(read(path).frames, frames)


def flat(pixel_format: str, *levels: int, count: int = 3, **tags: int) -> list[av.VideoFrame]:
    """Frames 64x48 whose planes hold one byte value each."""
    frames = []
    for _ in range(count):
        frame = av.VideoFrame(64, 48, pixel_format)
        for plane, level in zip(frame.planes, levels, strict=True):
            plane.update(bytes([level]) * plane.buffer_size)
        for name, value in tags.items():
            setattr(frame, name, value)
        frames.append(frame)
    return frames


@pytest.mark.parametrize(
    ("color_range", "colorspace", "expected"),
    [
        (None, None, (211, 52, 20)),  # untagged: BT.601, limited
        (1, 5, (211, 52, 20)),
        (1, 1, (226, 66, 16)),  # BT.709
        (2, 5, (201, 62, 33)),  # full range
        (2, 1, (213, 74, 30)),
    ],
)
def test_colour_tags_are_honoured(
    tmp_path: Path, encode: Encode, color_range: int | None, colorspace: int | None, expected: tuple[int, ...]
) -> None:
    # Y 100, Cb 90, Cr 200 by the formulas of BT.601 and BT.709; swscale rounds, so one or two levels are allowed
    tags = {key: value for key, value in (("color_range", color_range), ("colorspace", colorspace)) if value}

    def tag(stream: Any) -> None:
        for name, value in tags.items():
            setattr(stream.codec_context, name, value)

    path = encode(tmp_path / "clip.mp4", flat("yuv420p", 100, 90, 200, **tags), options={"crf": "0"}, prepare=tag)
    pixels = read_clip(path).frames[:, 8:-8, 8:-8].astype(int)
    assert np.abs(pixels - np.array(expected)).max() <= 2


def test_a_matrix_that_is_unknown_is_read_as_untagged_and_said(tmp_path: Path, encode: Encode) -> None:
    def tag(stream: Any) -> None:
        stream.codec_context.colorspace = 8  # YCgCo

    frames = flat("yuv420p", 100, 90, 200, colorspace=8)
    clip = read_clip(encode(tmp_path / "clip.mp4", frames, options={"crf": "0"}, prepare=tag))
    plain_clip = read_clip(encode(tmp_path / "plain.mp4", flat("yuv420p", 100, 90, 200), options={"crf": "0"}))
    assert np.array_equal(clip.frames, plain_clip.frames)
    assert clip.detail["unknown_colour_matrix"] == 8


def test_gray_becomes_three_equal_channels(tmp_path: Path, encode: Encode) -> None:
    path = encode(tmp_path / "clip.mkv", flat("gray", 126), codec="ffv1", pixel_format="gray")
    frames = read_clip(path).frames
    assert frames.shape == (3, 48, 64, 3)
    assert set(np.unique(frames)) == {126}


@pytest.mark.parametrize(("codec", "suffix"), [("ffv1", "mkv"), ("libx264", "mp4")])
def test_ten_bit_is_brought_to_eight(tmp_path: Path, encode: Encode, codec: str, suffix: str) -> None:
    pixels = np.full((3, 48, 64, 3), (200, 100, 50), np.uint8)
    clip = read_clip(encode(tmp_path / f"clip.{suffix}", pixels, codec=codec, pixel_format="yuv420p10le"))
    assert clip.flags == (Flag.NOT_8_BIT,)
    assert clip.detail["pixel_format"] == "yuv420p10le"
    assert clip.frames.dtype == np.uint8
    assert np.abs(clip.frames.astype(int) - (200, 100, 50)).max() <= 3


@pytest.mark.parametrize(
    ("codec", "pixel_format", "suffix", "flags", "tolerance"),
    [
        ("png", "rgba", "mov", (Flag.ALPHA_DROPPED,), 0),
        ("ffv1", "bgra", "mkv", (Flag.ALPHA_DROPPED,), 0),
        ("libvpx-vp9", "yuva420p", "webm", (Flag.ALPHA_DROPPED,), 3),
        ("prores_ks", "yuva444p10le", "mov", (Flag.ALPHA_DROPPED, Flag.NOT_8_BIT), 3),
    ],
)
def test_alpha_is_dropped_not_blended(
    tmp_path: Path, encode: Encode, codec: str, pixel_format: str, suffix: str, flags: tuple[Flag, ...], tolerance: int
) -> None:
    pixels = np.full((3, 48, 64, 4), (200, 100, 50, 60), np.uint8)
    path = encode(tmp_path / f"clip.{suffix}", pixels, codec=codec, pixel_format=pixel_format, source="rgba")
    clip = read_clip(path)
    assert clip.flags == flags
    assert np.abs(clip.frames.astype(int) - (200, 100, 50)).max() <= tolerance


def test_pixels_that_are_not_square_are_flagged(tmp_path: Path, encode: Encode, noise: Noise) -> None:
    def widen(stream: Any) -> None:
        stream.codec_context.sample_aspect_ratio = 2

    clip = read_clip(encode(tmp_path / "clip.mp4", noise(3), prepare=widen))
    assert clip.flags == (Flag.PIXEL_ASPECT,)
    assert clip.info.pixel_aspect == (2, 1)
    assert clip.detail["pixel_aspect"] == (2, 1)
    assert clip.frames.shape == (3, 48, 64, 3)


CONTAINERS = {
    "avi": ("mpeg4", "yuv420p"),
    "mkv": ("libx264", "yuv420p"),
    "mov": ("libx264", "yuv420p"),
    "mp4": ("libx264", "yuv420p"),
    "ts": ("libx264", "yuv420p"),
    "webm": ("libvpx-vp9", "yuv420p"),
    "gif": ("gif", "rgb8"),
    "h264": ("libx264", "yuv420p"),
}


@pytest.mark.parametrize("suffix", CONTAINERS)
def test_containers(tmp_path: Path, encode: Encode, noise: Noise, read: Callable[..., Clip], suffix: str) -> None:
    codec, pixel_format = CONTAINERS[suffix]
    path = encode(tmp_path / f"clip.{suffix}", noise(12), rate=25, codec=codec, pixel_format=pixel_format)
    clip = read(path)
    assert np.array_equal(clip.frames, plain(path))
    assert clip.times == pytest.approx(np.arange(12) / 25, abs=0.0011)  # Matroska rounds to milliseconds
    assert set(clip.flags) <= {Flag.ALPHA_DROPPED}  # GIF always carries transparency
    assert clip.detail["timestamps"] == (
        "frame_rate" if suffix == "h264" else "decode_order" if suffix == "avi" else "container"
    )


@pytest.mark.parametrize("suffix", ["mkv", "webm", "avi", "mp4"])
def test_cut_files_are_noticed(tmp_path: Path, encode: Encode, noise: Noise, suffix: str) -> None:
    codec, pixel_format = CONTAINERS[suffix]
    whole = encode(
        tmp_path / f"clip.{suffix}", noise(24), codec=codec, pixel_format=pixel_format,
        container={"movflags": "+faststart"} if suffix == "mp4" else {},
    )  # fmt: skip
    data = whole.read_bytes()
    cut = tmp_path / f"cut.{suffix}"
    cut.write_bytes(data[: int(len(data) * 0.7)])
    clip = read_clip(cut)
    assert 0 < len(clip.frames) < 24
    assert clip.flags == (Flag.TRUNCATED,)
    assert read_clip(whole).flags == ()


@pytest.mark.parametrize("skip", [5, 0])
def test_frames_hidden_by_an_edit_list_are_not_missing(clips: Path, tmp_path: Path, skip: int) -> None:
    data = bytearray((clips / "fast.mp4").read_bytes())
    place = data.find(b"elst") + 12
    duration, start, rate = struct.unpack(">Iii", data[place : place + 12])
    data[place : place + 12] = struct.pack(">Iii", duration * 19 // 24, start + 512 * skip, rate)
    (tmp_path / "edited.mp4").write_bytes(data)
    clip = read_clip(tmp_path / "edited.mp4")
    assert len(clip.frames) == 19
    assert clip.info.declared_frames == 24
    assert clip.flags == ()
    assert np.array_equal(clip.frames, plain(clips / "fast.mp4")[skip : skip + 19])


def test_whole_groups_of_pictures_hidden_by_an_edit_list(tmp_path: Path, encode: Encode, noise: Noise) -> None:
    whole = encode(
        tmp_path / "clip.mp4", noise(24), options={"g": "6", "bf": "0"}, container={"movflags": "+faststart"}
    )
    data = bytearray(whole.read_bytes())
    place = data.find(b"elst") + 12
    duration, start, rate = struct.unpack(">Iii", data[place : place + 12])
    data[place : place + 12] = struct.pack(">Iii", duration // 3, start + 512 * 14, rate)
    (tmp_path / "edited.mp4").write_bytes(data)
    clip = read_clip(tmp_path / "edited.mp4")
    assert np.array_equal(clip.frames, plain(whole)[14:22])
    assert clip.flags == ()


def test_an_empty_packet_stands_for_no_frame_and_is_not_the_end(tmp_path: Path, encode: Encode, noise: Noise) -> None:
    whole = encode(tmp_path / "clip.mp4", noise(8), codec="mjpeg", pixel_format="yuvj420p")
    data = bytearray(whole.read_bytes())
    place = data.find(b"stsz") + 16
    sizes = list(struct.unpack(">8I", data[place : place + 32]))
    sizes[2:4] = 0, sizes[2] + sizes[3]  # the fourth packet begins where the third did
    data[place : place + 32] = struct.pack(">8I", *sizes)
    (tmp_path / "hole.mp4").write_bytes(data)
    clip = read_clip(tmp_path / "hole.mp4")
    assert np.array_equal(clip.frames, plain(whole)[[0, 1, 2, 4, 5, 6, 7]])
    assert clip.times == pytest.approx(np.array([0, 1, 3, 4, 5, 6, 7]) / 24)
    assert clip.flags == (Flag.VARIABLE_FPS,)


def test_avi_that_counts_frames_left_out_is_not_truncated(tmp_path: Path, encode: Encode, noise: Noise) -> None:
    times = [40 * index for index in range(12)] + [480 + 120 * index for index in range(12)]
    path = encode(tmp_path / "clip.avi", noise(24), rate=25, pts=times, codec="mpeg4")
    clip = read_clip(path)
    assert len(clip.frames) == 24
    assert clip.info.declared_frames is not None
    assert clip.info.declared_frames > 24
    assert clip.flags == (Flag.VARIABLE_FPS,)


def test_recording_that_begins_between_key_frames(tmp_path: Path, encode: Encode, noise: Noise) -> None:
    whole = encode(tmp_path / "clip.ts", noise(24), options={"g": "12", "bf": "0"})
    (tmp_path / "later.ts").write_bytes(whole.read_bytes()[188 * 40 :])
    clip = read_clip(tmp_path / "later.ts")
    assert len(clip.frames) >= 12
    assert np.array_equal(clip.frames[-12:], plain(whole)[-12:])


def test_packets_that_cannot_be_decoded_before_the_first_frame_are_skipped(
    tmp_path: Path, encode: Encode, noise: Noise
) -> None:
    whole = encode(tmp_path / "clip.mp4", noise(12), codec="mjpeg", pixel_format="yuvj420p")
    data = bytearray(whole.read_bytes())
    start = data.find(b"\xff\xd8")
    data[start : start + 600] = bytes(600)
    (tmp_path / "damaged.mp4").write_bytes(data)
    clip = read_clip(tmp_path / "damaged.mp4")
    assert np.array_equal(clip.frames, plain(whole)[1:])
    assert clip.flags == (Flag.TRUNCATED,)
    assert clip.detail["skipped_packets"] == 1
    data = bytearray(whole.read_bytes())
    start = data.find(b"\xff\xd8", data.find(b"\xff\xd8") + 2)
    data[start : start + 600] = bytes(600)
    (tmp_path / "damaged.mp4").write_bytes(data)
    clip = read_clip(tmp_path / "damaged.mp4")
    assert np.array_equal(clip.frames, plain(whole)[:1])
    assert clip.flags == (Flag.TRUNCATED,)


def test_single_frame(tmp_path: Path, encode: Encode, noise: Noise, read: Callable[..., Clip]) -> None:
    clip = read(encode(tmp_path / "clip.mp4", noise(1)), Uniform(3))
    assert clip.times.tolist() == [0.0, 0.0, 0.0]
    assert clip.flags == (Flag.FRAMES_REPEATED,)
    assert (clip.frames == clip.frames[:1]).all()


def test_clip_of_no_duration(tmp_path: Path, encode: Encode, noise: Noise) -> None:
    data = bytearray(encode(tmp_path / "clip.mp4", noise(6), options={"bf": "0"}).read_bytes())
    table = data.find(b"stts") + 8
    for entry in range(struct.unpack(">I", data[table : table + 4])[0]):
        data[table + 8 + 8 * entry : table + 12 + 8 * entry] = bytes(4)
    (tmp_path / "still.mp4").write_bytes(data)
    clip = read_clip(tmp_path / "still.mp4")
    assert len(clip.frames) == 6
    assert clip.times == pytest.approx(np.arange(6) / 24)
    assert clip.detail["timestamps"] == "frame_rate"


@pytest.mark.parametrize("suffix", ["h264", "ts"])
@pytest.mark.parametrize("isolated", [True, False])
def test_size_that_changes(tmp_path: Path, encode: Encode, noise: Noise, suffix: str, isolated: bool) -> None:
    one = encode(tmp_path / f"one.{suffix}", noise(6)).read_bytes()
    two = encode(tmp_path / f"two.{suffix}", noise(6, 32, 32)).read_bytes()
    path = tmp_path / f"both.{suffix}"
    path.write_bytes(one + two)
    with open_clip(path, isolated=isolated) as stream:
        assert [len(stream.read(3)[0]) for _ in range(2)] == [3, 3]
        with pytest.raises(ItemError, match=r"32x32.*64x48") as caught:
            stream.read(3)
    assert caught.value.reason is Reason.SIZE_CHANGES
    assert caught.value.detail == {"sizes_wh": [[64, 48], [32, 32]], "frame": 6}
    assert len(read_clip(path, All(6), isolated=isolated).frames) == 6  # what lies behind the limit is not looked at


def test_files_that_are_no_video(tmp_path: Path, encode: Encode, noise: Noise, clips: Path) -> None:
    (tmp_path / "empty.mp4").touch()
    (tmp_path / "text.mp4").write_text("not a video\n" * 50)
    (tmp_path / "header.mp4").write_bytes((clips / "fast.mp4").read_bytes()[:600])
    (tmp_path / "noindex.mp4").write_bytes(encode(tmp_path / "late.mp4", noise(6)).read_bytes()[:-700])
    encode(tmp_path / "picture.png", noise(1), codec="png", pixel_format="rgb24", container={"update": "1"})
    for name in ("empty.mp4", "text.mp4", "header.mp4", "noindex.mp4", "picture.png"):
        for isolated in (True, False):
            error = fails(tmp_path / name, Reason.UNDECODABLE, isolated=isolated)
            assert error.message.startswith(f"{name}: ")
    (tmp_path / "folder.mp4").mkdir()
    assert "regular file" in fails(tmp_path / "folder.mp4", Reason.UNDECODABLE).message


def test_sound_with_a_cover_picture_is_no_video(tmp_path: Path) -> None:
    path = tmp_path / "song.m4a"
    with av.open(str(path), "w", format="mp4") as out:
        sound = out.add_stream("aac", rate=44_100, layout="mono")
        cover = out.add_stream("mjpeg", rate=1)
        cover.width, cover.height, cover.pix_fmt = 64, 48, "yuvj420p"
        cover.disposition = av.stream.Disposition.attached_pic
        out.mux(cover.encode(av.VideoFrame(64, 48, "yuvj420p")))
        out.mux(cover.encode())
        for index in range(4):
            piece = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
            piece.sample_rate, piece.pts = 44_100, 1024 * index
            out.mux(sound.encode(piece))
        out.mux(sound.encode())
    assert "no video stream" in fails(path, Reason.UNDECODABLE).message


def test_absent_file(tmp_path: Path) -> None:
    for name in ("absent.mp4", "no/such/folder.mp4", "nul\0byte.mp4"):
        with pytest.raises(ItemError, match="no such file") as caught:
            probe(tmp_path / name)
        assert caught.value.reason is Reason.MISSING_VIDEO


def test_giant_frames_are_refused(clips: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gen_eval.settings import Settings

    monkeypatch.setattr("gen_eval.media.stream.settings", lambda: Settings(max_pixels=64 * 48 - 1))
    error = fails(clips / "fast.mp4", Reason.UNDECODABLE)
    assert "64x48" in error.message
    assert error.detail == {"size_wh": [64, 48], "max_pixels": 3071}
    monkeypatch.setattr("gen_eval.media.stream.settings", lambda: Settings(max_pixels=64 * 48))
    assert len(read_clip(clips / "fast.mp4").frames) == 24


def test_unusual_file_names(tmp_path: Path, clips: Path, read: Callable[..., Clip]) -> None:
    data = (clips / "fast.mp4").read_bytes()
    for name in (
        "frame%03d.mp4",
        "ein Film: äöü 映画.mp4",
        "-i.mp4",
        "clip",
        b"\xff\xfe.mp4".decode(errors="surrogateescape"),
    ):
        (tmp_path / name).write_bytes(data)
        assert len(read(tmp_path / name).frames) == 24


def test_probe_tells_what_a_stream_tells(clips: Path) -> None:
    for name in ("fast.mp4", "rotated.mp4"):
        with open_clip(clips / name) as stream:
            assert probe(clips / name) == probe(clips / name, isolated=False) == stream.info
