"""Which generated file belongs to which sample."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gen_eval.data.benchmark import Benchmark
from gen_eval.data.layouts import bare_member, signals_of
from gen_eval.data.naming import list_videos, shown_name, split_name
from gen_eval.records import Generation, Group, Reason

_EXPECTED_MEMBER = "0"  # the member that a sample without any file is missing, when no seeds were asked for


@dataclass(frozen=True)
class Matched:
    """Groups for all samples of a benchmark, and the files that took no part.

    Attributes:
        groups: one a sample, in order of id; absent videos are members without a path.
        unknown: names of files that belong to no sample.
        not_asked: names of files whose member was not asked for.
    """

    groups: tuple[Group, ...]
    unknown: tuple[str, ...]
    not_asked: tuple[str, ...]


def match_videos(
    benchmark: Benchmark,
    videos: Path,
    *,
    model: str,
    track: str,
    seeds: Sequence[str] | None = None,
    signals: Path | None = None,
    known_ids: Iterable[str] | None = None,
    usual: Sequence[str] | None = None,
) -> Matched:
    """Match the files in ``videos`` to the samples of ``benchmark`` by exact id.

    Args:
        benchmark: the samples that are expected.
        videos: folder of generated videos.
        model: label of the model that made them.
        track: decides the member of a file that is named by the id alone.
        seeds: members that every sample is expected to have; others are left out. ``None``: whatever is there.
        signals: folder with depth maps and segmentation of the generated clips in the public layout; by default the
            folder above one named ``videos``, else the folder itself.
        usual: members that are taken when no seeds were asked for; ``None``: all.
        known_ids: ids of the whole benchmark when ``benchmark`` is a part of it: files of the rest are left out in
            silence, not reported as unknown.
    """
    found: dict[str, dict[str, list[Path]]] = defaultdict(lambda: defaultdict(list))
    unknown: list[str] = []
    not_asked: list[str] = []
    taken = seeds if seeds is not None else usual
    ids = set(known_ids) if known_ids is not None else set(benchmark.by_id)
    for path in list_videos(videos):
        reading = split_name(path.stem, ids, bare_member=bare_member(track))
        if reading is None:
            unknown.append(shown_name(path))
        elif taken is not None and reading[1] not in taken:
            not_asked.append(path.name)
        else:
            found[reading[0]][reading[1]].append(path)
    beside = signals if signals is not None else (videos.parent if videos.name == "videos" else videos)
    groups = (
        Group(model, sample, tuple(_members(sample.id, found.get(sample.id, {}), seeds, beside)))
        for sample in benchmark.samples
    )
    return Matched(tuple(groups), tuple(unknown), tuple(not_asked))


def _members(
    sample: str, files: dict[str, list[Path]], seeds: Sequence[str] | None, beside: Path
) -> Iterable[Generation]:
    expected = sorted({*files, *(seeds or ())}) or [_EXPECTED_MEMBER]
    for member in expected:
        paths = files.get(member, [])
        if not paths:
            yield Generation(sample, member, None, problem=Reason.MISSING_VIDEO)
        elif len(paths) > 1:
            names = [path.name for path in paths]
            message = f"{len(names)} files claim this sample and member; keep one"
            yield Generation(
                sample, member, None, problem=Reason.DUPLICATE_VIDEO, detail={"files": names, "message": message}
            )
        else:
            yield Generation(sample, member, paths[0], **signals_of(beside, paths[0].stem)._asdict())
