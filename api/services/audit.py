"""Breaking scenes in known ways, and checking that each metric sees what it must see."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import control_metrics
from api.services.facts import facts_of
from api.services.manifest_entries import Progress, silent
from gen_eval.quality import (
    background_consistency,
    i2v_background,
    i2v_subject,
    subject_consistency,
    temporal_flickering,
)
from gen_eval.records import MetricResult, Status
from gen_eval.registry import names
from gen_eval.scenes import KINDS, SceneClip, render
from gen_eval.scenes.flaw_table import FLAW_TABLE, FULL_STRENGTH, Effect

_SIZE, _FPS, _FRAMES = (48, 84), 8.0, 12

_SCORED: Mapping[str, Callable[[SceneClip, SceneClip], MetricResult]] = {
    "blur_ssim": lambda clip, clean: control_metrics.blur_ssim(clip.frames, clean.frames),
    "edge_f1": lambda clip, clean: control_metrics.edge_f1(clip.frames, clean.frames),
    "depth_si_rmse": lambda clip, clean: control_metrics.depth_si_rmse(clip.depth, clean.depth),
    "mask_miou": lambda clip, clean: control_metrics.mask_miou(clip.masks, clean.masks),
    "diversity": lambda clip, clean: control_metrics.diversity([clip.frames, clean.frames]),
    "temporal_flickering": lambda clip, clean: temporal_flickering(clip.frames),
    "subject_consistency": lambda clip, clean: subject_consistency(clip.frames),
    "background_consistency": lambda clip, clean: background_consistency(clip.frames),
    "i2v_subject": lambda clip, clean: i2v_subject(clip.frames, clean.frames[0]),
    "i2v_background": lambda clip, clean: i2v_background(clip.frames, clean.frames[0]),
}
"""Metrics that are asked. Those whose networks are not here are left out; the two of motion need larger scenes."""


def audit_metrics(
    kinds: tuple[str, ...] = ("bouncing", "occluded"), progress: Progress = silent
) -> list[dict[str, Any]]:
    """Every promise of the flaw table, tried on scenes of ``kinds`` at full strength.

    Returns:
        One entry a kind, flaw and metric: the score of the clean and of the broken twin, both against the clean clip,
        what was expected, what was seen.

    Raises:
        ValueError: there is no such kind.
    """
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise ValueError(f"there is no kind of scene {', '.join(unknown)}; there are {', '.join(KINDS)}")
    lines: list[dict[str, Any]] = []
    for kind in kinds:
        clean = _clip(kind, None)
        before = {name: result for name, result in _of(clean, clean, _SCORED) if result.status is not Status.SKIPPED}
        for done, (flaw, promised) in enumerate(FLAW_TABLE.items(), start=1):
            promises = {**promised, **FULL_STRENGTH.get(flaw, {})}
            wanted = {name: effect for name, effect in promises.items() if name.partition(".")[0] in before}
            after = dict(_of(_clip(kind, flaw), clean, {name.partition(".")[0] for name in wanted}))
            lines += [_line(kind, flaw, name, before, after, effect) for name, effect in wanted.items()]
            progress(f"breaking {kind}", done, len(FLAW_TABLE))
    return lines


def not_audited(lines: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Metrics that ``lines`` say nothing about, and why."""
    asked = {line["metric"].partition(".")[0] for line in lines}
    return {
        name: "the weights of its networks are not here" if name in _SCORED else "no scene of the audit is made for it"
        for name in names("gen_eval.metrics")
        if name not in asked
    }


def _of(clip: SceneClip, clean: SceneClip, metrics: Iterable[str]) -> Iterator[tuple[str, MetricResult]]:
    for name in sorted(metrics):
        yield name, _SCORED[name](clip, clean)


def _clip(kind: str, flaw: str | None) -> SceneClip:
    return render(kind, size=_SIZE, fps=_FPS, frames=_FRAMES, flaw=flaw)


def _line(
    kind: str,
    flaw: str,
    name: str,
    before: Mapping[str, MetricResult],
    after: Mapping[str, MetricResult],
    expected: Effect,
) -> dict[str, Any]:
    clean, broken = _number(before, name), _number(after, name)
    gain = (broken - clean) * (1 if facts_of(name.partition(".")[0]).higher_is_better else -1)
    seen = Effect.EQUAL if abs(gain) <= 1e-12 else Effect.WORSE if gain < 0 else Effect.BETTER
    return {
        "kind": kind,
        "flaw": flaw,
        "metric": name,
        "clean": clean,
        "broken": broken,
        "expected": str(expected),
        "seen": str(seen),
        "as_expected": seen is expected,
    }


def _number(results: Mapping[str, MetricResult], name: str) -> float:
    metric, _, part = name.partition(".")
    value = results[metric].values[part] if part else float(results[metric])
    assert value is not None, f"{name} has no value on a scene"
    return value
