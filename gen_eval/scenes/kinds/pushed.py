"""A robot gripper pushes a crate, which then slides on until friction stops it."""

from __future__ import annotations

import numpy as np

from gen_eval.scenes.asking import choice, yes_no
from gen_eval.scenes.clip import Question
from gen_eval.scenes.kinds.colliding import LIFT
from gen_eval.scenes.world import DARK, GRAY, Array, Body, Draw, Motion, Part, Scene, box, crate

DOMAIN = "robot"
_BRAKE = 3.0  # deceleration of the gripper after the push, larger than any friction drawn here


def build(seed: int) -> Scene:
    """Constant force during the push, then constant friction: x'' = push, then x'' = -friction until rest."""
    draw = Draw(seed, "pushed")
    ((colour, rgb),) = draw.colours(1)
    half = draw.uniform("half", 0.1, 0.14)
    gravity = draw.gravity(2.5, 4.0)
    side = draw.sign()
    start = -side * draw.uniform("start", 0.25, 0.35)
    contact, duration = draw.uniform("contact", 0.3, 0.45), draw.uniform("duration", 0.5, 0.7)
    push = draw.uniform("push", 0.9, 1.3)
    coefficient = draw.uniform("friction_coefficient", 0.2, 0.32)
    friction = draw.values["friction"] = coefficient * gravity
    gap = draw.uniform("gap", 0.18, 0.3)
    top_speed = draw.values["top_speed"] = push * duration
    stop = draw.values["stop"] = contact + duration + top_speed / friction
    body = crate(f"{colour} crate", rgb, half, half)
    finger, arm = box(0.035, 0.09), box(0.5, 0.028, (-side * 0.5, 0.0))
    gripper = Body("gray robot gripper", GRAY, (Part(arm), Part(finger, "flat", DARK)), shadow=0.0)

    def travelled(times: Array) -> tuple[Array, Array]:
        """Way of the crate and of the gripper's tip from the point of contact, in the direction of the push."""
        pushed = np.clip(times - contact, 0.0, duration)
        sliding = np.clip(times - contact - duration, 0.0, top_speed / friction)
        since = np.maximum(times - contact - duration, 0.0)
        common = 0.5 * push * pushed**2
        slide = top_speed * sliding - 0.5 * friction * sliding**2
        approach = gap * np.maximum(1.0 - times / contact, 0.0) ** 2
        return common + slide, common + top_speed * since - 0.5 * _BRAKE * since**2 - approach

    def move(times: Array, pull: float) -> Motion:
        crate_way, tip_way = travelled(times)
        lifted = 0.5 * LIFT * (1 - pull) * gravity * times**2
        tip = start - side * (half + 0.035) + side * tip_way
        centres: list[tuple[Array | float, Array | float]] = [
            (start + side * crate_way, half + lifted),
            (tip, 1.1 * half),
        ]
        return Motion.of(centres, times, [np.zeros_like(times)] * 2)

    def ask(times: Array) -> list[Question]:
        moved, rests = bool(times[-1] > contact + 0.1), bool(times[-1] >= stop)
        questions = [
            yes_no("pushed", f"Does the robot gripper push the {body.name}?", moved, "Space: interaction"),
            yes_no("rests", f"Has the {body.name} come to rest after sliding, at the end?", rests, "Physics: states"),
        ]
        if moved:
            texts = ["the robot gripper", "the wind", "its own wheels", "a second crate"]
            text = f"What sets the {body.name} in motion?"
            questions.append(choice("cause", text, texts, texts[0], "Space: interaction", turn=seed))
        return questions

    prompt = f"A robot gripper pushes a {colour} crate along the floor and draws back; the crate slides on and stops."
    captions = (
        f"A gray robot arm moves up to a {colour} crate, gives it a push and withdraws.",
        f"Seen from the side, a {colour} crate is shoved by a robot and is slowed down by friction.",
        f"In a bare room a robot gripper touches a {colour} box and sets it sliding over the tiles.",
        f"A {colour} crate stands still until a robot pushes it; then it glides a little and rests.",
        f"The camera does not move while a gripper drives a {colour} crate across the floor.",
    )
    strike = (contact, stop)
    return Scene("pushed", seed, DOMAIN, (body, gripper), 0, move, strike, draw.values, prompt, captions, ask)
