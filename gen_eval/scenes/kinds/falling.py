"""An object dropped from a height, which stays where it lands."""

from __future__ import annotations

import numpy as np

from gen_eval.scenes.asking import yes_no
from gen_eval.scenes.clip import Question
from gen_eval.scenes.world import Array, Draw, Motion, Scene, ball, crate

DOMAIN = "physics"


def build(seed: int) -> Scene:
    """Free fall: y = y0 - g t^2 / 2 down to the floor, without bounce; a small constant sideways speed in the air."""
    draw = Draw(seed, "falling")
    ((colour, rgb),) = draw.colours(1)
    size = draw.uniform("size", 0.08, 0.13)
    noun = "crate" if draw.rng.integers(2) else "ball"
    body = crate(f"{colour} crate", rgb, size, size) if noun == "crate" else ball(f"{colour} ball", rgb, size)
    gravity = draw.gravity(3.0, 6.0)
    start, top = draw.uniform("start", -0.45, 0.45), draw.uniform("top", 0.62, 0.8)
    speed = -np.sign(start) * draw.uniform("drift", 0.0, 0.12)
    draw.values["sideways_speed"] = speed
    landing = draw.values["landing"] = float(np.sqrt(2 * (top - size) / gravity))

    def move(times: Array, pull: float) -> Motion:
        end = landing / np.sqrt(pull)
        fallen = np.minimum(times, end)
        x = start + speed * fallen
        y = np.where(times < end, top - 0.5 * pull * gravity * times**2, size)
        return Motion.of([(x, y)], times, [np.zeros_like(times)])

    def ask(times: Array) -> list[Question]:
        lands = bool(times[-1] >= landing)
        return [
            yes_no("lands", f"Does the {body.name} reach the floor?", lands, "Time: actions"),
            yes_no("bounces", f"Does the {body.name} bounce back up from the floor?", False, "Physics: states"),
        ]

    prompt = f"A {noun} painted {colour} is let go high above a tiled floor, drops faster and faster and lies still."
    captions = (
        f"Seen from the side, a {colour} {noun} falls to the floor of an empty room and stays where it lands.",
        f"In front of a pale wall a {colour} {noun} drops from a height without bouncing.",
        f"A room with a tiled floor; a {colour} {noun} is released in the air, falls and comes to rest.",
        f"The camera does not move while a {colour} {noun} plunges to the ground.",
        f"A single {colour} {noun} falls freely and then rests on the tiles.",
    )
    return Scene(
        "falling", seed, DOMAIN, (body,), 0, move, (0.0, landing), draw.values, prompt, captions, ask, reversible=False
    )
