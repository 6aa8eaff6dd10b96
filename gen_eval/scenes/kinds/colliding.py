"""A crate slides into another one that stands still."""

from __future__ import annotations

import numpy as np

from gen_eval.scenes.asking import choice, yes_no
from gen_eval.scenes.clip import Question
from gen_eval.scenes.world import Array, Draw, Motion, Scene, crate

DOMAIN = "industry"
LIFT = 0.2
"""Share of a missing pull of the Earth with which things on a floor are lifted off it (the flaw ``wrong_gravity``)."""


def build(seed: int) -> Scene:
    """Central collision on a smooth floor: momentum is kept, the relative speed is multiplied by ``-restitution``.

    Masses go with the area of the crates, sliding is without friction.
    """
    draw = Draw(seed, "colliding")
    (first, first_rgb), (second, second_rgb) = draw.colours(2)
    half_1, half_2 = draw.uniform("half_1", 0.08, 0.13), draw.uniform("half_2", 0.08, 0.13)
    bodies = (
        crate(f"{first} crate", first_rgb, half_1, half_1),
        crate(f"{second} crate", second_rgb, half_2, half_2),
    )
    gravity = draw.gravity(2.5, 4.0)
    side = draw.sign()
    start, target = -side * draw.uniform("start", 0.55, 0.65), side * draw.uniform("target", 0.0, 0.15)
    speed = side * draw.uniform("speed", 0.55, 0.8)
    restitution = draw.uniform("restitution", 0.3, 0.9)
    mass_1, mass_2 = half_1**2, half_2**2
    impact = draw.values["impact"] = (abs(target - start) - half_1 - half_2) / abs(speed)
    after_1 = draw.values["after_1"] = speed * (mass_1 - restitution * mass_2) / (mass_1 + mass_2)
    after_2 = draw.values["after_2"] = speed * mass_1 * (1 + restitution) / (mass_1 + mass_2)
    draw.values.update(mass_1=mass_1, mass_2=mass_2, before_1=speed, before_2=0.0)

    def move(times: Array, pull: float) -> Motion:
        since = np.maximum(times - impact, 0.0)
        x1 = start + speed * np.minimum(times, impact) + after_1 * since
        x2 = target + after_2 * since
        lifted = 0.5 * LIFT * (1 - pull) * gravity * times**2
        return Motion.of([(x1, half_1 + lifted), (x2, half_2 + lifted)], times, [np.zeros_like(times)] * 2)

    def ask(times: Array) -> list[Question]:
        hit = bool(times[-1] >= impact)
        names = [body.name or "" for body in bodies]
        questions = [
            yes_no("touch", f"Does the {names[0]} hit the {names[1]}?", hit, "Space: interaction"),
            choice(
                "moves_first", "Which object moves first?", [*names, "both at once"], names[0], "Time: order", turn=seed
            ),
        ]
        if hit:
            way = "right" if after_2 > 0 else "left"
            text = f"In which direction does the {names[1]} go after the impact?"
            questions.append(choice("pushed_to", text, ["left", "right"], way, "Space: interaction", turn=seed))
        return questions

    prompt = f"A {first} crate slides over a smooth floor, hits a {second} crate that stood still, and sets it moving."
    captions = (
        f"Two crates on a tiled floor: the {first} one runs into the {second} one and knocks it away.",
        f"Seen from the side, a {first} crate glides into a resting {second} crate.",
        f"A {second} crate stands in a bare room until a {first} crate bumps into it.",
        f"In front of a pale wall a {first} box collides with a {second} box.",
        f"A sliding {first} crate passes its motion on to a {second} crate by an impact.",
    )
    strike = (0.0, 1.6 * impact)
    return Scene("colliding", seed, DOMAIN, bodies, 0, move, strike, draw.values, prompt, captions, ask)
