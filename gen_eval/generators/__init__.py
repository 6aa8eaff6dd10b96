"""Generators: what makes a video for a sample. Found through the entry points ``gen_eval.generators``."""

from gen_eval.generators.base import GeneratedClip, Generator, GivenClip
from gen_eval.generators.folder import MANIFEST, Made, generate_folder

__all__ = ["MANIFEST", "GeneratedClip", "Generator", "GivenClip", "Made", "generate_folder"]
