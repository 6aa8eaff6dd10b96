"""Broken twins: what each flaw changes, as a plan that the renderer follows.

A plan says which moment each frame shows, which laws hold, and what is done to the picture or to the signals. A flaw
turns the clean plan into a broken one, the more so the larger its strength in (0, 1].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gen_eval.scenes.world import Array, Scene, generator


@dataclass(frozen=True)
class Plan:
    """How a scene of T frames is shown.

    Attributes:
        times: (T,) seconds from the start at which the frames are due.
        order: (T,) which of these moments each frame shows.
        gravity: pull, 1 is right.
        jump: displacement of the main body in scene units, from frame ``jump_at`` on.
        jump_at: frame; ``None`` for no jump.
        absent_from: frame from which the main body is gone; ``None`` for never.
        camera: (T, 2) whole pixels (columns, rows) by which the picture is moved.
        gain: (T,) factor on the brightness.
        hue: (T,) how far the main body's colour has turned, 0..1.
        noise: standard deviation of pixel noise in gray levels.
        blur: standard deviation of a Gaussian blur, as a share of the picture's shorter side.
        erosion: share of an object's inner radius that its mask loses.
        depth_noise: standard deviation of the logarithm of a factor on the depth.
    """

    times: Array
    order: NDArray[np.int64]
    camera: NDArray[np.int64]
    gain: Array
    hue: Array
    gravity: float = 1.0
    jump: float = 0.0
    jump_at: int | None = None
    absent_from: int | None = None
    noise: float = 0.0
    blur: float = 0.0
    erosion: float = 0.0
    depth_noise: float = 0.0

    @classmethod
    def clean(cls, times: Array) -> Plan:
        """Everything as it should be."""
        count = len(times)
        zero = np.zeros(count)
        return cls(times, np.arange(count), np.zeros((count, 2), dtype=np.int64), np.ones(count), zero)

    @property
    def shown_times(self) -> Array:
        """(T,) moment of the simulation that each frame shows, seconds."""
        return self.times[self.order]


@dataclass(frozen=True)
class Case:
    """What a flaw may look at.

    Attributes:
        scene: the scene that is broken.
        strength: in (0, 1].
        size: height and width of the picture in pixels.
        rng: generator of this flaw on this scene, equal for every strength.
    """

    scene: Scene
    strength: float
    size: tuple[int, int]
    rng: np.random.Generator


@dataclass(frozen=True)
class Flaw:
    """One way to break a scene.

    Attributes:
        name: as given to ``render``.
        breaks: what is wrong, in one line.
        kind: ``physics`` changes what happens, ``appearance`` how it looks, ``signal`` only the depth maps or masks
            that come with the clip.
        apply: clean plan -> broken plan.
    """

    name: str
    breaks: str
    kind: Literal["physics", "appearance", "signal"]
    apply: Callable[[Plan, Case], Plan]


def _strike(plan: Plan, case: Case, share: float) -> int:
    """The frame at ``share`` of the time in which a flaw would be seen; never the first one."""
    end = float(plan.times[-1])
    start, stop = (min(moment, end) for moment in case.scene.strike)
    return max(1, int(np.searchsorted(plan.times, start + share * (stop - start) - 1e-9)))


def _teleport(plan: Plan, case: Case) -> Plan:
    at = _strike(plan, case, 0.5)
    if at >= len(plan.times):
        return plan
    x = case.scene.simulate(plan.times[at : at + 1]).centre[case.scene.main, 0, 0]
    way = -1.0 if x > 0 else 1.0  # towards the farther side, so that it stays in view
    return replace(plan, jump=way * (0.2 + 0.35 * case.strength), jump_at=at)


def _wrong_gravity(plan: Plan, case: Case) -> Plan:
    return replace(plan, gravity=1.0 - 0.85 * case.strength)


def _vanish(plan: Plan, case: Case) -> Plan:
    return replace(plan, absent_from=_strike(plan, case, 1.0 - 0.7 * case.strength))


def _reversed(plan: Plan, case: Case) -> Plan:
    turned = max(2, round(case.strength * len(plan.order)))  # from the start on, where something moves in every scene
    return replace(plan, order=np.concatenate([plan.order[:turned][::-1], plan.order[turned:]]))


def _freeze(plan: Plan, case: Case) -> Plan:
    last = _strike(plan, case, 0.95 - 0.8 * case.strength)
    return replace(plan, order=np.minimum(plan.order, last))


def _frame_drop(plan: Plan, case: Case) -> Plan:
    count = len(plan.order)
    if count < 2:
        return plan
    share = max(1, round(0.7 * case.strength * (count - 1)))
    first = min(_strike(plan, case, 0.5), count - 1)  # a frame whose loss is seen even if most of the clip is at rest
    dropped = np.array([first, *(frame for frame in 1 + case.rng.permutation(count - 1) if frame != first)])[:share]
    kept = plan.order.copy()
    kept[dropped] = 0
    return replace(plan, order=np.maximum.accumulate(kept))


def _flicker(plan: Plan, case: Case) -> Plan:
    depth = case.rng.uniform(0.5, 1.0, len(plan.times)) * (np.arange(len(plan.times)) % 2)
    return replace(plan, gain=1.0 - 0.45 * case.strength * depth)


def _noise(plan: Plan, case: Case) -> Plan:
    return replace(plan, noise=40.0 * case.strength)


def _blur(plan: Plan, case: Case) -> Plan:
    return replace(plan, blur=0.025 * case.strength)


def _pixels(case: Case, share: float) -> float:
    return share * case.strength * min(case.size)


def _shift(plan: Plan, case: Case) -> Plan:
    return replace(plan, camera=np.full_like(plan.camera, int(np.ceil(_pixels(case, 0.06)))))


def _jitter(plan: Plan, case: Case) -> Plan:
    moves = case.rng.uniform(-1.0, 1.0, plan.camera.shape)
    away = np.ceil(np.abs(moves) * _pixels(case, 0.05)) * np.sign(moves)
    return replace(plan, camera=away.astype(np.int64))


def _colour_shift(plan: Plan, case: Case) -> Plan:
    count = len(plan.times)
    return replace(plan, hue=case.strength * np.arange(count) / max(count - 1, 1))


def _mask_erosion(plan: Plan, case: Case) -> Plan:
    return replace(plan, erosion=0.7 * case.strength)


def _depth_noise(plan: Plan, case: Case) -> Plan:
    return replace(plan, depth_noise=0.4 * case.strength)


_ALL = (
    Flaw("teleport", "the main object is somewhere else from one frame to the next", "physics", _teleport),
    Flaw("wrong_gravity", "things weigh too little: they fall slowly or leave the floor", "physics", _wrong_gravity),
    Flaw("vanish", "the main object ceases to exist and does not come back", "physics", _vanish),
    Flaw("reversed", "the first part of the clip (all of it at full strength) runs backwards", "physics", _reversed),
    Flaw("freeze", "all motion stops at once, before it should", "physics", _freeze),
    Flaw("frame_drop", "frames are lost and the one before is shown in their place", "appearance", _frame_drop),
    Flaw("flicker", "every other frame is darker", "appearance", _flicker),
    Flaw("noise", "every pixel of every frame is noisy", "appearance", _noise),
    Flaw("blur", "the picture is out of focus", "appearance", _blur),
    Flaw("shift", "the whole picture is displaced", "appearance", _shift),
    Flaw("jitter", "the camera shakes", "appearance", _jitter),
    Flaw("colour_shift", "the main object's colour turns into another one", "appearance", _colour_shift),
    Flaw("mask_erosion", "the masks that come with the clip are too small", "signal", _mask_erosion),
    Flaw("depth_noise", "the depth maps that come with the clip are noisy", "signal", _depth_noise),
)

FLAWS: Mapping[str, Flaw] = {flaw.name: flaw for flaw in _ALL}
"""Every flaw by name."""


def plan_of(scene: Scene, times: Array, size: tuple[int, int], flaw: str | None, strength: float) -> Plan:
    """The plan for ``scene`` with one flaw (``None`` for the clean scene).

    Raises:
        ValueError: there is no such flaw, or the strength is not in (0, 1].
    """
    plan = Plan.clean(times)
    if flaw is None:
        return plan
    if flaw not in FLAWS:
        raise ValueError(f"there is no flaw {flaw!r}; there are {', '.join(FLAWS)}")
    if not 0 < strength <= 1:
        raise ValueError(f"the strength of a flaw must be above 0 and at most 1, not {strength}")
    return FLAWS[flaw].apply(plan, Case(scene, strength, size, generator(f"{flaw} {scene.kind}", scene.seed)))


def noise_generator(scene: Scene, purpose: str) -> np.random.Generator:
    """The generator of pixel or depth noise of a scene; equal for every strength, so that noise only grows."""
    return generator(f"{purpose} noise {scene.kind}", scene.seed)
