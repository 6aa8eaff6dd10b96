"""What this installation can do, tried and not assumed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gen_eval
from api.services.manifest_entries import environment
from gen_eval import weights
from gen_eval.networks import placement_of
from gen_eval.registry import EXTRA_OF, load, names
from gen_eval.settings import settings
from gen_eval.weights.digests import weights_folder

_TRACKS = ("quality", "control")


def diagnose() -> dict[str, Any]:
    """Versions, extras, and a few checks that are carried out; ``healthy`` is false when one fails."""
    checks = [
        _check("metrics load", _load_all("gen_eval.metrics")),
        _check("generators load", _load_all("gen_eval.generators")),
        _check("video round trip in an own process", _round_trip),
        _check("results store", _store),
    ]
    return {
        "versions": {"gen-eval": gen_eval.__version__, **environment()},
        "cores": os.cpu_count(),
        "workers": settings().workers or os.cpu_count() or 1,
        "extras": _extras(),
        "networks": _networks(),
        "checks": checks,
        "healthy": all(check["ok"] for check in checks),
    }


def _extras() -> dict[str, str]:
    states: dict[str, list[str]] = {}
    for package, extra in EXTRA_OF.items():
        absent = [] if find_spec(package) is not None else [package]
        states.setdefault(extra, []).extend(absent)
    return {
        extra: "installed" if not absent else f"absent ({', '.join(absent)}): pip install 'gen-eval[{extra}]'"
        for extra, absent in sorted(states.items())
    }


def _networks() -> dict[str, Any]:
    """Where networks would run, and which checkpoints the shipped metrics need are here; absent ones are no fault."""
    tracks: dict[str, dict[str, list[str]]] = {}
    for name in weights.checkpoint_names():
        entry = weights.checkpoint(name)
        if entry.track in _TRACKS and entry.used_by:
            track = tracks.setdefault(entry.track, {"here": [], "absent": []})
            track["absent" if weights.locate(name) is None else "here"].append(name)
    return {
        "device": placement_of(settings().device).device,
        "weights_folder": str(weights_folder()),
        "here": [name for track in tracks.values() for name in track["here"]],
        "absent": [name for track in tracks.values() for name in track["absent"]],
        "tracks": tracks,
    }


def _check(name: str, attempt: Callable[[], str]) -> dict[str, Any]:
    try:
        return {"name": name, "ok": True, "message": attempt()}
    except Exception as error:
        return {"name": name, "ok": False, "message": f"{type(error).__name__}: {error}"}


def _load_all(group: str) -> Callable[[], str]:
    def attempt() -> str:
        for name in names(group):
            load(group, name)
        return ", ".join(names(group))

    return attempt


def _round_trip() -> str:
    import numpy as np

    from gen_eval.media import read_clip, write_clip

    frames = np.random.default_rng(0).integers(0, 256, (5, 48, 64, 3), dtype=np.uint8)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "clip.mp4"
        write_clip(path, frames, 24.0, lossless=True)
        same = np.array_equal(read_clip(path).frames, frames)
    if not same:
        raise RuntimeError("a lossless clip did not come back as it was written")
    return "exact"


def _store() -> str:
    from gen_eval.records.store import Store

    with tempfile.TemporaryDirectory() as folder, Store.at(Path(folder) / "scores.sqlite") as store:
        store.add_run("0" * 64, "{}")
        return "SQLite writes and reads"
