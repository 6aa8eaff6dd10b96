"""A video file is data: neither its name nor its content makes the decoder open anything else."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import av
import numpy as np
import pytest

from gen_eval.media import All, AtRate, Uniform, read_clip
from gen_eval.records import ItemError, Reason


def reason(path: str | Path, *, isolated: bool = True) -> Reason:
    with pytest.raises(ItemError) as caught:
        read_clip(path, isolated=isolated)
    return caught.value.reason


@pytest.fixture
def segment(tmp_path: Path, noise: Callable[..., object], encode: Callable[..., Path]) -> Path:
    return encode(tmp_path / "segment.ts", noise(6))


def playlists(segment: Path) -> dict[str, str]:
    return {
        "hls": f"#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:2\n#EXTINF:0.25,\n{segment}\n#EXT-X-ENDLIST\n",
        "concat": f"ffconcat version 1.0\nfile '{segment.name}'\n",
        "dash": '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" '
        'mediaPresentationDuration="PT1S" profiles="urn:mpeg:dash:profile:isoff-on-demand:2011"><Period>'
        f'<AdaptationSet mimeType="video/mp4"><Representation id="0" bandwidth="1"><BaseURL>{segment}</BaseURL>'
        "</Representation></AdaptationSet></Period></MPD>",
        "sdp": "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 5004 RTP/AVP 96\n"
        "a=rtpmap:96 H264/90000\n",
    }


@pytest.mark.parametrize("kind", ["hls", "concat", "dash", "sdp"])
@pytest.mark.parametrize("suffix", ["mp4", "m3u8", "txt"])
@pytest.mark.parametrize("isolated", [True, False])
def test_a_playlist_is_not_followed(tmp_path: Path, segment: Path, kind: str, suffix: str, isolated: bool) -> None:
    path = tmp_path / f"x.{suffix}"
    path.write_text(playlists(segment)[kind])
    assert reason(path, isolated=isolated) is Reason.UNDECODABLE


@pytest.mark.parametrize(("kind", "suffix"), [("hls", "m3u8"), ("concat", "txt")])
def test_the_playlists_would_work_without_the_guard(tmp_path: Path, segment: Path, kind: str, suffix: str) -> None:
    path = tmp_path / f"x.{suffix}"
    path.write_text(playlists(segment)[kind])
    with av.open(str(path)) as container:
        assert sum(1 for _ in container.decode(video=0)) == 6


def test_names_are_not_addresses(tmp_path: Path, clips: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(clips)
    for name in (
        "concat:fast.mp4|fast.mp4",
        "file:fast.mp4",
        "http://127.0.0.1:9/x.mp4",
        "subfile,,start,0,end,0,,:fast.mp4",
        "data:video/mp4;base64,AAAA",
        "pipe:0",
        "fd:",
        "-",
        "lavfi:testsrc",
        "frame%03d.png",
        "fast.mp4?",
    ):
        assert reason(name) is Reason.MISSING_VIDEO, name
    strange = tmp_path / "concat:a|b.mp4"
    strange.write_bytes((clips / "fast.mp4").read_bytes())
    assert len(read_clip(strange).frames) == 24
    assert len(read_clip("fast.mp4").frames) == 24  # a relative name follows this process, not the decoder's


def test_things_that_are_no_regular_files_do_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.mp4")
    for path in (tmp_path / "pipe.mp4", Path("/dev/zero"), tmp_path):
        for isolated in (True, False):
            assert reason(path, isolated=isolated) is Reason.UNDECODABLE


def test_damaged_files_give_frames_or_a_reason(clips: Path, tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    path = tmp_path / "damaged.mp4"
    outcomes = set()
    for round_ in range(60):
        data = np.frombuffer((clips / ("vfr.mp4" if round_ % 2 else "fast.mp4")).read_bytes(), np.uint8).copy()
        reach = len(data) if round_ % 3 else 1500  # also the header by itself
        places = generator.integers(0, reach, 20)
        data[places] = generator.integers(0, 256, 20)
        path.write_bytes(data[: generator.integers(len(data) // 2, len(data) + 1)].tobytes())
        try:
            clip = read_clip(path, (All(), Uniform(8), AtRate(2))[round_ % 3])
        except ItemError as error:
            outcomes.add(str(error.reason))
        else:
            outcomes.add("frames")
            assert len(clip.frames) == len(clip.times) == len(clip.indices) > 0
            assert np.isfinite(clip.times).all()
            json.dumps(clip.detail, allow_nan=False)
    assert {"frames", "undecodable"} <= outcomes <= {"frames", "undecodable", "size_changes", "decode_timeout"}
