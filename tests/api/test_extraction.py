"""`gen-eval controls extract`: signals that a generator is steered by."""

import cv2
import numpy as np
import pytest

from gen_eval.media import read_clip, write_clip


@pytest.fixture
def videos(tmp_path, make_clip):
    folder = tmp_path / "videos"
    folder.mkdir()
    for name in ("a", "b"):
        write_clip(folder / f"{name}.mp4", make_clip(len(name)), 24.0, lossless=True)
    return folder


def test_edges_and_blur_are_those_of_opencv(cli, videos, tmp_path):
    done = cli("controls", "extract", "--videos", videos, "--out", "signals", "--json")
    assert done.code == 0, done
    assert done.json["counts"] == {"written": 4}
    frames = read_clip(videos / "a.mp4").frames
    edges = np.load(tmp_path / "signals" / "edges" / "a.npz", allow_pickle=False)["data"]
    expected = np.stack([cv2.Canny(frame, 100, 200) for frame in frames]) > 0
    assert np.array_equal(edges, expected)
    shown = read_clip(tmp_path / "signals" / "canny" / "a.mp4").frames
    assert shown.shape == frames.shape
    assert np.abs(shown[..., 0].astype(int) - 255 * expected).mean() < 12, "the picture shows the edges"
    blurred = read_clip(tmp_path / "signals" / "blur" / "a.mp4").frames
    direct = np.stack([cv2.bilateralFilter(frame, 30, 150, 100) for frame in frames])
    assert np.abs(blurred.astype(int) - direct).mean() < 3


def test_the_newer_public_variant_takes_gray_edges(cli, videos, tmp_path):
    cli("controls", "extract", "--videos", videos, "--out", "v2", "--signals", "edge", "--protocol", "reference-v2")
    frames = read_clip(videos / "a.mp4").frames
    edges = np.load(tmp_path / "v2" / "edges" / "a.npz", allow_pickle=False)["data"]
    gray = [cv2.Canny(cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY), 100, 200) for frame in frames]
    assert np.array_equal(edges, np.stack(gray) > 0)


def test_it_goes_on_where_it_stopped(cli, videos, tmp_path):
    first = cli("controls", "extract", "--videos", videos, "--out", "s", "--signals", "blur", "--json")
    before = (tmp_path / "s" / "blur" / "a.mp4").read_bytes()
    (tmp_path / "s" / "blur" / "b.mp4").unlink()
    (tmp_path / "s" / "blur" / ".b.mp4.x.part").write_bytes(b"half")
    again = cli("controls", "extract", "--videos", videos, "--out", "s", "--signals", "blur", "--json")
    assert (first.json["counts"], again.json["counts"]) == ({"written": 2}, {"kept": 1, "written": 1})
    assert (tmp_path / "s" / "blur" / "a.mp4").read_bytes() == before
    assert not list((tmp_path / "s" / "blur").glob(".*"))


def test_a_file_that_is_damaged_or_made_otherwise_is_written_again(cli, videos, tmp_path, make_clip):
    options = ["controls", "extract", "--videos", videos, "--out", "s", "--signals", "edge", "--json"]
    cli(*options)
    whole = (tmp_path / "s" / "edges" / "a.npz").read_bytes()
    (tmp_path / "s" / "edges" / "a.npz").write_bytes(whole[:100])
    assert cli(*options).json["counts"] == {"kept": 1, "written": 1}
    assert (tmp_path / "s" / "edges" / "a.npz").read_bytes() == whole
    assert cli(*options, "--protocol", "reference-v2").json["counts"] == {"written": 2}
    write_clip(videos / "b.mp4", make_clip(9), 24.0, lossless=True)
    assert cli(*options, "--protocol", "reference-v2").json["counts"] == {"kept": 1, "written": 1}


def test_a_broken_video_is_named_and_the_others_are_done(cli, videos):
    (videos / "c.mp4").write_text("no video")
    done = cli("controls", "extract", "--videos", videos, "--out", "s", "--signals", "edge", "--json")
    assert done.code == 1, done
    assert done.json["counts"] == {"failed": 1, "written": 2}
    assert "undecodable" in {one["reason"] for one in done.json["signals"]}
    assert "Traceback" not in done.err


def test_signals_that_need_a_network_are_skipped_with_a_reason(cli, videos):
    done = cli("controls", "extract", "--videos", videos, "--out", "s", "--signals", "depth", "--json")
    assert done.code == 3, done
    assert {one["reason"] for one in done.json["signals"]} == {"missing_weights"}
    both = cli("controls", "extract", "--videos", videos, "--out", "s", "--signals", "depth,edge", "--json")
    assert both.code == 0, both


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--signals", "colour"], "unknown signal colour"),
        (["--protocol", "newest"], "no protocol 'newest'"),
        (["--videos", "absent"], "cannot be read"),
        (["--videos", "."], "holds no video"),
    ],
)
def test_bad_arguments_are_explained(cli, videos, arguments, expected):
    given = ["--videos", videos, "--out", "s"]
    done = cli("controls", "extract", *given, *arguments)
    assert done.code == 2, done
    assert expected in done.err
