"""From a kind of scene and a seed to a clip."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import cv2
import numpy as np
from numpy.typing import NDArray

from gen_eval.scenes.backdrop import Backdrop
from gen_eval.scenes.clip import Question, SceneClip, Track
from gen_eval.scenes.coverage import Camera
from gen_eval.scenes.flaws import Plan, noise_generator, plan_of
from gen_eval.scenes.kinds import BUILDERS
from gen_eval.scenes.painting import Painted, Painter, Pose
from gen_eval.scenes.questions import questions_of
from gen_eval.scenes.signals import eroded, outlines
from gen_eval.scenes.world import Motion, Scene, generator

MIN_SIDE = 16
_SENSOR_NOISE = 1.2  # gray levels; what tells two seeds of one sample apart, beside a shift below half a pixel
_SUBPIXEL = 0.35


def scene(kind: str, seed: int = 0) -> Scene:
    """Draw one scene, without rendering it: bodies, exact motion, wording.

    Raises:
        ValueError: there is no such kind, or the seed is negative.
    """
    if kind not in BUILDERS:
        raise ValueError(f"there is no kind of scene {kind!r}; there are {', '.join(BUILDERS)}")
    if seed < 0:
        raise ValueError(f"the seed of a scene must not be negative, not {seed}")
    return BUILDERS[kind](seed)


def render(
    kind: str,
    *,
    seed: int = 0,
    size: tuple[int, int] = (256, 448),
    fps: float = 24.0,
    frames: int = 49,
    flaw: str | None = None,
    strength: float = 1.0,
    variation: int | None = None,
) -> SceneClip:
    """Render one scene with all that is known about it. Equal arguments give equal bits.

    Args:
        kind: a key of ``KINDS``.
        seed: what the scene's parameters are drawn from.
        size: height and width in pixels, at least 16 each; odd sizes are fine.
        fps: frames a second; only decides at which moments the motion is shown.
        frames: how many.
        flaw: a key of ``FLAWS``; ``None`` for the clean scene.
        strength: of the flaw, in (0, 1].
        variation: another take of the same scene: a camera moved by less than half a pixel and a little sensor noise;
            ``None`` for the exact scene.

    Raises:
        ValueError: an argument is outside its range; the message names it.

    >>> clip = render("falling", seed=1, size=(48, 64), frames=3)
    >>> clip.frames.shape, clip.depth.shape, clip.masks[0][0]
    ((3, 48, 64, 3), (3, 48, 64), 'a purple crate')
    >>> clip.question("lands").answer_text
    'No'
    """
    _check(size, fps, frames, variation)
    drawn = scene(kind, seed)
    plan = plan_of(drawn, np.arange(frames) / fps, size, flaw, strength)
    shown = _shown(drawn, plan)
    phrases = [body.phrase for body in drawn.bodies if body.phrase is not None]
    video, depth = np.empty((frames, *size, 3), dtype=np.uint8), np.empty((frames, *size), dtype=np.float32)
    masks: list[NDArray[np.bool_]] = [np.empty((frames, *size), dtype=bool) for _ in phrases]
    finish = _finisher(drawn, plan, variation)
    for frame, painted in enumerate(_painted(drawn, plan, shown, size, variation)):
        video[frame], depth[frame] = finish(frame, painted.picture), painted.depth
        for whole, mask in zip(masks, painted.masks, strict=True):
            whole[frame] = mask
    return SceneClip(
        kind=kind,
        seed=seed,
        domain=drawn.domain,
        flaw=flaw,
        strength=strength if flaw is not None else 0.0,
        frames=video,
        depth=_depth(drawn, plan, depth),
        edges=outlines(masks),
        masks=list(zip(phrases, eroded(masks, plan.erosion), strict=True)),
        fps=fps,
        times=plan.times,
        prompt=drawn.prompt,
        captions=drawn.captions,
        questions=questions_of(drawn, plan, shown, flaw),
        tracks=_tracks(drawn, shown),
        parameters=dict(drawn.parameters),
    )


def questions(
    kind: str,
    *,
    seed: int = 0,
    size: tuple[int, int] = (256, 448),
    fps: float = 24.0,
    frames: int = 49,
    flaw: str | None = None,
    strength: float = 1.0,
) -> tuple[Question, ...]:
    """The questions about a clip, without rendering it; arguments and errors as in :func:`render`."""
    _check(size, fps, frames, None)
    drawn = scene(kind, seed)
    plan = plan_of(drawn, np.arange(frames) / fps, size, flaw, strength)
    return questions_of(drawn, plan, _shown(drawn, plan), flaw)


def _check(size: tuple[int, int], fps: float, frames: int, variation: int | None) -> None:
    if len(size) != 2 or min(size) < MIN_SIDE:
        raise ValueError(f"size must be (height, width) of at least {MIN_SIDE} pixels each, not {size}")
    if not (np.isfinite(fps) and fps > 0):
        raise ValueError(f"fps must be a number above 0, not {fps}")
    if frames < 1:
        raise ValueError(f"frames must be at least 1, not {frames}")
    if variation is not None and variation < 0:
        raise ValueError(f"variation must be None or at least 0, not {variation}")


def _shown(drawn: Scene, plan: Plan) -> Motion:
    """The motion as the frames show it, physical flaws included."""
    motion = drawn.simulate(plan.shown_times, gravity=plan.gravity)
    centre, present = motion.centre.copy(), motion.present.copy()
    if plan.jump_at is not None:
        centre[drawn.main, plan.jump_at :, 0] += plan.jump
    if plan.absent_from is not None:
        present[drawn.main, plan.absent_from :] = False
    return replace(motion, centre=centre, present=present)


def _tracks(drawn: Scene, shown: Motion) -> tuple[Track, ...]:
    return tuple(
        Track(body.phrase, shown.centre[index], shown.spin[index], shown.present[index])
        for index, body in enumerate(drawn.bodies)
    )


def _poses(drawn: Scene, plan: Plan, shown: Motion, frame: int) -> list[Pose | None]:
    poses: list[Pose | None] = []
    for index, body in enumerate(drawn.bodies):
        if not shown.present[index, frame]:
            poses.append(None)
            continue
        red, green, blue = (float(channel) for channel in body.colour)
        turn = float(plan.hue[frame]) if index == drawn.main else 0.0
        colour = (red + turn * (green - red), green + turn * (blue - green), blue + turn * (red - blue))
        x, y = shown.centre[index, frame]
        held = body.rope_to
        rope_end = None
        if held is not None and shown.present[held, frame]:
            rope_end = (float(shown.centre[held, frame, 0]), float(shown.centre[held, frame, 1]))
        poses.append(Pose(body, (float(x), float(y)), float(shown.spin[index, frame]), colour, rope_end))
    return poses


def _painted(
    drawn: Scene, plan: Plan, shown: Motion, size: tuple[int, int], variation: int | None
) -> Iterator[Painted]:
    """The frames, one after another. The backdrop is drawn once, with a margin for camera moves."""
    height, width = size
    margin = int(np.abs(plan.camera).max())
    offset = _offset(drawn, variation)
    wide = Camera.fitting(height, width, offset)
    wide = replace(wide, origin=(wide.origin[0] + margin, wide.origin[1] + margin))
    backdrop = Backdrop.drawn(drawn.kind, drawn.seed)
    full = (height + 2 * margin, width + 2 * margin)
    picture, far = backdrop.picture(wide, *full), backdrop.depth(wide, *full)
    painter = Painter(drawn.bodies, height, width)
    for frame, (right, down) in enumerate(plan.camera):
        rows, columns = slice(margin - down, margin - down + height), slice(margin - right, margin - right + width)
        camera = Camera.fitting(height, width, (offset[0] + float(right), offset[1] + float(down)))
        poses = _poses(drawn, plan, shown, frame)
        yield painter.paint(picture[rows, columns], far[rows, columns], poses, camera)


def _offset(drawn: Scene, variation: int | None) -> tuple[float, float]:
    if variation is None:
        return (0.0, 0.0)
    right, down = generator(f"take {drawn.kind}", drawn.seed, variation).uniform(-_SUBPIXEL, _SUBPIXEL, 2)
    return (float(right), float(down))


def _finisher(
    drawn: Scene, plan: Plan, variation: int | None
) -> Callable[[int, NDArray[np.float32]], NDArray[np.uint8]]:
    """What happens to each picture after painting, in order of time: blur, brightness, noise, rounding."""
    sensor = None if variation is None else generator(f"sensor {drawn.kind}", drawn.seed, variation)
    noise = noise_generator(drawn, "pixel") if plan.noise else None

    def finish(frame: int, picture: NDArray[np.float32]) -> NDArray[np.uint8]:
        if plan.blur:
            sigma = plan.blur * min(picture.shape[:2])
            smooth = cv2.GaussianBlur(picture, (0, 0), sigma, borderType=cv2.BORDER_REFLECT)
            picture = np.asarray(smooth, dtype=np.float32)
        if plan.gain[frame] != 1:
            picture = picture * np.float32(plan.gain[frame])
        for source, deviation in ((noise, plan.noise), (sensor, _SENSOR_NOISE)):
            if source is not None:
                picture = picture + np.float32(deviation) * source.standard_normal(picture.shape, dtype=np.float32)
        return np.clip(np.rint(picture), 0, 255).astype(np.uint8)

    return finish


def _depth(drawn: Scene, plan: Plan, depth: NDArray[np.float32]) -> NDArray[np.float32]:
    if not plan.depth_noise:
        return depth
    rough, noisy = noise_generator(drawn, "depth"), np.empty_like(depth)
    for frame, exact in enumerate(depth):
        deviation = np.float32(plan.depth_noise) * rough.standard_normal(exact.shape, dtype=np.float32)
        noisy[frame] = exact * np.exp(deviation)
    return noisy
