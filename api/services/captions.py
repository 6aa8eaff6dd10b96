"""Which sample a video is of when signals are made of it: its caption, and the clip that it will be held against."""

from __future__ import annotations

import os
from collections.abc import Container
from dataclasses import dataclass, replace
from pathlib import Path

from gen_eval.data import load_benchmark
from gen_eval.data.layouts import bare_member, read_caption
from gen_eval.data.naming import split_name
from gen_eval.records import Sample
from gen_eval.records.files import is_file

_TRACK = "control"


@dataclass(frozen=True)
class _CaptionFiles(Container[str]):
    """The ids that have a caption in a folder."""

    folder: Path

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and os.sep not in name and is_file(self.folder / f"{name}.json")


class SamplesOfVideos:
    """Finds the sample of each video.

    Without benchmark data a video is its own reference, and its caption is ``captions/<id>.json`` beside the folder of
    videos (inside of one that is not called ``videos``).

    Args:
        videos: folder of the videos.
        data: benchmark folder or sample file.

    Raises:
        InputError: the data cannot be used.
    """

    def __init__(self, videos: Path, data: Path | None) -> None:
        self._samples = None if data is None else load_benchmark(data, videos=videos, track=_TRACK).by_id
        self._captions = (videos.parent if videos.name == "videos" else videos) / "captions"

    def of(self, path: Path) -> Sample:
        """The sample of the video ``path``; it has a reference, and a prompt if any is known.

        Raises:
            InputError: a caption file is no JSON.
        """
        if self._samples is not None:
            reading = split_name(path.stem, self._samples, bare_member=bare_member(_TRACK))
            found = None if reading is None else self._samples[reading[0]]
            if found is not None:
                there = found.reference is not None and is_file(found.reference)
                return found if there else replace(found, reference=path)
            return Sample(id=path.stem, reference=path)
        reading = split_name(path.stem, _CaptionFiles(self._captions), bare_member=bare_member(_TRACK))
        if reading is None:
            return Sample(id=path.stem, reference=path)
        caption = read_caption(self._captions / f"{reading[0]}.json")
        return Sample(id=reading[0], prompt=caption, reference=path)
