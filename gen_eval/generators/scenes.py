"""The built-in simulator as a generator: it makes the clips of benchmarks that were written from scenes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gen_eval.generators.base import GeneratedClip, Generator
from gen_eval.records import InputError, ItemError, Reason, Sample
from gen_eval.scenes import FLAWS
from gen_eval.scenes.benchmark import read_recipes
from gen_eval.scenes.recipe import Recipe


class ScenesGenerator(Generator):
    """Renders the scene that a sample names. Options: ``flaw`` (a key of ``FLAWS``) and its ``strength`` in (0, 1].

    Another seed or caption is another take of the same scene: a camera moved by less than half a pixel and other
    sensor noise. What happens in the scene, and so every answer to its questions, stays.
    """

    name = "scenes"

    def check(self, *, flaw: str | None = None, strength: float = 1.0, **others: Any) -> None:
        """Refuse an unknown flaw or option and a strength out of range.

        Raises:
            InputError: the message says what is allowed.
        """
        if others:
            raise InputError(f"the generator scenes has no option {', '.join(others)}; it has flaw and strength")
        if flaw is not None and flaw not in FLAWS:
            raise InputError(f"there is no flaw {flaw!r}; there are {', '.join(FLAWS)}")
        if not 0 < strength <= 1:
            raise InputError(f"strength must be above 0 and at most 1, not {strength}")

    def generate(
        self,
        sample: Sample,
        *,
        seed: int,
        prompt: str | None = None,
        flaw: str | None = None,
        strength: float = 1.0,
        **others: Any,
    ) -> GeneratedClip:
        """The scene of ``sample``, with its exact depth and masks.

        Raises:
            ItemError: ``generator_declined``, the sample is no scene.
            InputError: a bad option.
        """
        self.check(flaw=flaw, strength=strength, **others)
        caption = sample.captions.index(prompt) if prompt in sample.captions else 0
        variation = seed * max(len(sample.captions), 1) + caption
        clip = recipe_of(sample).render(flaw=flaw, strength=strength, variation=variation)
        return GeneratedClip(clip.frames, clip.fps, clip.depth, clip.masks)


def recipe_of(sample: Sample) -> Recipe:
    """What the clip of ``sample`` is rendered from.

    Looked for in this order: the field ``scene`` of the prompt file, the file ``scenes.json`` of the data folder, and
    the id alone (then with the default size and length).

    Raises:
        ItemError: ``generator_declined``, it is found in none of them.
    """
    recorded = sample.extra.get("scene")
    try:
        if isinstance(recorded, dict):
            return Recipe.from_json(recorded)
        for path in (sample.reference, sample.condition_image):
            if path is not None and (recipe := read_recipes(Path(path).parent.parent).get(sample.id)) is not None:
                return recipe
    except InputError as error:
        raise ItemError(Reason.GENERATOR_DECLINED, str(error)) from error
    named = Recipe.of_id(sample.id)
    if named is None:
        raise ItemError(
            Reason.GENERATOR_DECLINED,
            f"{sample.id!r} is no scene of the built-in simulator; the generator scenes only makes benchmarks that "
            "were written from scenes",
        )
    return named


GENERATOR = ScenesGenerator()
