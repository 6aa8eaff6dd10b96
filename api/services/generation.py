"""Videos from a generator, for the samples of a benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from api.services.manifest_entries import Progress, silent
from gen_eval.data import load_benchmark
from gen_eval.generators.base import Generator
from gen_eval.generators.folder import Made, generate_folder
from gen_eval.records import InputError
from gen_eval.registry import load


def load_generator(name: str) -> Generator:
    """The generator ``name``.

    Raises:
        InputError: there is none of that name.
    """
    generator = load("gen_eval.generators", name)
    if not isinstance(generator, Generator):
        raise InputError(f"the entry point {name!r} must name a gen_eval.generators.base.Generator")
    return generator


def generate_videos(
    generator: str,
    data: Path,
    out: Path,
    *,
    seeds: tuple[int, ...] = (0,),
    captions: bool = False,
    limit: int | None = None,
    options: dict[str, Any] | None = None,
    progress: Progress = silent,
) -> list[Made]:
    """Make a video for every sample of ``data`` and every seed (or caption); finished videos are kept.

    Raises:
        InputError: bad data, generator or options.
    """
    made = load_generator(generator)
    track = "control" if captions else "quality"
    benchmark = load_benchmark(data, videos=data, track=track).restricted(limit=limit)
    total = sum(len(sample.captions) or 1 for sample in benchmark.samples) if captions else 0
    total = total or len(benchmark.samples) * len(seeds)
    done: list[Made] = []

    def count(one: Made) -> None:
        done.append(one)
        progress("generating", len(done), total)

    generate_folder(made, benchmark.samples, out, seeds=seeds, captions=captions, options=options, done=count)
    return sorted(done, key=lambda one: (one.sample, one.member))
