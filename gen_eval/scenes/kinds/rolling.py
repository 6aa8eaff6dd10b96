"""A ball rolls down a ramp and on over the floor."""

from __future__ import annotations

import numpy as np

from gen_eval.scenes.asking import choice, yes_no
from gen_eval.scenes.clip import Question
from gen_eval.scenes.world import Array, Body, Draw, Motion, Part, Polygon, Scene, ball

DOMAIN = "physics"
_INERTIA = 2 / 5  # of a solid ball, in units of mass times radius squared


def build(seed: int) -> Scene:
    """Rolling without slipping: acceleration g sin(slope) / (1 + 2/5) on the ramp, then constant speed on the floor.

    The foot of the ramp guides the ball round without loss.
    """
    draw = Draw(seed, "rolling")
    ((colour, rgb),) = draw.colours(1)
    radius = draw.uniform("radius", 0.07, 0.1)
    slope = draw.uniform("slope", 0.38, 0.55)
    gravity = draw.gravity(2.5, 3.5)
    side = draw.sign()
    foot, run = draw.uniform("foot", 0.05, 0.2), draw.uniform("run", 0.78, 0.9)
    acceleration = draw.values["acceleration"] = gravity * np.sin(slope) / (1 + _INERTIA)
    rise = run * np.tan(slope)
    along, across = np.array([np.cos(slope), -np.sin(slope)]), np.array([np.sin(slope), np.cos(slope)])
    first = np.array([foot - run, rise]) + radius * across + (radius + 0.02) * along
    way = draw.values["way"] = float((first[1] - radius) / np.sin(slope))
    leaves = draw.values["leaves"] = float(np.sqrt(2 * way / acceleration))
    body = ball(f"{colour} ball", rgb, radius)
    wedge = Polygon(((side * (foot - run), 0.0), (side * foot, 0.0), (side * (foot - run), rise)))
    ramp = Body("wooden ramp", (176, 138, 92), (Part(wedge),), body.inverse_depth - 0.01)

    def move(times: Array, pull: float) -> Motion:
        faster = pull * acceleration
        end = np.sqrt(2 * way / faster)
        rolled = 0.5 * faster * np.minimum(times, end) ** 2
        free = faster * end * np.maximum(times - end, 0.0)
        x = first[0] + along[0] * rolled + free
        y = first[1] + along[1] * rolled
        return Motion.of([(side * x, y), (0.0, 0.0)], times, [-side * (rolled + free) / radius, np.zeros_like(times)])

    def ask(times: Array) -> list[Question]:
        reached = bool(times[-1] >= leaves)
        texts = ["it gets faster", "it gets slower", "its speed stays the same"]
        text = f"How does the speed of the {body.name} change while it is on the ramp?"
        return [
            choice("speed", text, texts, texts[0], "Physics: states", turn=seed),
            yes_no("leaves", f"Does the {body.name} get from the ramp to the floor?", reached, "Time: actions"),
        ]

    prompt = f"A {colour} striped ball rolls down a wooden ramp faster and faster and runs on over the floor."
    captions = (
        f"Seen from the side, a {colour} ball rolls down a wooden wedge.",
        f"A {colour} ball is let go on a ramp of wood and gathers speed.",
        f"In a bare room a {colour} ball turns as it runs down a slope and out onto the tiles.",
        f"The camera stands still while a {colour} ball rolls from a wooden ramp to the floor.",
        f"A wooden ramp, and on it a {colour} ball that rolls downhill.",
    )
    strike = (0.0, leaves)
    return Scene("rolling", seed, DOMAIN, (body, ramp), 0, move, strike, draw.values, prompt, captions, ask)
