"""Bodies, their motion, and what a kind of scene has to state about itself.

Scene units: the floor is y = 0, x runs to the right and y upwards, and a picture shows at least the stage
x in [-0.8, 0.8], y in [-0.15, 0.95]. Time is in seconds. Nothing here knows of pixels or frame rates.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gen_eval.scenes.clip import Question

Array: TypeAlias = NDArray[np.float64]
Colour: TypeAlias = tuple[int, int, int]

STANDARD_GRAVITY = 9.81
OBJECT_DEPTH = 0.5
"""Relative inverse depth of the plane in which bodies move; the floor passes through it at y = 0."""

PALETTE: Mapping[str, Colour] = {
    "red": (206, 52, 46),
    "orange": (236, 130, 30),
    "yellow": (240, 204, 50),
    "green": (54, 150, 78),
    "blue": (44, 98, 200),
    "purple": (128, 66, 172),
}
GRAY: Colour = (112, 116, 122)
DARK: Colour = (44, 46, 52)


@dataclass(frozen=True)
class Ellipse:
    """An ellipse with horizontal and vertical semi-axes; ``centre`` is relative to its body."""

    axes: tuple[float, float]
    centre: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True)
class Polygon:
    """A convex polygon; ``vertices`` are relative to its body, in order round the outline."""

    vertices: tuple[tuple[float, float], ...]


Shape: TypeAlias = Ellipse | Polygon
Finish: TypeAlias = Literal["ball", "crate", "flat", "wheel"]


def box(half_width: float, half_height: float, centre: tuple[float, float] = (0.0, 0.0)) -> Polygon:
    """An upright rectangle."""
    x, y = centre
    return Polygon(
        (
            (x - half_width, y - half_height),
            (x + half_width, y - half_height),
            (x + half_width, y + half_height),
            (x - half_width, y + half_height),
        )
    )


@dataclass(frozen=True)
class Part:
    """One convex piece of a body.

    Attributes:
        shape: its outline.
        finish: how its surface is shaded.
        colour: ``None`` for the colour of the body.
    """

    shape: Shape
    finish: Finish = "flat"
    colour: Colour | None = None


@dataclass(frozen=True)
class Body:
    """A thing in the scene.

    Attributes:
        name: in words, without article ("red ball"); ``None`` for a fixture that is no object of its own.
        colour: RGB.
        parts: what it is made of, painted in order.
        inverse_depth: of its front plane; nearer bodies are painted over farther ones.
        rope_to: index of the body that hangs on it by a taut rope, if one does; the rope is a part of this body.
        shadow: half width of its shadow on the floor, 0 for none.
        base: distance from its centre down to its lowest point.
    """

    name: str | None
    colour: Colour
    parts: tuple[Part, ...]
    inverse_depth: float = OBJECT_DEPTH + 0.02
    rope_to: int | None = None
    shadow: float = 0.0
    base: float = 0.0

    @property
    def phrase(self) -> str | None:
        """The body with its article ("an orange crate")."""
        if self.name is None:
            return None
        return articles(f"a {self.name}")


def articles(text: str) -> str:
    """``text`` with "an" for "a" before vowels."""
    return re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", text)


def ball(name: str, colour: Colour, radius: float) -> Body:
    """A ball with a stripe, so that its rolling can be seen."""
    return Body(name, colour, (Part(Ellipse((radius, radius)), "ball"),), shadow=radius, base=radius)


def crate(name: str, colour: Colour, half_width: float, half_height: float) -> Body:
    """A crate with a frame and planks."""
    parts = (Part(box(half_width, half_height), "crate"),)
    return Body(name, colour, parts, shadow=1.1 * half_width, base=half_height)


@dataclass(frozen=True)
class Motion:
    """Where all bodies are at given times; bodies are the first axis, times the second.

    Attributes:
        centre: (B, T, 2).
        spin: (B, T) radians, counter-clockwise.
        present: (B, T) bool.
    """

    centre: Array
    spin: Array
    present: NDArray[np.bool_]

    @classmethod
    def of(cls, centres: Sequence[tuple[Array | float, Array | float]], times: Array, spins: Sequence[Array]) -> Motion:
        """Motion from one (x, y) and one spin a body; a number stands for a constant."""
        shape = times.shape
        centre = np.stack([np.stack([np.broadcast_to(axis, shape) for axis in pair], axis=-1) for pair in centres])
        spin = np.stack([np.broadcast_to(turn, shape) for turn in spins])
        return cls(centre.astype(np.float64), spin.astype(np.float64), np.ones(spin.shape, dtype=bool))


@dataclass(frozen=True)
class Scene:
    """One drawn scene: bodies, their exact motion, and how it is talked about.

    Attributes:
        kind: its kind.
        seed: what it was drawn from.
        domain: PAI-Bench-G domain it is filed under.
        bodies: in detection order, fixtures last.
        main: index of the body that physical flaws strike.
        move: (times, gravity) -> motion; ``gravity`` multiplies the pull of the Earth, 1 is right.
        strike: seconds (start, end) between which something moves in view, so that a flaw would be seen.
        parameters: what was drawn.
        prompt: the scene in one sentence.
        captions: five other wordings.
        ask: times -> questions about what the unbroken motion shows at these times.
        reversible: whether the motion run backwards is possible too.
    """

    kind: str
    seed: int
    domain: str
    bodies: tuple[Body, ...]
    main: int
    move: Callable[[Array, float], Motion]
    strike: tuple[float, float]
    parameters: Mapping[str, float]
    prompt: str
    captions: tuple[str, ...]
    ask: Callable[[Array], list[Question]]
    reversible: bool = False

    def __post_init__(self) -> None:
        """Set the articles right: colours are drawn after the sentences were written."""
        object.__setattr__(self, "prompt", articles(self.prompt))
        object.__setattr__(self, "captions", tuple(articles(caption) for caption in self.captions))

    def simulate(self, times: Array, *, gravity: float = 1.0) -> Motion:
        """Exact motion at ``times`` (T,), seconds from the start; independent of any frame rate."""
        return self.move(np.asarray(times, dtype=np.float64), gravity)


@dataclass(frozen=True)
class Draw:
    """Seeded draws for one scene; the same seed and purpose give the same numbers, whatever else was drawn."""

    seed: int
    purpose: str
    values: dict[str, float] = field(default_factory=dict)
    rng: np.random.Generator = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Start the generator that belongs to seed and purpose."""
        object.__setattr__(self, "rng", generator(self.purpose, self.seed))

    def uniform(self, name: str, low: float, high: float) -> float:
        """A number in [low, high), kept under ``name`` among the scene's parameters."""
        self.values[name] = float(self.rng.uniform(low, high))
        return self.values[name]

    def gravity(self, low: float, high: float) -> float:
        """Pull of the Earth in scene units a second squared, for a scene unit of ``low`` to ``high`` metres."""
        self.values["gravity"] = STANDARD_GRAVITY / self.uniform("metres_per_unit", low, high)
        return self.values["gravity"]

    def sign(self) -> float:
        """-1 or 1."""
        return 1.0 if self.rng.integers(2) else -1.0

    def colours(self, count: int) -> list[tuple[str, Colour]]:
        """Distinct named colours."""
        names = list(PALETTE)
        return [(names[index], PALETTE[names[index]]) for index in self.rng.permutation(len(names))[:count]]


def generator(purpose: str, *numbers: int) -> np.random.Generator:
    """A random generator of its own for one purpose; no global state is read or changed."""
    return np.random.default_rng([zlib.crc32(purpose.encode()), *numbers])
