"""A balloon that rises: buoyancy against the drag of the air."""

from __future__ import annotations

import numpy as np

from gen_eval.scenes.asking import choice, yes_no
from gen_eval.scenes.clip import Question
from gen_eval.scenes.world import Array, Body, Draw, Ellipse, Motion, Part, Scene, box

DOMAIN = "common_sense"
_SINKS = 2.35  # so that the wrong gravity of full strength (a pull of 0.15) turns the rise into an equal sinking


def build(seed: int) -> Scene:
    """Linear drag: y'' = (terminal - y') / settling, from rest; the sideways drift of the air is constant."""
    draw = Draw(seed, "floating")
    ((colour, rgb),) = draw.colours(1)
    half_width = draw.uniform("half_width", 0.09, 0.12)
    half_height = draw.values["half_height"] = 1.2 * half_width
    terminal, settling = draw.uniform("terminal", 0.2, 0.28), draw.uniform("settling", 0.25, 0.45)
    side = draw.sign()
    start, height = -side * draw.uniform("start", 0.1, 0.45), draw.uniform("height", 0.3, 0.36)
    drift = side * draw.uniform("drift", 0.05, 0.14)
    parts = (
        Part(box(0.005, 0.06, (0.0, -half_height - 0.055)), "flat", (90, 86, 82)),
        Part(Ellipse((half_width, half_height)), "ball"),
    )
    base = draw.values["base"] = half_height + 0.115
    body = Body(f"{colour} balloon", rgb, parts, shadow=0.8 * half_width, base=base)

    def move(times: Array, pull: float) -> Motion:
        risen = terminal * (times - settling * (1 - np.exp(-times / settling)))
        y = np.maximum(height + (1 - _SINKS * (1 - pull)) * risen, min(height, base))
        return Motion.of([(start + drift * times, y)], times, [np.full_like(times, np.pi / 2)])

    def ask(times: Array) -> list[Question]:
        texts = ["it rises", "it sinks", "it stays at one height"]
        return [
            choice("height", f"What does the {body.name} do?", texts, texts[0], "Physics: states", turn=seed),
            yes_no("touches", f"Does the {body.name} touch the floor?", False, "Space: interaction"),
        ]

    prompt = f"A {colour} balloon with a short string rises slowly in front of a wall and drifts to one side."
    captions = (
        f"Seen from the side, a {colour} balloon floats up through an empty room.",
        f"A {colour} balloon filled with light gas climbs towards the ceiling.",
        f"The camera stands still while a {colour} balloon goes up above a tiled floor.",
        f"In a bare room a {colour} balloon leaves the ground and floats upwards.",
        f"A single {colour} balloon ascends at a steady pace.",
    )
    return Scene(
        "floating",
        seed,
        DOMAIN,
        (body,),
        0,
        move,
        (0.0, 2.0),
        draw.values,
        prompt,
        captions,
        ask,
        reversible=True,
    )
