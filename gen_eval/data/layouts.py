"""The folder layouts of PAI-Bench-G and PAI-Bench-C, and plain folders."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from gen_eval.data.benchmark import Benchmark, Rejected
from gen_eval.data.naming import is_unicode, list_videos, shown_name, split_name
from gen_eval.data.samples_file import beside, load_samples_file
from gen_eval.records import InputError, Rejection, Sample
from gen_eval.records.files import is_file

_CONTROL_FOLDERS = {"edge": "canny", "blur": "blur", "depth": "depth_vids", "seg": "sam2_vids"}
_VARIANTS = 5
_PROMPT_FILES = "*_full_info.json"


def detect_layout(data: Path) -> str:
    """Which layout ``data`` has: ``pai-c``, ``pai-g``, ``samples-file`` or ``references``.

    Raises:
        InputError: it is none of them; the message says what each would need.
    """
    if data.is_file() and data.name.endswith((".jsonl", ".jsonl.gz")):
        return "samples-file"
    if data.is_file() and data.match(_PROMPT_FILES):
        return "pai-g"
    if data.is_dir():
        if (data / "videos").is_dir() and (data / "captions").is_dir():
            return "pai-c"
        if any(data.glob(_PROMPT_FILES)):
            return "pai-g"
        if (data / "samples.jsonl").is_file():
            return "samples-file"
        if list_videos(data):
            return "references"
    raise InputError(
        f"{data} is no benchmark data that is known here. Expected a folder with videos/ and captions/ (PAI-Bench-C), "
        "one with a *_full_info.json (PAI-Bench-G), that file itself, one with a samples.jsonl, one with reference "
        "videos, or a .jsonl file"
    )


def load_benchmark(
    data: Path | None, *, videos: Path, track: str, layout: str | None = None, media: Path | None = None
) -> Benchmark:
    """The benchmark in ``data``, or the one that the names of the generated videos imply.

    Args:
        data: folder or sample file; ``None`` when there is nothing but generated videos.
        videos: folder of the generated videos.
        track: ``quality`` or ``control``; where one folder serves both, the track decides.
        layout: take it as this layout instead of detecting it.
        media: folder that the paths of a sample file are relative to, instead of the file's own.

    Raises:
        InputError: the data cannot be used as a whole.
    """
    known = [*_LOADERS, "samples-file"]
    if layout is not None and layout not in known:
        raise InputError(f"unknown layout {layout!r}; expected {', '.join(known)}")
    if data is None:
        if layout is not None:
            raise InputError(f"the layout {layout} says how --data is to be read; give --data, or leave it out")
        found = _videos_only(videos)
    else:
        found = _loaded(data, track, layout, media)
    return found.with_domains_of_ids() if track == "quality" else found


def _loaded(data: Path, track: str, layout: str | None, media: Path | None) -> Benchmark:
    if layout is None:
        layout = (
            "pai-g" if track == "quality" and data.is_dir() and any(data.glob(_PROMPT_FILES)) else detect_layout(data)
        )
    if layout == "samples-file":
        return load_samples_file(data / "samples.jsonl" if data.is_dir() else data, media=media)
    return _LOADERS[layout](data)


def bare_member(track: str) -> str:
    """Member of a video that is named by the id alone: the original caption, or the seed ``default``."""
    return "0" if track == "control" else "default"


def _videos_only(videos: Path) -> Benchmark:
    readings = (split_name(path.stem, None, bare_member="") for path in list_videos(videos))
    ids = sorted({reading[0] for reading in readings if reading is not None})
    samples = tuple(Sample(id=name) for name in ids)
    return Benchmark("videos-only", videos, samples, has_domains=False)


def _named_videos(folder: Path, rejected: list[Rejected]) -> list[Path]:
    """The videos in ``folder`` that can be samples: their names are text."""
    files = list_videos(folder)
    named = [path for path in files if is_unicode(path.name)]
    message = "the file name is not UTF-8 text and can be no id; rename the file"
    rejected += [
        Rejected(shown_name(path), Rejection.MALFORMED_RECORD, message) for path in files if not is_unicode(path.name)
    ]
    return named


def _load_references(root: Path) -> Benchmark:
    rejected: list[Rejected] = []
    files = _named_videos(root, rejected)
    twice = [stem for stem, count in Counter(path.stem for path in files).items() if count > 1]
    if twice:
        raise InputError(f"{root} holds more than one reference video named {twice[0]}; keep one of each name")
    samples = tuple(
        Sample(id=path.stem, reference=path, **signals_of(root, path.stem)._asdict())
        for path in sorted(files, key=lambda path: path.stem)
    )
    return Benchmark("references", root, samples, tuple(rejected), has_domains=False)


class Signals(NamedTuple):
    """Maps that were given beside a clip."""

    depth: Path | None
    masks: Path | None


def signals_of(root: Path, stem: str) -> Signals:
    """Depth maps and segmentation of the clip ``stem``, where they lie in the public layout under ``root``."""
    depth = root / "depth_npzs" / f"{stem}.npz"
    masks = (
        root / "masks" / f"{stem}.masks.json",
        root / "sam2_pkls" / f"{stem}.pkl",
        root / "segmentation" / f"{stem}.pkl",
    )
    return Signals(
        depth if is_file(depth) else None,
        next((path for path in masks if is_file(path)), None),
    )


# --- PAI-Bench-C ---------------------------------------------------------------------------------------------------


def _load_pai_c(root: Path) -> Benchmark:
    rejected: list[Rejected] = []
    domains = _metadata_domains(root / "metadata.csv", rejected)
    ids = sorted({path.stem for path in _named_videos(root / "videos", rejected)} | {*domains})
    return Benchmark(
        "pai-c", root, tuple(_pai_c_sample(root, name, domains, rejected) for name in ids), tuple(rejected)
    )


def _pai_c_sample(root: Path, name: str, domains: dict[str, str | None], rejected: list[Rejected]) -> Sample:
    reference = root / "videos" / f"{name}.mp4"
    captions = (_caption(root / "captions" / f"{name}{part}.json", rejected) for part in _caption_parts())
    present = tuple(caption for caption in captions if caption is not None)
    controls = {signal: root / folder / f"{name}.mp4" for signal, folder in _CONTROL_FOLDERS.items()}
    return Sample(
        id=name,
        domain=domains.get(name),
        prompt=present[0] if present else None,
        captions=present,
        reference=reference if is_file(reference) else None,
        controls={signal: path for signal, path in controls.items() if is_file(path)},
        **signals_of(root, name)._asdict(),
    )


def _caption_parts() -> tuple[str, ...]:
    return ("", *(f"_caption{k}" for k in range(1, _VARIANTS + 1)))


def read_caption(path: Path) -> str | None:
    """The caption in ``path``, ``None`` when there is no such file or it does not hold exactly one.

    Raises:
        InputError: it is no JSON.
    """
    return _caption(path, [])


def _caption(path: Path, rejected: list[Rejected]) -> str | None:
    if not is_file(path):
        return None
    content = _read_json(path)
    only = next(iter(content.values())) if isinstance(content, dict) and len(content) == 1 else None
    if isinstance(only, str) and is_unicode(only):
        return only
    expected = "a JSON object with exactly one entry whose value is the caption"
    rejected.append(Rejected(path.name, Rejection.MALFORMED_RECORD, f"expected {expected}"))
    return None


def _metadata_domains(path: Path, rejected: list[Rejected]) -> dict[str, str | None]:
    """Id -> domain from the index; the id column is ``id``, ``task_id`` or ``video_id``, a domain is optional."""
    if not is_file(path):
        return {}
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            column = next((name for name in ("id", "task_id", "video_id") if name in (reader.fieldnames or ())), None)
            found = [] if column is None else [(row[column], row.get("domain") or None) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"the index {path} cannot be read as CSV: {error}") from error
    if column is None:
        message = f"no column id, task_id or video_id among {reader.fieldnames}; the index is not used"
        rejected.append(Rejected(path.name, Rejection.MALFORMED_RECORD, message))
    outside = [name for name, _ in found if name and beside(path.parent, name) is None]
    message = "the id names files outside of the data folder; ids are plain relative names"
    rejected += [Rejected(f"{path.name} id {name!r}", Rejection.MALFORMED_RECORD, message) for name in outside]
    return {name: domain for name, domain in found if name and name not in outside}


# --- PAI-Bench-G ---------------------------------------------------------------------------------------------------


def _load_pai_g(data: Path) -> Benchmark:
    """The samples of a folder with one prompt file, or of the prompt file itself."""
    root = data.parent if data.is_file() else data
    files = [data] if data.is_file() else sorted(root.glob(_PROMPT_FILES))
    if len(files) != 1:
        found = ", ".join(path.name for path in files) or "none"
        raise InputError(
            f"{root} must hold exactly one prompt file {_PROMPT_FILES}; found {found}. Give the file itself as --data"
        )
    content = _read_json(files[0])
    if not isinstance(content, list):
        raise InputError(f"{files[0]} must be a JSON list of objects with video_id and prompt_en")
    samples: dict[str, Sample] = {}
    rejected: list[Rejected] = []
    for number, entry in enumerate(content):
        where = f"{files[0].name} entry {number}"
        sample = _pai_g_sample(root, entry, where, rejected)
        if sample is None:
            continue
        if sample.id in samples:
            rejected.append(
                Rejected(where, Rejection.DUPLICATE_ID, f"video_id {sample.id!r} came before; the first is kept")
            )
        else:
            samples[sample.id] = sample
    return Benchmark("pai-g", root, tuple(samples[name] for name in sorted(samples)), tuple(rejected))


def _pai_g_sample(root: Path, entry: Any, where: str, rejected: list[Rejected]) -> Sample | None:
    if not isinstance(entry, dict) or not isinstance(entry.get("video_id"), str) or not entry["video_id"]:
        rejected.append(Rejected(where, Rejection.MALFORMED_RECORD, "expected an object with a text video_id"))
        return None
    if not is_unicode(entry):
        message = "a text holds half of a surrogate pair, which is no character"
        rejected.append(Rejected(where, Rejection.MALFORMED_RECORD, message))
        return None
    name, prompt, image = entry["video_id"], entry.get("prompt_en"), entry.get("image_name")
    reference = _real_video(root, name)
    signals = Signals(None, None) if reference is None else signals_of(root, name)
    picture = beside(root / "condition_image", image) if isinstance(image, str) else None
    return Sample(
        id=name,
        prompt=prompt if isinstance(prompt, str) else None,
        condition_image=picture,
        reference=reference,
        depth=signals.depth,
        masks=signals.masks,
        extra={key: value for key, value in entry.items() if key not in {"video_id", "prompt_en", "image_name"}},
    )


def _real_video(root: Path, name: str) -> Path | None:
    """The real video of a sample, where it lies as in the conditional benchmark."""
    path = beside(root / "videos", f"{name}.mp4")
    return path if path is not None and is_file(path) else None


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read as JSON: {error}") from error


_LOADERS = {"pai-c": _load_pai_c, "pai-g": _load_pai_g, "references": _load_references}
