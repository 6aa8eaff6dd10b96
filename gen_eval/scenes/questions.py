"""Questions that every scene can be asked, answered from the plan and the simulated motion.

A question is left out where its answer would be a matter of taste: whether a clip of which a part runs backwards also
jumps, or whether lost frames make a jump. What is asked has one right answer.
"""

from __future__ import annotations

import numpy as np

from gen_eval.scenes.asking import choice, count, either, yes_no
from gen_eval.scenes.clip import Question
from gen_eval.scenes.flaws import FLAWS, Plan
from gen_eval.scenes.world import PALETTE, Motion, Scene

_STILL = 0.02  # scene units; a way shorter than this is not asked about


def questions_of(scene: Scene, plan: Plan, shown: Motion, flaw: str | None) -> tuple[Question, ...]:
    """All questions about a clip: what is in it, what happens, and whether it is possible.

    Args:
        scene: the scene.
        plan: how it is shown.
        shown: motion as shown, flaws included.
        flaw: name of the flaw.
    """
    found = [*_inventory(scene), *_direction(scene, shown), *_plausibility(scene, plan, flaw)]
    if flaw is None or (FLAWS[flaw].kind != "physics" and flaw != "frame_drop"):
        # Broken physics changes what happens, and lost frames may hide it: there the scene's own answers do not hold.
        found += scene.ask(plan.times)
    return tuple(found)


def _inventory(scene: Scene) -> list[Question]:
    main = scene.bodies[scene.main]
    assert main.name is not None
    colour, noun = main.name.split(" ", 1)
    alike = sum(body.name is not None and body.name.endswith(noun) for body in scene.bodies)
    others = [name for name in sorted(PALETTE) if name not in scene.prompt]
    offered = sorted([colour, *(others[(scene.seed + step) % len(others)] for step in range(3))])
    which = noun if alike == 1 else f"{noun} that moves first"
    what = f"What colour does the {which} have in the first frame?"
    other = others[scene.seed % len(others)]
    return [
        choice("colour", what, offered, colour, "Physics: attributes", turn=scene.seed),
        yes_no("present", f"Is there {main.phrase} in the room at the start?", True, "Physics: attributes"),
        yes_no("absent", f"Is there a thing painted {other} in the room at the start?", False, "Physics: attributes"),
        count("objects", f"How many {noun}s does the clip show in all?", alike, "Space: relationship"),
    ]


def _direction(scene: Scene, shown: Motion) -> list[Question]:
    """Where the main body has moved between its first and its last frame."""
    present = np.flatnonzero(shown.present[scene.main])
    centre = shown.centre[scene.main]
    if len(present) < 2:
        return []
    across = float(centre[present[-1], 0] - centre[present[0], 0])
    if abs(across) < _STILL:
        return []
    text = f"Is the {scene.bodies[scene.main].name} farther to the left or to the right at the end than at the start?"
    way = "right" if across > 0 else "left"
    return [choice("direction", text, ["left", "right"], way, "Space: relationship", turn=scene.seed)]


def _moves_after(scene: Scene, plan: Plan) -> bool:
    """Whether the unbroken scene goes on moving after the moment that the last frame shows."""
    centre = scene.simulate(plan.times).centre
    still = np.abs(centre - centre[:, plan.order[-1]][:, None]).max(axis=(0, 2))
    return bool(still[plan.order[-1] :].max() > _STILL)


def _plausibility(scene: Scene, plan: Plan, flaw: str | None) -> list[Question]:
    """Questions whose answer turns over for the twin that is broken in this way."""
    name = scene.bodies[scene.main].name
    steps = np.diff(plan.order)
    backwards = bool(np.any(steps < 0))
    stuck = flaw == "freeze" and _moves_after(scene, plan)
    partly = backwards and bool(np.any(steps > 0))
    jumps, gone = plan.jump_at is not None, _gone(plan)
    seed, flickers = scene.seed, bool(np.ptp(plan.gain) > 0)
    shakes, recolours = bool(np.any(np.ptp(plan.camera, axis=0) > 0)), bool(plan.hue[-1] > 0)
    gone_texts = (f"Does the {name} cease to exist in the course of the clip?", f"Does the {name} exist to the end?")
    flicker_texts = ("Does the brightness of the whole picture flicker?", "Is the picture equally bright all the time?")
    shake_texts = ("Does the camera shake?", "Does the camera stand perfectly still?")
    colour_texts = (f"Does the {name} change its colour?", f"Does the {name} keep its colour to the end?")
    found = [
        either("vanishes", seed, *gone_texts, gone, "Physics: permanence"),
        either("flickers", seed, *flicker_texts, flickers, "Time: camera"),
        either("shakes", seed, *shake_texts, shakes, "Time: camera"),
        either("recolours", seed, *colour_texts, recolours, "Physics: attributes"),
    ]
    if flaw != "frame_drop" and not partly:
        text = f"Does the {name} jump from one place to another without passing the places between?"
        other = f"Does the {name} pass through all places between where it starts and where it ends?"
        found.append(either("jumps", seed, text, other, jumps, "Physics: permanence"))
    if flaw != "frame_drop":
        text = "Does everything stop at once in the middle of its motion and stay so to the end?"
        found.append(yes_no("freezes", text, stuck, "Time: actions"))
    if not backwards:
        text = "Do things fall, hang, float or rest on the floor as they do on Earth?"
        found.append(yes_no("gravity", text, plan.gravity == 1, "Physics: laws"))
    if not scene.reversible:
        texts = ("Does a part of the clip run backwards?", "Does time run forwards in the whole clip?")
        found.append(either("backwards", seed, *texts, backwards, "Time: order"))
    if flaw not in ("colour_shift", "frame_drop") and not (backwards and scene.reversible and not partly):
        possible = not (jumps or gone or stuck or backwards or plan.gravity != 1)
        text = "Could everything in this clip happen in a real room?"
        found.append(yes_no("possible", text, possible, "Physics: laws"))
    return found


def _gone(plan: Plan) -> bool:
    return plan.absent_from is not None and plan.absent_from < len(plan.times)
