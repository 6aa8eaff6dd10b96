"""Built-in simulator: scenes with exact physics, exact control signals and questions with known answers."""

from gen_eval.scenes.benchmark import read_recipes, write_benchmark
from gen_eval.scenes.clip import Question, SceneClip, Track
from gen_eval.scenes.flaws import FLAWS, Flaw
from gen_eval.scenes.kinds import DOMAINS
from gen_eval.scenes.recipe import Recipe
from gen_eval.scenes.rendering import questions, render, scene
from gen_eval.scenes.world import Motion, Scene

KINDS = tuple(DOMAINS)
"""The kinds of scene."""

__all__ = [
    "FLAWS",
    "KINDS",
    "Flaw",
    "Motion",
    "Question",
    "Recipe",
    "Scene",
    "SceneClip",
    "Track",
    "questions",
    "read_recipes",
    "render",
    "scene",
    "write_benchmark",
]
