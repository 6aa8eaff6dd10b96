"""A benchmark of built-in scenes."""

from __future__ import annotations

from pathlib import Path

from api.services.manifest_entries import Progress, silent
from gen_eval.records import InputError
from gen_eval.scenes import KINDS, write_benchmark


def make_benchmark(
    out: Path,
    *,
    kinds: tuple[str, ...] | None = None,
    per_kind: int = 2,
    size: tuple[int, int] = (256, 448),
    fps: float = 24.0,
    frames: int = 49,
    seed: int = 0,
    controls: bool = True,
    progress: Progress = silent,
) -> int:
    """Write ``per_kind`` scenes of every kind; what is there already is kept.

    Returns:
        The number of scenes.

    Raises:
        InputError: an unknown kind, or ``out`` holds another benchmark.
    """
    chosen = kinds or KINDS
    if unknown := [kind for kind in chosen if kind not in KINDS]:
        raise InputError(f"there is no kind of scene {', '.join(unknown)}; there are {', '.join(KINDS)}")
    total = len(chosen) * per_kind
    done: list[str] = []

    def count(name: str) -> None:
        done.append(name)
        progress("rendering scenes", len(done), total)

    written = write_benchmark(
        out,
        kinds=chosen,
        per_kind=per_kind,
        size=size,
        fps=fps,
        frames=frames,
        seed=seed,
        controls=controls,
        done=count,
    )
    return len(written)
