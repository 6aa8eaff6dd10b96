"""Decoders that hang, crash or outlive their parent; clips that are read side by side."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from gen_eval.media import ClipStream, DecoderPool, open_clip, read_clip
from gen_eval.media.process import DecoderProcess
from gen_eval.media.sources import IsolatedSource
from gen_eval.records import ItemError, MissingPart, Reason

SPIN = "import hashlib\nhashlib.pbkdf2_hmac('sha256', b'', b'', 2**31 - 1)"
"""Minutes inside native code that never looks at Python."""

WAITING = """
import time
step = arguments[2]
def waited():
    time.sleep({seconds})
    return step()
arguments = (*arguments[:2], waited)
"""
"""So many seconds for each frame."""


def child_of(pool: DecoderPool) -> DecoderProcess:
    (process,) = pool._lent
    return process


def shorten(stream: ClipStream, seconds: float) -> None:
    """From now on wait so long for a frame; opening the file took the time that it needs on a busy machine."""
    assert isinstance(stream._source, IsolatedSource)
    stream._source._timeout = seconds


def gone(pid: int, seconds: float = 60.0) -> bool:
    """Whether no process of that id runs any more (a zombie that nobody fetched counts as gone)."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def test_a_stopped_decoder_is_killed_and_other_clips_go_on(clips: Path, pool: DecoderPool) -> None:
    whole = read_clip(clips / "fast.mp4").frames
    with DecoderPool() as other, open_clip(clips / "fast.mp4", pool=other) as healthy:
        healthy.read(2)
        with open_clip(clips / "fast.mp4", pool=pool) as stream:
            shorten(stream, 0.5)
            process = child_of(pool)
            os.kill(process.process.pid, signal.SIGSTOP)
            with pytest.raises(ItemError, match=r"fast\.mp4: .* 0\.5 s") as caught:
                stream.read(4)
        assert caught.value.reason is Reason.DECODE_TIMEOUT
        assert caught.value.detail == {"timeout": 0.5}
        assert not process.alive
        assert np.array_equal(healthy.read(100)[0], whole[2:])
    assert np.array_equal(read_clip(clips / "fast.mp4", pool=pool).frames, whole)


def test_a_decoder_that_spins_in_native_code_is_killed(
    clips: Path, pool: DecoderPool, fake_decoder: Callable[[str], None]
) -> None:
    fake_decoder(SPIN)
    stream = open_clip(clips / "fast.mp4", pool=pool)
    shorten(stream, 0.5)
    process = child_of(pool)
    with pytest.raises(ItemError) as caught:
        stream.read(1)
    assert caught.value.reason is Reason.DECODE_TIMEOUT
    assert not process.alive
    with pytest.raises(ValueError, match="closed"):
        stream.read(1)


def test_the_clock_is_set_back_by_every_frame(clips: Path, fake_decoder: Callable[[str], None]) -> None:
    """A clip takes twice as long as the wait for a frame; where even that is short of a busy machine, more is given."""
    for wait in (1.5, 6.0, 24.0):
        fake_decoder(WAITING.format(seconds=wait / 6))
        with DecoderPool() as pool, open_clip(clips / "fast.mp4", pool=pool, timeout=wait) as stream:
            try:
                found = stream.read(12)[0]
            except ItemError:
                continue
        assert len(found) == 12
        return
    pytest.fail("the clock is not set back")


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGKILL", "SIGABRT"])
def test_a_crash_names_its_signal(
    clips: Path, pool: DecoderPool, fake_decoder: Callable[[str], None], name: str
) -> None:
    fake_decoder(f"import os, signal\nos.kill(os.getpid(), signal.{name})")
    with open_clip(clips / "fast.mp4", pool=pool) as stream, pytest.raises(ItemError, match=name) as caught:
        stream.read(1)
    assert caught.value.reason is Reason.UNDECODABLE
    assert caught.value.detail == {"decoder_ended": name}


def test_a_decoder_that_exits_is_told_from_one_that_is_killed(
    clips: Path, pool: DecoderPool, fake_decoder: Callable[[str], None]
) -> None:
    fake_decoder("import os\nos._exit(7)")
    with open_clip(clips / "fast.mp4", pool=pool) as stream, pytest.raises(ItemError, match="exit status 7"):
        stream.read(1)


def test_an_unexpected_error_of_the_decoder_is_reported(
    clips: Path, pool: DecoderPool, fake_decoder: Callable[[str], None]
) -> None:
    fake_decoder("raise RuntimeError('a bug')")
    with (
        open_clip(clips / "fast.mp4", pool=pool) as stream,
        pytest.raises(ItemError, match="RuntimeError: a bug") as caught,
    ):
        stream.read(1)
    assert caught.value.reason is Reason.INTERNAL_ERROR


def test_a_resting_process_that_died_is_replaced(clips: Path, pool: DecoderPool) -> None:
    for _ in range(2):
        assert len(read_clip(clips / "fast.mp4", pool=pool).frames) == 24
        (resting,) = pool._resting
        resting.process.kill()
        resting.process.wait()


def test_processes_are_used_again_and_surplus_ones_end(clips: Path) -> None:
    with DecoderPool(idle=1) as pool:
        with open_clip(clips / "fast.mp4", pool=pool), open_clip(clips / "fast.mp4", pool=pool):
            first, second = pool._lent
        assert len(pool._resting) == 1
        assert [first.alive, second.alive].count(True) == 1
        kept = pool._resting[0].process.pid
        with open_clip(clips / "fast.mp4", pool=pool):
            assert child_of(pool).process.pid == kept
    assert gone(kept)


