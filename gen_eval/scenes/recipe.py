"""What a clip is rendered from, as data, and the sample ids that name it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from gen_eval.records.errors import InputError
from gen_eval.scenes.clip import SceneClip
from gen_eval.scenes.kinds import DOMAINS
from gen_eval.scenes.rendering import render

_ID = re.compile(rf"(?P<domain>[a-z_]+)_(?P<kind>{'|'.join(DOMAINS)})_(?P<seed>\d{{3,9}})")


@dataclass(frozen=True)
class Recipe:
    """The arguments of one clean clip.

    Attributes:
        kind: of the scene.
        seed: that its parameters are drawn from.
        size: height and width in pixels.
        fps: frames a second.
        frames: how many.
    """

    kind: str
    seed: int
    size: tuple[int, int] = (256, 448)
    fps: float = 24.0
    frames: int = 49

    def __post_init__(self) -> None:
        """Refuse what no scene could be.

        Raises:
            ValueError: there is no such kind.
        """
        if self.kind not in DOMAINS:
            raise ValueError(f"there is no kind of scene {self.kind!r}; there are {', '.join(DOMAINS)}")

    @property
    def id(self) -> str:
        """Sample id: domain, kind and seed (``physics_falling_000``)."""
        return f"{self.domain}_{self.kind}_{self.seed:03d}"

    @property
    def domain(self) -> str:
        """The PAI-Bench-G domain of the kind."""
        return DOMAINS[self.kind]

    def render(self, **options: Any) -> SceneClip:
        """The clip; ``options`` are ``flaw``, ``strength`` and ``variation`` of :func:`gen_eval.scenes.render`."""
        return render(self.kind, seed=self.seed, size=self.size, fps=self.fps, frames=self.frames, **options)

    def to_json(self) -> dict[str, Any]:
        """JSON values only."""
        return {
            "kind": self.kind,
            "seed": self.seed,
            "size": list(self.size),
            "fps": self.fps,
            "frames": self.frames,
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """The recipe that :meth:`to_json` wrote.

        Raises:
            InputError: a field is missing or has the wrong type, or there is no such kind.
        """
        try:
            height, width = record["size"]
            numbers = (record["seed"], height, width, record["frames"])
            if record["kind"] not in DOMAINS or not all(type(number) is int for number in numbers):
                raise ValueError
            return cls(record["kind"], record["seed"], (height, width), float(record["fps"]), record["frames"])
        except (KeyError, TypeError, ValueError):
            raise InputError(
                f"expected a scene as {cls('falling', 0).to_json()} with a kind out of {', '.join(DOMAINS)}, "
                f"not {dict(record)}"
            ) from None

    @classmethod
    def of_id(cls, sample: str) -> Self | None:
        """The recipe, of default size and length, that a sample id names; ``None`` for any other id."""
        match = _ID.fullmatch(sample)
        if match is None or DOMAINS[match["kind"]] != match["domain"]:
            return None
        return cls(match["kind"], int(match["seed"]))
