"""A ball on a rope: the exact pendulum, not its small-angle approximation."""

from __future__ import annotations

import numpy as np

from gen_eval.scenes.asking import count, yes_no
from gen_eval.scenes.clip import Question
from gen_eval.scenes.world import DARK, Array, Body, Draw, Ellipse, Motion, Part, Scene, box

DOMAIN = "misc"
_PIVOT = (0.0, 0.9)


def jacobi(u: Array, modulus: float) -> tuple[Array, Array, Array]:
    """Jacobi's elliptic functions sn, cn, dn of ``u`` for ``modulus`` k in [0, 1).

    Descending Landen transformation (Abramowitz and Stegun 16.4): the arithmetic-geometric mean of 1 and k' settles
    after a few steps, and the amplitude follows backwards from it.
    """
    a, c, upper = [1.0], [modulus], np.sqrt(1.0 - modulus**2)
    while abs(c[-1]) > 1e-15 * a[-1]:  # above one unit in the last place, where the two means may keep changing places
        a_next, c_next = (a[-1] + upper) / 2, (a[-1] - upper) / 2
        upper = np.sqrt(a[-1] * upper)
        a.append(a_next)
        c.append(c_next)
    amplitude = 2.0 ** (len(a) - 1) * a[-1] * u
    for index in range(len(a) - 1, 0, -1):
        amplitude = (amplitude + np.arcsin(np.clip(c[index] / a[index] * np.sin(amplitude), -1, 1))) / 2
    sn = np.sin(amplitude)
    return sn, np.cos(amplitude), np.sqrt(1.0 - (modulus * sn) ** 2)


def pendulum(times: Array, amplitude: float, frequency: float) -> Array:
    """Angle at ``times`` of a pendulum let go at rest at ``amplitude`` (radians).

    theta'' = -frequency^2 sin(theta) has the solution sin(theta / 2) = k cd(frequency t, k), k = sin(amplitude / 2).
    """
    modulus = np.sin(abs(amplitude) / 2)
    _, cn, dn = jacobi(frequency * times, float(modulus))
    return np.asarray(np.sign(amplitude) * 2 * np.arcsin(np.clip(modulus * cn / dn, -1.0, 1.0)))


def period(amplitude: float, frequency: float) -> float:
    """Time of one full swing: 2 pi / (frequency M(1, cos(amplitude / 2))), M the arithmetic-geometric mean."""
    a, b = 1.0, float(np.cos(amplitude / 2))
    while abs(a - b) > 1e-15:
        a, b = (a + b) / 2, float(np.sqrt(a * b))
    return float(2 * np.pi / (frequency * a))


def build(seed: int) -> Scene:
    """A point mass on a rope of fixed length, without friction, let go at rest."""
    draw = Draw(seed, "swinging")
    ((colour, rgb),) = draw.colours(1)
    radius = draw.uniform("radius", 0.075, 0.11)
    length = draw.uniform("length", 0.5, 0.66)
    gravity = draw.gravity(1.6, 2.6)
    amplitude = draw.values["amplitude"] = draw.sign() * draw.uniform("tilt", 0.55, 1.15)
    frequency = float(np.sqrt(gravity / length))
    swing = draw.values["period"] = period(amplitude, frequency)
    bob = Body(f"{colour} ball", rgb, (Part(Ellipse((radius, radius)), "ball"),), shadow=radius, base=radius)
    hook = Body(None, DARK, (Part(box(0.09, 0.02, (0.0, 0.015))),), bob.inverse_depth - 0.01, rope_to=0)

    def move(times: Array, pull: float) -> Motion:
        angle = pendulum(times, amplitude, frequency * float(np.sqrt(pull)))
        x, y = _PIVOT[0] + length * np.sin(angle), _PIVOT[1] - length * np.cos(angle)
        return Motion.of([(x, y), _PIVOT], times, [angle, np.zeros_like(times)])

    def ask(times: Array) -> list[Question]:
        passes = int(np.floor(times[-1] / (swing / 2) + 0.5))
        text = f"How many times does the {bob.name} pass the lowest point of its path?"
        return [
            count("passes", text, passes, "Time: actions"),
            yes_no("hangs", f"Does the {bob.name} hang on a rope?", True, "Physics: attributes"),
            yes_no("touches", f"Does the {bob.name} touch the floor?", False, "Space: interaction"),
        ]

    prompt = f"A {colour} ball hangs on a rope from a hook and swings to and fro."
    captions = (
        f"A pendulum with a {colour} ball swings in front of a pale wall.",
        f"Seen from the side, a {colour} ball on a rope moves back and forth under its hook.",
        f"A {colour} ball is let go with its rope tight and swings through the room.",
        f"The camera stands still while a {colour} weight on a rope sways above a tiled floor.",
        f"In a bare room a {colour} ball describes arcs on the end of a rope.",
    )
    return Scene(
        "swinging",
        seed,
        DOMAIN,
        (bob, hook),
        0,
        move,
        (0.0, swing),
        draw.values,
        prompt,
        captions,
        ask,
        reversible=True,
    )
