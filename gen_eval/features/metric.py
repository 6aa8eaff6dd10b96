"""The shape of a metric: facts about it, the features it needs, a meter that counts, and a decision.

A metric is written in three steps so that counts come first and ratios last:

1. ``features`` names what is computed once per member and shared (frames in a view, a blurred frame, an edge map).
2. ``meter`` returns an object that is fed chunk by chunk and keeps counts. Memory must not grow with the length of the
   clip beyond a few numbers a frame.
3. ``decide`` turns counts into a :class:`gen_eval.records.MetricResult`. Protocols that share the ``measure`` section
   share one measurement, and differ here only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

from gen_eval.features.feature import FRAMES, Array, Chunk, ClipSignal, Feature, Selection, StreamInfo
from gen_eval.records import Flag, ItemError, MetricResult

Measure: TypeAlias = Mapping[str, Any]


class Meter(Protocol):
    """Counts of one metric for one member; ``update`` is called once a chunk, in order of time.

    What ``update`` is given depends on the metric's ``inputs``: one chunk (single), the chunks of the generated and of
    the reference clip (pair), or a list with the chunk of each member (set; see :class:`SetMeter`). All hold the same
    number of frames.
    """

    def update(self, *chunks: Any) -> Sequence[float] | None:
        """Take in the next frames; may return one number a frame (larger is better) to pick the worst frame by."""

    def counts(self) -> Any:
        """What was counted so far; the argument of ``Metric.decide``."""


class SelectingMeter(Meter, Protocol):
    """The meter of a metric with selections: told about them after the last chunk and before ``counts``."""

    def end(self, selected: Mapping[Selection, Any]) -> None:
        """Take in what was computed from the chosen frames."""


class SetMeter(Meter, Protocol):
    """The meter of a metric with ``set_features``; its ``update`` is given the chunk of these only."""

    def end(self, lengths: Sequence[int]) -> None:
        """Take in how many frames each member has, after the last chunk and before ``counts``."""


Inputs: TypeAlias = Literal["single", "pair", "set"]


class Metric(ABC):
    """A metric; its facts are class attributes, found by reading the first lines of its module.

    Attributes:
        name: fixed public name, also the name of its entry point.
        version: raised whenever a value changes for equal input and parameters.
        track: ``quality`` or ``control``; which ``score`` command runs it.
        inputs: ``single`` (one clip), ``pair`` (clip and reference clip), ``set`` (all clips of a group together).
        signal: what its streams hold: ``frames``, ``depth`` (maps given beside the clip) or ``masks``.
        uses_condition_image: whether features of the condition image are handed to ``meter``. The measure section then
            has ``condition_image``: ``upright`` (any picture, converted to RGB and turned as its EXIF tag says) or
            ``stored`` (as it lies in the file; another mode than RGB is refused).
        uses_prompt: whether features of the sample's prompt are handed to ``meter`` as ``text``.
        judges_frame_before: whether what the meter's ``update`` returns belongs to the frame before the one that it
            comes with (a frame is judged when the next one is there).
        rates_reference: whether the reference clip is measured as well, for metrics of single clips; its value stands
            beside each generated clip's as ``values["reference"]``.
        marks_constant_frames: whether a clip with a frame of one colour gets the flag ``constant_frame``.
        accelerated: whether its arithmetic, without any network, runs on an accelerator where there is one.
        unit: unit of the value, ``ratio`` when it has none.
        further_units: units of further numbers (the result's ``values``) that have another one, by name.
        curve_unit: unit of the numbers a frame in the curve named as the metric, when it is not that of the value.
        bounds: least and largest value, ``None`` where there is no bound.
        higher_is_better: direction; decides whether ``mean_missing_as_zero`` is shown.
        source: where the definition comes from.
        evidence_words: role of a picture that ``evidence`` or ``file_evidence`` gives -> what it shows, in which
            colours.
        caveat: why its values must not rank systems alone; empty for metrics that may. A metric with a caveat is shown
            and compared, and never decides.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    track: ClassVar[Literal["quality", "control"]]
    inputs: ClassVar[Inputs]
    signal: ClassVar[Literal["frames", "depth", "masks"]] = "frames"
    uses_condition_image: ClassVar[bool] = False
    uses_prompt: ClassVar[bool] = False
    judges_frame_before: ClassVar[bool] = False
    rates_reference: ClassVar[bool] = False
    accelerated: ClassVar[bool] = False
    marks_constant_frames: ClassVar[bool] = False
    unit: ClassVar[str] = "ratio"
    further_units: ClassVar[Mapping[str, str]] = {}
    curve_unit: ClassVar[str | None] = None
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    higher_is_better: ClassVar[bool] = True
    source: ClassVar[str]
    evidence_words: ClassVar[Mapping[str, str]] = {}
    caveat: ClassVar[str] = ""

    def member_features(self, measure: Measure) -> tuple[Feature, ...]:
        """Features of each generated clip that ``update`` will find in its chunk."""
        return (FRAMES,)

    def reference_features(self, measure: Measure) -> tuple[Feature, ...]:
        """Features of the reference clip; computed once for all members of the group."""
        return self.member_features(measure) if self.inputs == "pair" else ()

    def image_features(self, measure: Measure) -> tuple[Feature, ...]:
        """Features of the condition image (a chunk of one frame), for metrics with ``uses_condition_image``."""
        return ()

    def text_features(self, measure: Measure) -> tuple[Feature, ...]:
        """Features of the prompt (a chunk that is a list of one text), for metrics with ``uses_prompt``."""
        return ()

    def selections(self, measure: Measure) -> tuple[Selection, ...]:
        """What is computed from chosen frames of the whole clip; the meter is then a :class:`SelectingMeter`."""
        return ()

    def set_features(self, measure: Measure) -> tuple[Feature, ...]:
        """Features of all members together, for metrics with ``inputs == "set"``.

        Their ``compute`` takes (n, N, H, W, 3) uint8: n frames of N members of one size, side by side.
        """
        return ()

    def set_tail(self, measure: Measure) -> int:
        """Frames behind the end of the shortest member that ``set_features`` are computed of, 0 for none.

        In them, members that have ended repeat their last frame.
        """
        return 0

    def clip_signal(self, measure: Measure) -> ClipSignal | None:
        """How the file of a clip is made when it was not given, for metrics whose ``signal`` is not ``frames``.

        How the clip is shown to it stands in the measure section as well: see :mod:`gen_eval.features.rendition`.
        """
        return None

    def uses_masks(self, measure: Measure) -> bool:
        """Whether a metric of sets reads the segmentation of the sample's reference clip."""
        return False

    def networks(self, measure: Measure) -> tuple[str, ...]:
        """Checkpoints (names of ``gen_eval.weights``) that its features need; those of ``clip_signal`` not included."""
        return ()

    def evidence(self, chunks: Sequence[Chunk], index: int) -> Mapping[str, Array]:
        """Pictures that show why frame ``index`` of the chunks counts as it does.

        Args:
            chunks: what ``update`` of the meter was given.
            index: frame of the chunk.

        Returns:
            Role (snake case) -> (H, W, 3) uint8 RGB.
        """
        return {}

    def file_evidence(
        self, counts: Any, member: Path, reference: Path, measure: Measure
    ) -> tuple[int | None, Mapping[str, Array]]:
        """The worst frame, and pictures that show why, for metrics that count files (``measure_files``).

        Returns:
            Number of the frame (``None`` when no frame stands out), and role -> (H, W, 3) uint8 RGB.
        """
        return None, {}

    @abstractmethod
    def meter(
        self, measure: Measure, member: StreamInfo | Sequence[StreamInfo], *, image: Chunk | None = None
    ) -> Meter:
        """A fresh meter; ``member`` is a list of all members for ``set`` metrics.

        A metric with ``uses_prompt`` also takes the keyword ``text``, the features of the prompt.

        Raises:
            ItemError: the clip cannot be measured (``too_small``, ``size_mismatch``).
        """

    def measure_files(
        self, member: Path, reference: Path, measure: Measure, *, limit: int | None
    ) -> tuple[Any, Coverage]:
        """Counts of one generated clip from files given beside it, for metrics whose ``signal`` is not ``frames``.

        Args:
            member: depth maps or segmentation of the generated clip.
            reference: those of the reference clip.
            measure: section of the protocol.
            limit: only the first frames are used.

        Raises:
            ItemError: a file cannot be read (``undecodable``), or the two cannot be compared.
        """
        raise NotImplementedError(f"{self.name} works on frames")

    def named(self, error: ItemError, decide: Mapping[str, Any]) -> ItemError:
        """The problem of an item as it is under the ``decide`` section of a protocol, where rules change it."""
        return error

    @abstractmethod
    def decide(self, counts: Any, decide: Mapping[str, Any]) -> MetricResult:
        """The result for ``counts`` under the ``decide`` section of a protocol."""


@dataclass(frozen=True)
class Coverage:
    """How two paired clips met.

    Attributes:
        common: frames that were compared.
        member: frames of the generated clip (after the preset's limit).
        reference: frames of the reference clip (after the preset's limit).
        resized: whether generated frames were brought to the reference's size.
        fps: rates of generated and reference clip, where known.
    """

    common: int
    member: int
    reference: int
    resized: bool = False
    fps: tuple[float | None, float | None] = (None, None)

    @property
    def covered(self) -> float:
        """Share of the reference clip's frames that were compared, 0..1."""
        return self.common / self.reference if self.reference else 0.0

    @property
    def flags(self) -> tuple[Flag, ...]:
        """``short_clip``, ``long_clip``, ``resized`` and ``fps_mismatch`` (rates more than 1 % apart)."""
        own, other = self.fps
        mismatch = own is not None and other is not None and abs(own - other) > 0.01 * other
        found = {
            Flag.SHORT_CLIP: self.member < self.reference,
            Flag.LONG_CLIP: self.member > self.reference,
            Flag.RESIZED: self.resized,
            Flag.FPS_MISMATCH: mismatch,
        }
        return tuple(flag for flag, present in found.items() if present)

    def annotate(self, result: MetricResult) -> MetricResult:
        """``result`` with these flags, and ``covered`` and the frame counts in its detail."""
        frames = {"member": self.member, "reference": self.reference, "compared": self.common}
        return result.with_flags(*self.flags).with_detail(covered=self.covered, frames=frames)
