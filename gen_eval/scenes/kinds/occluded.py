"""A car that drives past behind a wall and comes out on the other side."""

from __future__ import annotations

import numpy as np

from gen_eval.scenes.asking import choice, yes_no
from gen_eval.scenes.clip import Question
from gen_eval.scenes.kinds.colliding import LIFT
from gen_eval.scenes.world import DARK, Array, Body, Colour, Draw, Ellipse, Motion, Part, Polygon, Scene, box

DOMAIN = "av"
_GLASS: Colour = (178, 206, 222)


def _car(name: str, colour: Colour, half: float, side: float) -> Body:
    """A car of half length ``half`` that faces ``side``; its centre is the middle of its hull."""
    wheel = 0.24 * half

    def way(*points: tuple[float, float]) -> tuple[tuple[float, float], ...]:
        return tuple((side * x * half, y * half) for x, y in points)

    hull = Polygon(way((-1.0, -0.22), (1.0, -0.22), (1.0, 0.1), (0.62, 0.26), (-1.0, 0.26)))
    cabin = Polygon(way((-0.72, 0.22), (0.5, 0.22), (0.2, 0.62), (-0.55, 0.62)))
    window = Polygon(way((-0.55, 0.28), (0.32, 0.28), (0.12, 0.54), (-0.45, 0.54)))
    wheels = [Part(Ellipse((wheel, wheel), (x * half, -0.22 * half)), "wheel", DARK) for x in (-0.58, 0.58)]
    parts = (Part(hull), Part(cabin), Part(window, "flat", _GLASS), *wheels)
    return Body(name, colour, parts, shadow=half, base=0.22 * half + wheel)


def build(seed: int) -> Scene:
    """Uniform motion on the floor; a wall that is nearer to the eye hides the middle of the way."""
    draw = Draw(seed, "occluded")
    ((colour, rgb),) = draw.colours(1)
    side = draw.sign()
    half = draw.uniform("half", 0.14, 0.18)
    wall = draw.uniform("wall", 0.19, 0.26)
    wall = draw.values["wall"] = max(wall, half + 0.06)
    height = draw.uniform("height", 0.42, 0.58)
    middle = draw.uniform("middle", -0.05, 0.05)
    start = -side * draw.uniform("start", 0.62, 0.7)
    speed = side * draw.uniform("speed", 0.68, 0.8)
    gravity = draw.gravity(4.0, 6.0)
    car = _car(f"{colour} car", rgb, half, side)
    block = Body("stone wall", (150, 140, 132), (Part(box(wall, height / 2), "crate"),), 0.58)
    ahead = side * (middle - start)
    hidden = draw.values["hidden"] = (ahead - (wall - half)) / abs(speed)
    out = draw.values["out"] = (ahead + (wall - half)) / abs(speed)
    wheel = 0.24 * half

    def move(times: Array, pull: float) -> Motion:
        x = start + speed * times
        lifted = 0.5 * LIFT * (1 - pull) * gravity * times**2
        zero = np.zeros_like(times)
        return Motion.of([(x, car.base + lifted), (middle, height / 2 - 0.07)], times, [-(x - start) / wheel, zero])

    def ask(times: Array) -> list[Question]:
        covered = bool(np.any((times >= hidden) & (times <= out)))
        back = covered and bool(times[-1] > out)
        near = choice(
            "nearer",
            "Which object is nearer to the camera?",
            [f"the {car.name}", "the stone wall"],
            "the stone wall",
            "Space: relationship",
            turn=seed,
        )
        text = f"Is the {car.name} out of sight behind the stone wall at some moment?"
        questions = [near, yes_no("hidden", text, covered, "Physics: object permanence")]
        if covered:
            text = f"Does the {car.name} come into sight again on the far side of the stone wall?"
            questions.append(yes_no("returns", text, back, "Physics: object permanence"))
        return questions

    prompt = f"A {colour} car drives at constant speed behind a stone wall and comes out on the other side."
    captions = (
        f"Seen from the side, a {colour} car passes behind a wall of stone and appears again.",
        f"A stone wall stands in the middle; a {colour} car is hidden by it for a moment as it drives past.",
        f"A {colour} car crosses the picture, out of sight for a while behind a stone wall.",
        f"The camera stands still while a {colour} car rolls by behind a low stone wall.",
        f"A {colour} car vanishes from view behind masonry and returns at the far end.",
    )
    return Scene(
        "occluded",
        seed,
        DOMAIN,
        (car, block),
        0,
        move,
        (0.0, hidden),
        draw.values,
        prompt,
        captions,
        ask,
        reversible=True,
    )
