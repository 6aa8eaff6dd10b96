"""Answers are checked against what the clip shows: tracks, masks and pixels, not against the code that gave them."""

from collections import Counter

import numpy as np
import pytest

from gen_eval.scenes import FLAWS, KINDS, Question, questions, render, scene

SIZE, FPS, FRAMES = (48, 80), 24, 49
FLIPS = {
    "teleport": ("jumps", "possible"),
    "wrong_gravity": ("gravity", "possible"),
    "vanish": ("vanishes", "possible"),
    "reversed": ("backwards", "possible"),
    "freeze": ("freezes", "possible"),
    "flicker": ("flickers",),
    "jitter": ("shakes",),
    "colour_shift": ("recolours",),
}
PLAUSIBILITY = {uid for uids in FLIPS.values() for uid in uids}
TIME_SYMMETRIC = ("occluded", "swinging", "floating")


def answers(kind, **options):
    return {question.uid: question.answer_text for question in questions(kind, **options)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("flaw", [None, *FLAWS])
def test_questions_are_well_formed(kind, flaw):
    found = questions(kind, seed=2, flaw=flaw)
    assert len({question.uid for question in found}) == len(found)
    for question in found:
        assert question.question.endswith("?")
        assert question.answer in question.options
        assert list(question.options) == list("ABCD")[: len(question.options)]
        assert len(set(question.options.values())) == len(question.options)
        assert question.category.split(": ")[0] in ("Space", "Time", "Physics")
        assert question.is_yes_no == (list(question.options.values()) == ["Yes", "No"])
    assert {"Yes", "No"} <= {question.answer_text for question in found if question.is_yes_no}


def test_always_saying_yes_or_no_does_not_pay():
    said = Counter(
        question.answer_text
        for kind in KINDS
        for seed in range(10)
        for question in questions(kind, seed=seed)
        if question.is_yes_no
    )
    assert 0.4 < said["Yes"] / said.total() < 0.6


def test_right_letters_of_choices_are_spread():
    letters = Counter(
        question.answer
        for kind in KINDS
        for seed in range(8)
        for question in questions(kind, seed=seed)
        if not question.is_yes_no
    )
    assert len(letters) == 4
    assert max(letters.values()) < 0.5 * letters.total()


@pytest.mark.parametrize("kind", KINDS)
def test_plausibility_turns_over_for_the_broken_twin_and_only_there(kind):
    for seed in range(3):
        clean = answers(kind, seed=seed)
        for flaw in FLAWS:
            broken = answers(kind, seed=seed, flaw=flaw)
            turned = {uid for uid in clean.keys() & broken.keys() & PLAUSIBILITY if clean[uid] != broken[uid]}
            expected = set(FLIPS.get(flaw, ()))
            if flaw == "reversed" and kind in TIME_SYMMETRIC:
                expected = set()  # backwards it is as possible as forwards, so it is not asked
            assert turned == expected, (flaw, seed)


@pytest.mark.parametrize("kind", KINDS)
def test_rendered_and_asked_without_rendering_are_the_same(kind):
    for flaw in (None, "teleport"):
        options = {"seed": 3, "size": (16, 20), "fps": 10.0, "frames": 11, "flaw": flaw}
        assert render(kind, **options).questions == questions(kind, **options)


@pytest.fixture(scope="module")
def clips():
    return {
        (kind, seed): render(kind, seed=seed, size=SIZE, fps=FPS, frames=FRAMES) for kind in KINDS for seed in (0, 1)
    }


def test_direction_is_that_of_the_masks(clips):
    asked = 0
    for clip in clips.values():
        mask = clip.masks[0][1]
        seen = np.flatnonzero(mask.any(axis=(1, 2)))
        across = [float(np.argwhere(mask[frame])[:, 1].mean()) for frame in (seen[0], seen[-1])]
        if seen[-1] != FRAMES - 1 or abs(across[1] - across[0]) < 2:
            continue
        assert clip.question("direction").answer_text == ("right" if across[1] > across[0] else "left")
        asked += 1
    assert asked >= 8


def test_colour_is_that_of_the_first_frame(clips):
    hue_of = {"red": 0, "orange": 30, "yellow": 50, "green": 135, "blue": 220, "purple": 275}
    for clip in clips.values():
        red, green, blue = np.median(clip.frames[0][clip.masks[0][1][0]], axis=0) / 255
        high, low = max(red, green, blue), min(red, green, blue)
        sector = {red: (green - blue) / (high - low), green: 2 + (blue - red) / (high - low)}
        hue = 60 * sector.get(high, 4 + (red - green) / (high - low)) % 360
        nearest = min(hue_of, key=lambda name: min(abs(hue_of[name] - hue), 360 - abs(hue_of[name] - hue)))
        assert clip.question("colour").answer_text == nearest
        assert clip.question("absent").answer_text == "No"


def lowest(height):
    """Inner local minima of a path."""
    return int(np.sum((height[1:-1] <= height[:-2]) & (height[1:-1] < height[2:])))


def test_what_happens_is_what_the_motion_shows():
    words = ("none", "one", "two", "three or more")
    times = np.arange(481) / 240
    for seed in range(6):
        paths = {kind: scene(kind, seed).simulate(times).centre for kind in KINDS}
        across, heights = ({kind: path[0, :, axis] for kind, path in paths.items()} for axis in (0, 1))

        def said(kind, uid, seed=seed):
            return answers(kind, seed=seed, fps=240, frames=481)[uid]

        assert said("bouncing", "contacts") == words[min(3, lowest(heights["bouncing"]))]
        assert said("swinging", "passes") == words[min(3, lowest(heights["swinging"]))]
        rests = np.ptp(heights["falling"][-20:]) == 0
        assert said("falling", "lands") == ("Yes" if rests else "No")
        assert said("falling", "bounces") == ("Yes" if np.diff(heights["falling"]).max() > 1e-12 else "No")
        second = paths["colliding"][1, :, 0]
        assert said("colliding", "touch") == ("Yes" if np.ptp(second) > 0 else "No")
        assert said("colliding", "pushed_to") == ("right" if second[-1] > second[0] else "left")
        assert said("colliding", "moves_first") == scene("colliding", seed).bodies[0].name
        assert said("pushed", "rests") == ("Yes" if np.ptp(across["pushed"][-5:]) < 1e-9 else "No")
        leaves = scene("rolling", seed).parameters["leaves"]
        assert (np.diff(np.abs(np.diff(across["rolling"])))[: int(leaves * 240) - 3] > 0).all()
        assert said("rolling", "speed") == "it gets faster"
        assert said("rolling", "leaves") == ("Yes" if np.ptp(heights["rolling"][-3:]) == 0 else "No")
        assert heights["floating"][-1] > heights["floating"][0]
        assert said("floating", "height") == "it rises"
        clip = render("occluded", seed=seed, size=(24, 40), fps=60, frames=121)
        car = clip.masks[0][1].any(axis=(1, 2))
        assert clip.question("hidden").answer_text == ("Yes" if not car.all() else "No")
        assert clip.question("returns").answer_text == ("Yes" if car[-1] else "No")


def test_a_clip_that_ends_early_is_asked_about_what_it_shows():
    assert answers("falling", frames=3)["lands"] == "No"
    assert answers("bouncing", frames=3)["contacts"] == "none"
    assert answers("colliding", frames=3)["touch"] == "No"
    assert "pushed_to" not in answers("colliding", frames=3)
    assert answers("occluded", frames=3)["hidden"] == "No"
    assert answers("rolling", frames=3)["leaves"] == "No"
    assert "direction" not in answers("falling", frames=1)


def test_questions_of_taste_are_not_asked():
    assert "jumps" not in answers("bouncing", flaw="reversed", strength=0.5)
    assert "jumps" not in answers("bouncing", flaw="frame_drop")
    assert "possible" not in answers("bouncing", flaw="colour_shift")
    assert "backwards" not in answers("swinging")
    assert "contacts" not in answers("bouncing", flaw="wrong_gravity")
    assert "contacts" in answers("bouncing", flaw="blur")


def test_a_freeze_after_everything_has_come_to_rest_is_none():
    assert answers("falling", fps=1.0, frames=12, flaw="freeze")["possible"] in ("Yes", "No")
    clip = render("falling", seed=0, size=(16, 16), fps=24, frames=49, flaw="freeze", strength=0.01)
    clean = render("falling", seed=0, size=(16, 16), fps=24, frames=49)
    moved = np.abs(clip.tracks[0].centre - clean.tracks[0].centre).max() > 0.02
    assert clip.question("freezes").answer_text == ("Yes" if moved else "No")


def test_a_question_refuses_an_answer_that_is_no_option():
    with pytest.raises(ValueError, match="'C'"):
        Question("q", "Is it?", {"A": "Yes", "B": "No"}, "C", "Physics: laws")


def test_an_unknown_question_lists_those_there_are(clips):
    with pytest.raises(KeyError, match="colour, present"):
        clips["falling", 0].question("smell")
