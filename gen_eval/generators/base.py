"""What every generator offers: one clip for one sample, one prompt and one seed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gen_eval.records import InputError, Sample


@dataclass(frozen=True)
class GeneratedClip:
    """A clip and, where the generator knows them, its signals.

    Attributes:
        frames: (T, H, W, 3) uint8 RGB.
        fps: frames a second.
        depth: (T, H, W) float32 relative inverse depth, or ``None``.
        masks: (phrase, (T, H, W) bool) per object, or ``None``.
    """

    frames: NDArray[np.uint8]
    fps: float
    depth: NDArray[np.float32] | None = None
    masks: list[tuple[str, NDArray[np.bool_]]] | None = None


@dataclass(frozen=True)
class GivenClip:
    """A clip that exists as files already.

    Attributes:
        video: the video; it keeps its bytes and its ending.
        depth: ``.npz`` with its depth maps, or ``None``.
        masks: its segmentation (``.masks.json`` or ``.pkl``), or ``None``.
    """

    video: Path
    depth: Path | None = None
    masks: Path | None = None


class Generator(ABC):
    """Makes clips; its options are keyword arguments of ``generate`` and are recorded with what it made.

    Attributes:
        name: public name, also the name of its entry point.
        version: raised whenever equal arguments give another clip.
        one_clip: whether a sample has a single clip, whatever the seed or caption.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    one_clip: ClassVar[bool] = False

    def check(self, **options: Any) -> None:
        """Refuse options that no clip could be made with, before any is made.

        Raises:
            InputError: an option is unknown or out of range; without a method of its own a generator has none.
        """
        if options:
            raise InputError(f"the generator {self.name} has no options, so none named {', '.join(options)}")

    def given(self, sample: Sample) -> GivenClip | None:
        """Files that are the clip of ``sample`` as they stand; ``None`` when :meth:`generate` makes it.

        Raises:
            ItemError: this sample has none.
        """
        return None

    @abstractmethod
    def generate(self, sample: Sample, *, seed: int, prompt: str | None = None, **options: Any) -> GeneratedClip:
        """A clip for ``sample``; equal arguments give an equal clip.

        Args:
            sample: prompt, condition image and control signals.
            seed: tells the clips of one prompt apart.
            prompt: text to use in place of the sample's own, one of its captions.
            options: of this generator.

        Raises:
            ItemError: this sample cannot be generated for (``generator_declined``, ``missing_condition_image``, ...).
        """
