"""What is asked for: a folder of videos, the data, metrics and protocol, and what would make no sense."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gen_eval.data.naming import is_unicode
from gen_eval.protocols import published_table
from gen_eval.records import InputError

Track = Literal["quality", "control"]


@dataclass(frozen=True)
class ScoreRequest:
    """What is to be scored, and how. Only ``workers``, ``threads``, ``attempts`` and ``shard`` do not move a score.

    Attributes:
        track: ``quality`` or ``control``.
        videos: folder of the generated videos.
        data: benchmark folder or sample file; ``None`` when the videos are all there is.
        media: folder that the paths of a sample file are relative to.
        layout: take ``data`` as this layout.
        signals: folder with depth maps and segmentation of the generated clips.
        model: label; :func:`label_of` the folder by default.
        metrics: names; all of the track by default.
        protocol: the protocol that was asked for.
        preset: what the metrics are shown; the track's own by default.
        seeds: members that every sample is expected to have.
        domains: only samples of these.
        limit: only the first samples.
        chunk: frames of each member that are held at a time, and that a network is given at a time.
        device: where networks run: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
        dtype: number format of networks: ``float32``, ``bfloat16`` or ``float16``.
        compile: whether networks go through ``torch.compile``.
        condition: what the generator was given besides the prompt, one of the benchmark's ``conditions``; ``None`` when
            nobody said.
    """

    track: Track
    videos: Path
    data: Path | None = None
    media: Path | None = None
    layout: str | None = None
    signals: Path | None = None
    model: str | None = None
    metrics: tuple[str, ...] | None = None
    protocol: str = "corrected"
    preset: str | None = None
    seeds: tuple[str, ...] | None = None
    domains: tuple[str, ...] | None = None
    limit: int | None = None
    chunk: int = 8
    device: str = "auto"
    dtype: str = "float32"
    compile: bool = False
    condition: str | None = None


def check_request(request: ScoreRequest) -> None:
    """Refuse what would otherwise be taken for "everything" or "nothing", or could not be written down."""
    for name in ("metrics", "seeds", "domains"):
        if getattr(request, name) == ():
            raise InputError(f"--{name} names nothing; name at least one, or leave the option out")
        if twice := [one for one, count in Counter(getattr(request, name) or ()).items() if count > 1]:
            raise InputError(f"--{name} names {twice[0]} more than once; name each of them once")
    condition_entry(request.track, request.condition)
    texts = [request.model or label_of(request.videos), *(request.seeds or ()), *(request.domains or ())]
    if strange := [text for text in texts if not is_unicode(text)]:
        raise InputError(f"{strange[0]!a} is no UTF-8 text; give another name (--model labels the videos)")


def condition_entry(track: str, condition: str | None) -> dict[str, Any]:
    """What a manifest says of the condition; nothing where the benchmark has none.

    Raises:
        InputError: the benchmark has no such condition.

    Example:
        >>> condition_entry("control", "edge"), condition_entry("quality", None)
        ({'condition': 'edge'}, {})
    """
    table = published_table(track)
    known = () if table is None else table.conditions
    if condition is not None and condition not in known:
        expected = f"expected {', '.join(known)}" if known else f"the {track} track has none"
        raise InputError(f"unknown condition {condition!r}; {expected}")
    return {"condition": condition} if known else {}


def condition_hint(request: ScoreRequest) -> str:
    """What to say when a folder is called like a condition and nobody said one; empty otherwise. Nothing is guessed."""
    table, folder = published_table(request.track), request.videos.resolve()
    names = (folder.parent.name if folder.name == "videos" else "", folder.name)
    given = next((name for name in names if table is not None and name in table.conditions), None)
    if given is None or request.condition is not None:
        return ""
    labelled = "" if request.model is not None else " --model NAME"
    return f"if {given} is what the generator was given, say so: --condition {given}{labelled}; it is not recorded now"


def label_of(videos: Path) -> str:
    """Label of a model whose videos lie in ``videos``: the folder's name, or of the one above when that is ``videos``.

    Example:
        >>> label_of(Path("/data/my-model/videos")), label_of(Path("/data/my-model"))
        ('my-model', 'my-model')
    """
    folder = videos.resolve()
    return (folder.parent.name if folder.name == "videos" else "") or folder.name
