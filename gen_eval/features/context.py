"""What belongs to the sample and not to a clip: condition image and prompt, read once for all members of a group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gen_eval.features.extraction import ChunkFeatures
from gen_eval.features.feature import Chunk
from gen_eval.features.plan import Measurement
from gen_eval.media import read_image
from gen_eval.records import Flag, InputError, ItemError, Reason, Sample
from gen_eval.records.files import is_file

UPRIGHT, STORED = "upright", "stored"


@dataclass(frozen=True)
class _Image:
    features: ChunkFeatures
    flags: tuple[Flag, ...]
    detail: dict[str, Any]


class SampleContext:
    """Features of the sample's picture and text, made when first asked for and shared by members and metrics."""

    def __init__(self, sample: Sample) -> None:
        self._sample = sample
        self._images: dict[str, _Image | ItemError] = {}
        self._text: ChunkFeatures | None = None

    def arguments(self, measurement: Measurement) -> dict[str, Chunk]:
        """The keyword arguments ``image`` and ``text`` of the metric's meter, as far as it uses them.

        Raises:
            ItemError: ``missing_condition_image``, ``missing_prompt``, or the picture cannot be read.
        """
        metric, measure = measurement.metric, measurement.measure
        found: dict[str, Chunk] = {}
        if metric.uses_condition_image:
            found["image"] = self._image(measurement).features.of(metric.image_features(measure))
        if metric.uses_prompt:
            found["text"] = self._prompt(measurement).of(metric.text_features(measure))
        return found

    def flags(self, measurement: Measurement) -> tuple[Flag, ...]:
        """What was unusual about the picture."""
        return self._image(measurement).flags if measurement.metric.uses_condition_image else ()

    def detail(self, measurement: Measurement) -> dict[str, Any]:
        """What the row says of the picture."""
        if not measurement.metric.uses_condition_image:
            return {}
        return {"condition_image": self._image(measurement).detail}

    def variant(self, measurement: Measurement) -> str | None:
        """How the picture is read, ``None`` where that makes no difference (it is plain, or nobody looks at it)."""
        if not measurement.metric.uses_condition_image:
            return None
        rule = _rule(measurement)
        try:
            image = self._image(measurement)
        except ItemError:
            return rule
        plain = image.detail["mode"] == "RGB" and not image.flags
        return None if plain else rule

    def _image(self, measurement: Measurement) -> _Image:
        rule = _rule(measurement)
        if rule not in self._images:
            try:
                self._images[rule] = self._read(measurement.metric.name, rule)
            except ItemError as error:
                self._images[rule] = error
        found = self._images[rule]
        if isinstance(found, ItemError):
            raise found
        return found

    def _read(self, metric: str, rule: str) -> _Image:
        path = self._sample.condition_image
        if path is None or not is_file(path):
            named = "names none" if path is None else f"names {path.name}, which is not there"
            raise ItemError(Reason.MISSING_CONDITION_IMAGE, f"{metric} needs the condition image; the sample {named}")
        picture = read_image(path, upright=rule == UPRIGHT)
        mode = picture.detail["mode"]
        if rule == STORED and mode != "RGB":
            raise ItemError(
                Reason.NOT_UINT8_RGB,
                f"the condition image {path.name} is stored as {mode}; this protocol takes RGB only: convert it",
                {"condition_image": picture.detail},
            )
        return _Image(ChunkFeatures(picture.pixels[None]), picture.flags, picture.detail)

    def _prompt(self, measurement: Measurement) -> ChunkFeatures:
        if not (self._sample.prompt or "").strip():
            raise ItemError(
                Reason.MISSING_PROMPT,
                f"{measurement.metric.name} compares the clip with the prompt, and the sample {self._sample.id!r} has "
                "none; give the prompts with --data or --samples",
            )
        if self._text is None:
            self._text = ChunkFeatures([self._sample.prompt])
        return self._text


def _rule(measurement: Measurement) -> str:
    rule = measurement.measure.get("condition_image", UPRIGHT)
    if rule not in {UPRIGHT, STORED}:
        raise InputError(f"condition_image must be {UPRIGHT} or {STORED}, not {rule!r}")
    return str(rule)
