"""The benchmark's real videos as one more system: the ceiling that generated videos are held against.

Files are copied as they are, never decoded and encoded again, so that every score is that of the published video.
"""

from __future__ import annotations

from typing import Any

from gen_eval.generators.base import GeneratedClip, Generator, GivenClip
from gen_eval.records import ItemError, Reason, Sample
from gen_eval.records.files import is_file


class SourceGenerator(Generator):
    """Gives the reference video of each sample, with the depth maps and masks that lie beside it; has no options."""

    name = "source"
    one_clip = True

    def given(self, sample: Sample) -> GivenClip | None:
        """The files of ``sample``.

        Raises:
            ItemError: ``missing_ground_truth``, the benchmark holds no real video of it.
        """
        if sample.reference is None or not is_file(sample.reference):
            raise ItemError(
                Reason.MISSING_GROUND_TRUTH,
                f"the benchmark holds no real video of {sample.id!r}; it is looked for as videos/{sample.id}.mp4, and "
                "as the field video in a file of samples",
            )
        return GivenClip(sample.reference, sample.depth, sample.masks)

    def generate(self, sample: Sample, *, seed: int, prompt: str | None = None, **options: Any) -> GeneratedClip:
        """Nothing is generated; :meth:`given` says which file it is."""
        raise NotImplementedError(f"the generator {self.name} gives files as they are")


GENERATOR = SourceGenerator()
