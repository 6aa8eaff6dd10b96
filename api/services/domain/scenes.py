"""What a simulated judge is told of clips that the built-in simulator made: what is seen in them, flaws included."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from gen_eval.generators.folder import MANIFEST
from gen_eval.scenes import questions
from gen_eval.scenes.benchmark import read_recipes
from judge.simulated import Place


def truth_of_clips(data: Path | None, videos: Path | None) -> Mapping[Place, str | None]:
    """Video and question -> yes or no, for the clips of scenes that ``generate`` recorded beside ``videos``.

    Empty where the data was not made from scenes, or the clips not by the generator of scenes: a simulated judge then
    knows the keys of the questions only, which hold for clips that are as they should be.

    Raises:
        InputError: the data's list of scenes cannot be read.
    """
    recipes = read_recipes(data) if data is not None else {}
    if not recipes or videos is None:
        return {}
    truth: dict[Place, str | None] = {}
    try:
        made = json.loads((videos.parent / MANIFEST).read_text(encoding="utf-8"))
        options, clips = made["options"], [(str(one["sample"]), str(one["member"])) for one in made["clips"]]
        if made["generator"] != "scenes":
            return {}
        for sample, member in clips:
            if (recipe := recipes.get(sample)) is None:
                continue
            asked = questions(
                recipe.kind,
                seed=recipe.seed,
                size=recipe.size,
                fps=recipe.fps,
                frames=recipe.frames,
                flaw=options.get("flaw"),
                strength=options.get("strength", 1.0),
            )
            truth |= {
                (f"{sample}__{member}", f"{sample}/{one.uid}"): one.answer_text.lower()
                for one in asked
                if one.is_yes_no
            }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}  # no record, or none of ours
    return truth


__all__ = ["truth_of_clips"]
