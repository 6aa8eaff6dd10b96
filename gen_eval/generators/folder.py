"""Running a generator over samples into a folder that the score commands read.

What is on disk at any moment: files under their final names are whole; the video of a clip is written after its depth
maps and masks, so a clip whose video is there is finished. ``generations.json`` says at the start what is being made,
and at the end what was made.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gen_eval.data.signal_files import write_depth, write_masks
from gen_eval.generators.base import Generator, GivenClip
from gen_eval.media import sha256_file, write_clip
from gen_eval.records import InputError, ItemError, Reason, Sample
from gen_eval.records.files import copy_atomic, remove_leftovers, write_atomic

MANIFEST = "generations.json"


@dataclass(frozen=True)
class Made:
    """One clip of a folder.

    Attributes:
        sample: id of the sample.
        member: seed, or index of the caption.
        seed: that the generator was given.
        video: file name under ``videos/``; ``None`` when there is none.
        sha256: digest of the video's bytes.
        reason: why there is no video.
        message: the same for people.
    """

    sample: str
    member: str
    seed: int
    video: str | None
    sha256: str | None = None
    reason: Reason | None = None
    message: str = ""


@dataclass(frozen=True)
class _Job:
    sample: Sample
    member: str
    seed: int
    prompt: str | None

    @property
    def stem(self) -> str:
        return f"{self.sample.id}__{self.member}"


def generate_folder(
    generator: Generator,
    samples: Iterable[Sample],
    out: Path,
    *,
    seeds: Sequence[int] = (0,),
    captions: bool = False,
    options: Mapping[str, Any] | None = None,
    lossless: bool = False,
    done: Callable[[Made], None] | None = None,
) -> tuple[Made, ...]:
    """Make every clip that is not there yet: ``videos/<id>__<member>.mp4``, with depth and masks where known.

    Depth maps go to ``depth_npzs/<id>__<member>.npz``, masks to ``masks/<id>__<member>.masks.json``, the record of all
    clips to ``generations.json``. A sample that the generator cannot serve is
    recorded with its reason; the rest goes on.

    Args:
        generator: makes the clips.
        samples: of a benchmark.
        out: folder; made if it is not there.
        seeds: members of each sample; with ``captions`` a single one.
        captions: one clip for every caption of a sample in place of every seed; the members are then 0, 1, ...
        options: of the generator, the same for all clips.
        lossless: exact pixels in place of the standard compression.
        done: called for each clip, made or found.

    Returns:
        One record a clip, by sample and member.

    Raises:
        InputError: the folder was made by another generator or with other options, a sample's id is no file name, or
            an option is bad.
    """
    own = dict(options or {})
    generator.check(**own)
    if generator.one_clip and (captions or list(seeds) != [0]):
        raise InputError(f"{generator.name} has a single clip for each sample; leave seeds and captions out")
    jobs = list(_jobs(samples, seeds, captions))
    head = {"generator": generator.name, "version": generator.version, "options": own, "lossless": lossless}
    _claim(out / MANIFEST, head)
    for folder in ("videos", "depth_npzs", "masks", "segmentation"):
        remove_leftovers(out / folder)
    made: list[Made] = []
    for job in jobs:
        made.append(_make(generator, job, out, own, lossless))
        if done is not None:
            done(made[-1])
    records = {(record["sample"], record["member"]): record for record in _earlier(out / MANIFEST)}
    records |= {(record.sample, record.member): asdict(record) for record in made}
    write_atomic(out / MANIFEST, _document(head, [records[key] for key in sorted(records)]))
    return tuple(sorted(made, key=lambda record: (record.sample, record.member)))


def _jobs(samples: Iterable[Sample], seeds: Sequence[int], captions: bool) -> Iterator[_Job]:
    if not seeds or len(set(seeds)) != len(seeds) or min(seeds) < 0 or (captions and len(seeds) > 1):
        expected = "exactly one when every caption gets a clip" if captions else "at least one, all different"
        raise InputError(f"seeds must be whole numbers from 0 on, {expected}, not {list(seeds)}")
    for sample in samples:
        if not sample.id or sample.id.startswith(".") or any(sign in sample.id for sign in "/\\\0"):
            raise InputError(f"the sample id {sample.id!r} cannot be a file name; rename the sample")
        if captions:
            for index, caption in enumerate(sample.captions or (sample.prompt,)):
                yield _Job(sample, str(index), seeds[0], caption)
        else:
            for seed in seeds:
                yield _Job(sample, str(seed), seed, None)


def _make(generator: Generator, job: _Job, out: Path, options: Mapping[str, Any], lossless: bool) -> Made:
    try:
        given = generator.given(job.sample)
        video = _generated(generator, job, out, options, lossless) if given is None else _copied(given, job, out)
    except ItemError as error:
        return Made(job.sample.id, job.member, job.seed, None, None, error.reason, error.message)
    return Made(job.sample.id, job.member, job.seed, video.name, sha256_file(video))


def _generated(generator: Generator, job: _Job, out: Path, options: Mapping[str, Any], lossless: bool) -> Path:
    video = out / "videos" / f"{job.stem}.mp4"
    if not video.exists():
        clip = generator.generate(job.sample, seed=job.seed, prompt=job.prompt, **options)
        if clip.depth is not None:
            write_depth(out / "depth_npzs" / f"{job.stem}.npz", clip.depth)
        if clip.masks is not None:
            write_masks(out / "masks" / f"{job.stem}.masks.json", clip.masks)
        video.parent.mkdir(parents=True, exist_ok=True)
        write_clip(video, clip.frames, clip.fps, lossless=lossless, preview=True)
    return video


def _copied(given: GivenClip, job: _Job, out: Path) -> Path:
    """Copies: a link would break when the benchmark moves, and what is changed here must not change there."""
    video = out / "videos" / f"{job.stem}{given.video.suffix}"
    if not video.exists():
        if given.depth is not None:
            copy_atomic(given.depth, out / "depth_npzs" / f"{job.stem}.npz")
        if given.masks is not None:
            folder, suffix = ("segmentation", ".pkl") if given.masks.suffix == ".pkl" else ("masks", ".masks.json")
            copy_atomic(given.masks, out / folder / f"{job.stem}{suffix}")
        copy_atomic(given.video, video)
    return video


def _document(head: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> bytes:
    return (json.dumps({**head, "clips": list(records)}, ensure_ascii=False, indent=1) + "\n").encode()


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict) or not isinstance(content.get("clips"), list):
            raise InputError(f"{path} must be an object with a list of clips; choose another folder")
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as a list of clips: {error}; choose another folder") from error
    return content


def _earlier(path: Path) -> list[dict[str, Any]]:
    return list(_read(path)["clips"])


def _claim(path: Path, head: Mapping[str, Any]) -> None:
    """Say what the folder is being filled with, or make sure that it is the same as before."""
    if not path.exists():
        write_atomic(path, _document(head, []))
        return
    content = _read(path)
    different = [name for name in head if content.get(name) != head[name]]
    if different:
        before = ", ".join(f"{name} {content.get(name)!r}" for name in different)
        raise InputError(f"{path.parent} was made with {before}; choose another folder for this generator")