def test_closing_early_does_not_wait_for_the_rest_of_a_chunk(
    clips: Path, pool: DecoderPool, fake_decoder: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It stops after the frame at hand and rests: however long the rest would be waited for, it is not decoded."""
    monkeypatch.setattr("gen_eval.media.process._CLOSE_SECONDS", 120.0)
    note = f"open({str(tmp_path / 'frames')!r}, 'ab', 0).write(b'.')"
    fake_decoder(WAITING.format(seconds=0.2).replace("return step()", f"{note}\n    return step()"))
    with open_clip(clips / "fast.mp4", pool=pool, chunk=24):
        process = child_of(pool)
    assert process.alive
    assert pool._resting == [process]
    decoded = tmp_path / "frames"
    assert not decoded.exists() or decoded.stat().st_size < 24


def test_closing_the_pool_ends_open_clips(clips: Path) -> None:
    pool = DecoderPool()
    with open_clip(clips / "fast.mp4", pool=pool) as stream:
        stream.read(1)
        pid = child_of(pool).process.pid
        pool.close()
        assert gone(pid)


def test_a_decoder_that_cannot_start_is_a_missing_part(
    clips: Path, pool: DecoderPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(MissingPart, match="does not start"):
        open_clip(clips / "fast.mp4", pool=pool)


def test_without_anonymous_memory_files_a_temporary_one_serves(
    clips: Path, pool: DecoderPool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = read_clip(clips / "fast.mp4", isolated=False).frames
    monkeypatch.delattr(os, "memfd_create")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert np.array_equal(read_clip(clips / "fast.mp4", pool=pool).frames, whole)
    assert list(tmp_path.iterdir()) == []


def test_many_threads_share_a_pool(clips: Path, pool: DecoderPool) -> None:
    names = ["fast.mp4", "cut.mp4", "vfr.mp4", "rotated.mp4"] * 4
    expected = {name: read_clip(clips / name, isolated=False).frames for name in set(names)}
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda name: read_clip(clips / name, pool=pool).frames, names))
    assert all(np.array_equal(frames, expected[name]) for name, frames in zip(names, found, strict=True))
    assert len(pool._resting) <= 4


def test_a_forked_process_leaves_its_parents_decoders_alone(clips: Path, pool: DecoderPool) -> None:
    with open_clip(clips / "fast.mp4", pool=pool) as stream:
        stream.read(4)
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                code = 0 if len(read_clip(clips / "fast.mp4", pool=pool).frames) == 24 else 2
                pool.close()
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert len(stream.read(100)[0]) == 20


def run(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-X", "dev", "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_a_program_without_a_main_guard_runs_once_and_leaves_nothing(clips: Path) -> None:
    result = run(
        """
        import pathlib, sys
        print("started")
        from gen_eval.media import open_clip, read_clip
        from gen_eval.media.process import DEFAULT_POOL
        assert len(read_clip(sys.argv[1]).frames) == 24
        (process,) = DEFAULT_POOL._resting
        maps = pathlib.Path(f"/proc/{process.process.pid}/maps").read_text()
        print("numpy" in maps, process.process.pid)
        """,
        clips / "fast.mp4",
    )
    assert (result.returncode, result.stderr) == (0, "")
    started, facts = result.stdout.splitlines()
    assert started == "started"
    with_numpy, pid = facts.split()
    assert with_numpy == "False"
    assert gone(int(pid))


@pytest.mark.parametrize("busy", [False, True], ids=["resting", "spinning"])
def test_a_killed_program_leaves_no_decoder(clips: Path, busy: bool, fake_decoder: Callable[[str], None]) -> None:
    from gen_eval.media import _child

    fake_decoder(SPIN if busy else "pass")
    code = """
        import sys
        from gen_eval.media import _child, open_clip
        from gen_eval.media.process import DEFAULT_POOL
        _child.__file__ = sys.argv[2]
        stream = open_clip(sys.argv[1], chunk=4)
        print(next(iter(DEFAULT_POOL._lent)).process.pid, flush=True)
        import time
        time.sleep(600)
        """
    command = [sys.executable, "-c", textwrap.dedent(code), str(clips / "fast.mp4"), str(_child.__file__)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        pid = int(program.stdout.readline())
        assert not gone(pid, 0.2)
        program.kill()
    assert gone(pid)


def test_importing_media_loads_no_codec(tmp_path: Path) -> None:
    result = run("import sys, gen_eval.media; print([name for name in ('av', 'cv2', 'PIL') if name in sys.modules])")
    assert result.stdout.strip() == "[]", result.stderr


def test_a_process_that_is_killed_while_it_starts_is_started_again(monkeypatch):
    from gen_eval.media import process

    starts = []
    whole = process.DecoderProcess.__init__

    def killed_twice(self):
        starts.append(self)
        if len(starts) < 3:
            raise process.MissingPart("killed")
        whole(self)

    monkeypatch.setattr(process.DecoderProcess, "__init__", killed_twice)
    with process.DecoderPool() as pool:
        assert pool.take().alive
    assert len(starts) == 3
