"""What a manifest says of metrics, samples and files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from api.services.request import ScoreRequest
from gen_eval.features.plan import Plan
from gen_eval.media import sha256_file
from gen_eval.records import Generation, Group, digest_of

_PACKAGES = ("av", "numpy", "opencv-python-headless", "scipy", "pycocotools")

Progress = Callable[[str, int, int], None]
"""Called with a label, how many are done, and how many there are."""


def silent(_label: str, _done: int, _total: int) -> None:
    """Progress that nobody watches."""


def environment() -> dict[str, str]:
    """Versions of everything outside this project that moves a score."""
    import av

    libavcodec = ".".join(str(part) for part in av.library_versions["libavcodec"])
    return {"libavcodec": libavcodec, **{package: version(package) for package in _PACKAGES}}


def metric_names(plan: Plan) -> list[str]:
    """The metrics of ``plan``, sorted."""
    return sorted({measurement.metric.name for measurement in plan.measurements})


def metric_entries(plan: Plan) -> dict[str, Any]:
    """Metric -> version, digests of its protocols, and how members enter their means."""
    entries: dict[str, Any] = {}
    for measurement in plan.measurements:
        metric = measurement.metric
        entry = entries.setdefault(metric.name, {"version": metric.version, "protocols": {}, "members": {}})
        entry["protocols"].update({protocol.name: protocol.digest for protocol in measurement.protocols})
        rules = {protocol.name: protocol.aggregate.get("members", "sample_first") for protocol in measurement.protocols}
        entry["members"].update(rules)
        for protocol in measurement.protocols:
            if beside := protocol.aggregate.get("beside"):
                entry.setdefault("beside", {})[protocol.name] = list(beside)
            if clips := protocol.aggregate.get("caption_clips"):
                entry.setdefault("caption_clips", {})[protocol.name] = clips
    return entries


class Digests:
    """SHA-256 of files, each read once, with progress."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0
        self._known: dict[Path, str | None] = {}

    def of(self, path: Path | None) -> str | None:
        """Digest of ``path``; ``None`` when there is no such file or it cannot be read."""
        if path is None:
            return None
        if path not in self._known:
            try:
                self._known[path] = sha256_file(path)
            except OSError:
                self._known[path] = None
        return self._known[path]

    def step(self) -> None:
        """One more file is done."""
        self._done += 1
        self._progress("reading files", min(self._done, self._total), self._total)


def with_digests(group: Group, digests: Digests) -> Group:
    """``group`` with the digests of its videos."""
    members = (replace(member, sha256=digests.of(member.path)) for member in group.members)
    return replace(group, members=tuple(members))


def sample_entry(group: Group, digests: Digests, request: ScoreRequest, root: Path) -> dict[str, Any]:
    """Id, domain, digest of the prompt, and every file of a sample and its members."""
    sample = group.sample
    entry = {
        "id": sample.id,
        "domain": sample.domain,
        "prompt": None if sample.prompt is None else digest_of(sample.prompt),
        **{name: _file_entry(getattr(sample, name), root, digests) for name in _sample_files(request.track)},
        "members": [_member_entry(member, request, digests) for member in group.members],
    }
    digests.step()
    return entry


def _sample_files(track: str) -> Sequence[str]:
    return ("reference", "depth", "masks") if track == "control" else ("condition_image",)


def _file_entry(path: Path | None, root: Path, digests: Digests) -> dict[str, Any] | None:
    return None if path is None else {"path": _relative(path, root), "sha256": digests.of(path)}


def _member_entry(member: Generation, request: ScoreRequest, digests: Digests) -> dict[str, Any]:
    digests.step()
    entry: dict[str, Any] = {
        "id": member.member,
        "path": None if member.path is None else member.path.name,
        "sha256": digests.of(member.path),
        "problem": member.problem,
    }
    if request.track == "control":
        entry |= {"depth": digests.of(member.depth), "masks": digests.of(member.masks)}
    return entry


def _relative(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
