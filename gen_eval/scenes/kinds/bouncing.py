"""A ball that is dropped with some sideways speed and bounces, lower each time."""

from __future__ import annotations

import numpy as np

from gen_eval.scenes.asking import count, yes_no
from gen_eval.scenes.clip import Question
from gen_eval.scenes.world import Array, Draw, Motion, Scene, ball

DOMAIN = "common_sense"
_REST = 1e-3  # a ball that leaves the floor more slowly than this stays on it


def contacts(height: float, gravity: float, restitution: float) -> tuple[Array, Array]:
    """Times at which a ball dropped from ``height`` above the floor touches it, and its upward speed after each.

    The last entry has speed 0: from then on the ball lies on the floor.
    """
    times, speeds = [np.sqrt(2 * height / gravity)], [restitution * np.sqrt(2 * height * gravity)]
    while speeds[-1] >= _REST:
        times.append(times[-1] + 2 * speeds[-1] / gravity)
        speeds.append(restitution * speeds[-1])
    speeds[-1] = 0.0
    return np.array(times), np.array(speeds)


def build(seed: int) -> Scene:
    """Parabolas between contacts; each contact keeps the share ``restitution`` of the vertical speed."""
    draw = Draw(seed, "bouncing")
    ((colour, rgb),) = draw.colours(1)
    radius = draw.uniform("radius", 0.07, 0.11)
    body = ball(f"{colour} ball", rgb, radius)
    gravity = draw.gravity(2.2, 3.6)
    side = draw.sign()
    start, top = -side * draw.uniform("start", 0.35, 0.6), draw.uniform("top", 0.62, 0.8)
    speed = side * draw.uniform("speed", 0.25, 0.45)
    restitution = draw.uniform("restitution", 0.6, 0.85)
    first = draw.values["first_contact"] = float(np.sqrt(2 * (top - radius) / gravity))

    def move(times: Array, pull: float) -> Motion:
        touched, leaving = contacts(top - radius, pull * gravity, restitution)
        segment = np.searchsorted(touched, times, side="right") - 1
        since = times - touched[segment]
        rising = radius + leaving[segment] * since - 0.5 * pull * gravity * since**2
        resting = np.where(leaving[segment] == 0, radius, rising)
        y = np.where(segment < 0, top - 0.5 * pull * gravity * times**2, resting)
        x = start + speed * times
        return Motion.of([(x, y)], times, [-(x - start) / radius])

    def ask(times: Array) -> list[Question]:
        touched, _ = contacts(top - radius, gravity, restitution)
        number = int(np.sum(touched <= times[-1]))
        questions = [
            count("contacts", f"How many times does the {body.name} touch the floor?", number, "Time: actions"),
            yes_no("bounces", f"Does the {body.name} bounce back up from the floor?", number >= 1, "Physics: states"),
        ]
        if number >= 2:
            text = f"Does the {body.name} rise less high after each contact with the floor?"
            questions.append(yes_no("lower", text, True, "Physics: states"))
        return questions

    prompt = f"A {colour} ball with a stripe bounces across a tiled floor, each hop lower than the one before."
    captions = (
        f"Seen from the side, a {colour} ball hops along the floor of an empty room and loses height.",
        f"A {colour} rubber ball is tossed into a room and bounces several times in front of a pale wall.",
        f"The camera stands still while a {colour} striped ball drops, rebounds and travels sideways.",
        f"In a bare room a {colour} ball falls, springs back up and falls again.",
        f"A {colour} ball bounces on tiles with less and less energy.",
    )
    strike = (0.0, first * (1 + 2 * restitution))
    return Scene("bouncing", seed, DOMAIN, (body,), 0, move, strike, draw.values, prompt, captions, ask)
