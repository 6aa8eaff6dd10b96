"""What a model sees of a video, as data: how many frames, which ones, how large, how encoded (`configs/presets`).

A preset is chosen apart from the protocol and recorded with every answer; everything in it moves replies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from gen_eval.protocols.loading import config_files, is_path, is_shown, read_config
from gen_eval.records import InputError, digest_of

_STRICT = ConfigDict(extra="forbid")
_Whole = Annotated[int, Field(ge=1)]


@dataclass(frozen=True)
class Counting:
    """How many frames are shown; exactly one of ``rate`` and ``count`` is set. They are spread from first to last.

    Attributes:
        rate: frames a second of the clip.
        count: frames, whatever the clip's length.
        least: fewest that ``rate`` leads to, as far as the clip has them.
        most: most that ``rate`` leads to; ``None`` for no limit.
        multiple: the number is brought to a multiple of this.
        rounding: how: ``half_even`` to the nearest one, ``floor`` to the next lower one.
        short: of a clip that has too few frames: ``show`` what there is, or ``stop`` as the public package does.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT
    rate: Annotated[float, Field(gt=0, le=1000)] | None = None
    count: _Whole | None = None
    least: _Whole = 1
    most: _Whole | None = None
    multiple: _Whole = 1
    rounding: Literal["half_even", "floor"] = "half_even"
    short: Literal["show", "stop"] = "show"

    def __post_init__(self) -> None:
        """Refuse a rule with two answers, or with none.

        Raises:
            ValueError: both or neither of ``rate`` and ``count``.
        """
        if (self.rate is None) == (self.count is None):
            raise ValueError(f"exactly one of rate and count must be set, not {self.rate!r} and {self.count!r}")


@dataclass(frozen=True)
class Pixels:
    """How large frames are shown: sides are multiples of a factor, the area lies between two bounds.

    Attributes:
        factor: side of what becomes one token; ``None`` takes the model family's.
        otherwise: the factor where the family has none.
        least: smallest area in pixels; smaller frames are enlarged.
        most: largest area in pixels.
        least_patches: smallest area in squares of the factor; the larger of both bounds holds.
        most_patches: largest area in squares of the factor; the smaller of both bounds holds.
        filter: of Pillow; all of them smooth when they make a frame smaller.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT
    factor: _Whole | None = None
    otherwise: _Whole = 28
    least: _Whole | None = None
    most: _Whole | None = None
    least_patches: _Whole | None = None
    most_patches: _Whole | None = None
    filter: Literal["bicubic", "lanczos", "bilinear"] = "bicubic"

    def __post_init__(self) -> None:
        """Refuse frames without bounds.

        Raises:
            ValueError: no largest area, or none between the bounds.
        """
        if self.most is None and self.most_patches is None:
            raise ValueError("the largest area must be set, as most or as most_patches")
        low, high = self.bounds(self.factor or self.otherwise)
        if low > high:
            raise ValueError(f"the smallest area is {low} pixels and the largest {high}; the smallest must come first")

    def bounds(self, factor: int) -> tuple[int, int]:
        """Smallest and largest area in pixels, for a family with this factor."""
        square = factor * factor
        least = max(self.least or 0, (self.least_patches or 0) * square, square)
        highest = [self.most, None if self.most_patches is None else self.most_patches * square]
        return least, max(square, min(bound for bound in highest if bound is not None))


@dataclass(frozen=True)
class Encoding:
    """How frames travel.

    Attributes:
        format: ``jpeg``, or ``png`` which keeps every value.
        quality: of JPEG.
        subsampling: of the colour channels of JPEG.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT
    format: Literal["jpeg", "png"] = "jpeg"
    quality: Annotated[int, Field(ge=1, le=100)] = 95
    subsampling: Literal["4:4:4", "4:2:2", "4:2:0"] = "4:4:4"


@dataclass(frozen=True)
class Fit:
    """How the largest area is lowered until a question fits the model's context.

    Attributes:
        shrink: the bound is multiplied by this again and again, down to the smallest area.
        marks: tokens that each time step (each picture) costs besides its patches: its marks and its time.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT
    shrink: Annotated[float, Field(gt=0, lt=1)] = 0.9
    marks: Annotated[int, Field(ge=0)] = 12


@dataclass(frozen=True)
class ShownPreset:
    """What of a video a model sees, under one name.

    Attributes:
        name: of the preset.
        counting: how many frames.
        pixels: how large.
        encoding: how they travel.
        fit: what gives way when the context is too small.
        form: ``model`` shows frames in the form that is best for the model, ``images`` as loose pictures in every case.
        stamps: whether each loose picture is preceded by its time.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT
    name: str
    counting: Counting
    pixels: Pixels
    encoding: Encoding = field(default_factory=Encoding)
    fit: Fit = field(default_factory=Fit)
    form: Literal["model", "images"] = "model"
    stamps: bool = False

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the preset's values."""
        return digest_of(self.to_json())

    def to_json(self) -> dict[str, Any]:
        """The preset's values, all of them, without its name."""
        return {name: value for name, value in asdict(self).items() if name != "name"}

    def with_frames(self, count: int) -> ShownPreset:
        """The same with another number of frames, 1 or more.

        Raises:
            InputError: this preset takes frames by their rate, or the number is not above 0.
        """
        if self.counting.count is None:
            raise InputError(
                f"the preset {self.name} shows {self.counting.rate:g} frames a second, so a number of frames cannot "
                "be asked of it; take a uniform one, such as 16-uniform"
            )
        if count < 1:
            raise InputError(f"at least one frame must be shown, not {count}")
        return replace(self, counting=replace(self.counting, count=count))

    def stopping(self) -> ShownPreset:
        """The same that stops at a clip with too few frames, as the public package does."""
        return replace(self, counting=replace(self.counting, short="stop"))


@lru_cache(maxsize=1)
def _shown() -> dict[str, ShownPreset]:
    table: dict[str, ShownPreset] = {}
    for path in config_files("presets"):
        for name, values in read_config("presets", str(path)).items():
            if is_shown(values):
                table.setdefault(name, _preset(name, values))
    return table


def _preset(name: str, values: Mapping[str, Any]) -> ShownPreset:
    try:
        return TypeAdapter(ShownPreset).validate_python({**values, "name": str(name)})
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, one['loc'])) or 'preset'}: {one['msg']} (got {one['input']!r:.80})"
            for one in error.errors()
        )
        raise InputError(f"the preset {name!r} cannot be used: {problems}") from None


def shown_names() -> list[str]:
    """The presets of what models see."""
    return sorted(_shown())


def load_shown(name: str) -> ShownPreset:
    """The preset ``name``: a shipped one, or the only one in the ``.yaml`` file of that path.

    Raises:
        InputError: there is none of that name, the file is malformed, or the preset is one for metrics.
    """
    if is_path(name):
        content = read_config("presets", name) if Path(name).is_file() else {}
        if len(content) != 1:
            raise InputError(f"{name} must be a file that holds exactly one preset; it has {len(content)}")
        own, values = next(iter(content.items()))
        if not is_shown(values):
            raise InputError(f"{name} does not say what a model sees; expected counting, pixels, …, not {values!r:.80}")
        return _preset(own, values)
    presets = _shown()
    if name not in presets:
        raise InputError(f"no preset {name!r} of what a model sees; there are {', '.join(sorted(presets))}")
    return presets[name]
