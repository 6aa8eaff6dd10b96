"""Masks of what a caption names, followed through a clip: frames in, a segmentation file out, as a stream.

1. A detector looks at the first frame and finds boxes for the words of the caption.
2. A segmenter makes one mask of each box; small ones are dropped.
3. Points are drawn from each mask, and the segmenter follows them from the first frame to the last.

torch is imported when the first clip comes.

Source: PAI-Bench-C, mask mIoU (public code); Ren et al. 2024, Grounded SAM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gen_eval.data.signal_files import MasksWriter
from gen_eval.features.feature import ClipFrames, ClipSignal, parameters_of
from gen_eval.networks.memory import memory_errors
from gen_eval.networks.placement import current
from gen_eval.networks.running import autocast
from gen_eval.records import InputError, ItemError, Reason

if TYPE_CHECKING:
    from torch import Tensor

    from gen_eval.networks.grounding import Detections

Frame = NDArray[np.uint8]
Mask = NDArray[np.bool_]

FILTERS = ("pillow_bilinear", "pillow_bicubic", "bilinear", "bilinear_antialias", "bicubic", "bicubic_antialias")
"""How a frame is resized: by Pillow in 8 bits, or on floats as torch does it, widened when it shrinks or not."""

_LARGEST_SIDE = 8192
_SEED_BITS = 0x7FFFFFFF


@dataclass(frozen=True)
class Segmenting:
    """How masks are made; the fields are those of a measure section.

    Attributes:
        detector: checkpoint that does ``detect``.
        segmenter: checkpoint that does ``segment`` and ``track``.
        detection_channels: what the detector is shown: ``rgb``, or ``bgr`` (red and blue in each other's place).
        detection_side: pixels of the shorter side of what it is shown.
        detection_longest: most pixels of the longer side; the shorter one then has fewer.
        detection_filter: see :data:`FILTERS`.
        max_tokens: tokens of the caption, with the first and the last; what is behind them is cut.
        box_threshold: a box is kept whose best token has a larger score.
        text_threshold: tokens of its phrase have a larger score.
        box_filter: filter of the first frame when masks are made of boxes.
        smallest_mask: a mask of so many pixels or fewer is dropped.
        points: drawn from each mask; with replacement where it has fewer pixels.
        point_seed: ``mask``: a generator for each mask, seeded by the sum of all x and y of its pixels; ``fixed``: one
            generator for all masks of the clip, seeded with 0.
        frame_filter: filter of the frames in which masks are followed.
        fill_holes: holes of so many pixels or fewer, of the mask as the network gives it, are filled.
        stability_delta: see :meth:`gen_eval.networks.video_segments.VideoSegments.prefer_stable`.
        stability_threshold: likewise.
    """

    detector: str
    segmenter: str
    detection_channels: str
    detection_side: int
    detection_longest: int
    detection_filter: str
    max_tokens: int
    box_threshold: float
    text_threshold: float
    box_filter: str
    smallest_mask: int
    points: int
    point_seed: str
    frame_filter: str
    fill_holes: int
    stability_delta: float
    stability_threshold: float

    def __post_init__(self) -> None:
        """Refuse what no masks are made by.

        Raises:
            InputError: the value and what is expected.
        """
        known = {
            "detection_channels": ("rgb", "bgr"), "point_seed": ("mask", "fixed"),
            "detection_filter": FILTERS, "box_filter": FILTERS, "frame_filter": FILTERS,
        }  # fmt: skip
        for name, allowed in known.items():
            if (value := getattr(self, name)) not in allowed:
                raise InputError(f"{name} is {value!r}; expected {', '.join(allowed)}")
        least = {
            "detection_side": 1, "detection_longest": 1, "max_tokens": 3, "smallest_mask": 0, "points": 1,
            "fill_holes": 0,
        }  # fmt: skip
        for name, lowest in least.items():
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < lowest:
                raise InputError(f"{name} is {value!r}; expected a whole number, {lowest} or more")
        for name in ("detection_side", "detection_longest"):
            if getattr(self, name) > _LARGEST_SIDE:
                raise InputError(f"{name} is {getattr(self, name)}; expected {_LARGEST_SIDE} pixels at most")
        for name in ("box_threshold", "text_threshold", "stability_delta", "stability_threshold"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
                raise InputError(f"{name} is {value!r}; expected a number, 0 to 1")

    @classmethod
    def of(cls, measure: Mapping[str, Any]) -> Segmenting:
        """What a measure section says.

        Raises:
            InputError: it says too little, or see above.
        """
        names = [field.name for field in fields(cls)]
        if lacking := [name for name in names if name not in measure]:
            raise InputError(f"the protocol does not say how masks are made: {', '.join(lacking)} are not given")
        return cls(**{name: measure[name] for name in names})

    def detection_size(self, height: int, width: int) -> tuple[int, int]:
        """Height and width of what the detector sees of a frame.

        Raises:
            ItemError: ``too_small``: nothing would be left of the shorter side.

        Example:
            >>> from gen_eval.protocols import load_protocol
            >>> rule = Segmenting.of(load_protocol("mask_miou", "corrected").measure)
            >>> rule.detection_size(720, 1280)
            (750, 1333)
        """
        short, long = min(height, width), max(height, width)
        exact: float = self.detection_side
        if long / short * self.detection_side > self.detection_longest:
            exact = self.detection_longest * short / long
        side = round(exact)
        size = (side, long) if short == side else (side, int(exact * long / short))
        if size[0] < 1:
            raise ItemError(
                Reason.TOO_SMALL,
                f"frames of {width}x{height} pixels (width x height) are too long a strip for the detector: nothing "
                "would be left of the shorter side; crop the clip",
                {"size_hw": [height, width]},
            )
        return size if height <= width else (size[1], size[0])


def draw_points(masks: list[Mask], rule: Segmenting) -> NDArray[np.int64]:
    """Points of each mask, to be followed.

    Args:
        masks: (H, W) bool, each with a pixel at least.
        rule: see :class:`Segmenting`.

    Returns:
        (n, points, 2): x and y.
    """
    drawn = np.zeros((len(masks), rule.points, 2), np.int64)
    fixed = np.random.default_rng(0)
    for mask, place in zip(masks, drawn, strict=True):
        rows, columns = np.nonzero(mask)
        seed = int(rows.sum() + columns.sum()) & _SEED_BITS
        generator = fixed if rule.point_seed == "fixed" else np.random.default_rng(seed)
        chosen = generator.choice(len(rows), rule.points, replace=len(rows) < rule.points)
        place[:] = np.stack([columns[chosen], rows[chosen]], axis=1)
    return drawn


def write_masks_of_clip(clip: ClipFrames, target: Path, **parameters: Any) -> Mapping[str, Any]:
    """Write the masks of what the prompt of ``clip`` names to ``target`` (``.masks.json``), frame by frame.

    An object without a phrase is not followed, as it would be dropped at the end; its points are drawn. Equal frames
    give equal masks, however they are cut into chunks.

    Args:
        clip: frames of one size, with a prompt.
        target: the file.
        parameters: fields of :class:`Segmenting`.

    Returns:
        What a row says of it: the networks, the phrases and scores of the objects, how many boxes were found, how
        many masks were dropped and how many objects had no phrase, and how many tokens of the prompt were cut.

    Raises:
        ItemError: ``missing_prompt``; see :func:`gen_eval.networks.loading.loaded`; ``too_small``; ``not_finite``;
            ``undecodable``: the clip has no frame.
        InputError: the parameters fit neither together nor to the networks.
        MemoryError: a single frame does not fit.
    """
    rule, text = Segmenting.of(parameters), clip.info.prompt
    if text is None or not text.strip():
        said = (
            "objects are found by the words of the prompt, and the sample has none; give it one in captions/ID.json of "
            "--data, or as captions in --samples"
        )
        raise ItemError(Reason.MISSING_PROMPT, said)
    frames = (np.array(frame) for chunk in clip.chunks for frame in chunk)  # copies: some wait for later ones
    first = next(frames, None)
    if first is None:
        raise ItemError(Reason.UNDECODABLE, "the clip has no frame that objects could be found in")
    found, masks = _first_masks(first, text, rule)
    large = [place for place, mask in enumerate(masks) if int(mask.sum()) > rule.smallest_mask]
    points = draw_points([masks[place] for place in large], rule)
    named = [order for order, place in enumerate(large) if found.phrases[place]]
    kept = [large[order] for order in named]
    phrases = [found.phrases[place] for place in kept]
    with MasksWriter(target, phrases, *first.shape[:2]) as writer:
        for frame_masks in _followed(chain([first], frames), points[named], rule):
            writer.add(frame_masks)
    return {
        "networks": [rule.detector, rule.segmenter],
        "dtype": current().dtype,
        "phrases": phrases,
        "scores": [float(found.scores[place]) for place in kept],
        "boxes": len(found.boxes),
        "dropped_masks": len(masks) - len(large),
        "without_phrase": len(large) - len(named),
        "tokens_cut": found.cut,
    }


def _first_masks(frame: Frame, text: str, rule: Segmenting) -> tuple[Detections, list[Mask]]:
    """What was found in the first frame, and the mask (H, W) of each."""
    from gen_eval.networks.loading import able

    detector = able(rule.detector, "detect")
    height, width = frame.shape[:2]
    shown_frame = frame[..., ::-1] if rule.detection_channels == "bgr" else frame
    picture = _picture(shown_frame, rule.detection_size(height, width), rule.detection_filter)
    thresholds = {name: getattr(rule, name) for name in ("max_tokens", "box_threshold", "text_threshold")}
    found: Detections = _run(rule.detector, detector, lambda: detector.detect(picture, text, **thresholds))
    if not len(found.boxes):
        return found, []

    import torch

    segmenter = _segmenter(rule)
    square = _picture(frame, (segmenter.side, segmenter.side), rule.box_filter)
    boxes = torch.from_numpy(found.boxes)
    low = _run(rule.segmenter, segmenter, lambda: segmenter.segment(square, boxes.to(square.device)))
    return found, list(_masks(rule, segmenter, low, (height, width)))


def _followed(frames: Iterator[Frame], points: NDArray[np.int64], rule: Segmenting) -> Iterator[NDArray[np.bool_]]:
    """Masks (n, H, W) of each frame, by points (n, k, 2) in the first."""
    if not len(points):
        yield from (np.zeros((0, *frame.shape[:2]), np.bool_) for frame in frames)
        return

    import torch

    from gen_eval.networks.video_segments import fill_holes

    segmenter = _segmenter(rule)
    waiting = list(islice(frames, segmenter.looks_back))
    height, width = waiting[0].shape[:2]
    shares = torch.from_numpy((points / (width, height)).astype(np.float32)).to(current().device)
    tracker = segmenter.track(shares, len(waiting) if len(waiting) < segmenter.looks_back else None)
    for frame in chain(waiting, frames):
        square = _picture(frame, (segmenter.side, segmenter.side), rule.frame_filter)

        def step(square: Tensor = square) -> Tensor:
            return fill_holes(tracker.step(square), rule.fill_holes)

        yield _masks(rule, segmenter, _run(rule.segmenter, segmenter, step), (height, width))


def _segmenter(rule: Segmenting) -> Any:
    from gen_eval.networks.loading import able

    segmenter = able(rule.segmenter, "track")
    segmenter.prefer_stable(rule.stability_delta, rule.stability_threshold)
    return segmenter


def _masks(rule: Segmenting, segmenter: Any, low: Tensor, size: tuple[int, int]) -> NDArray[np.bool_]:
    """Logits (n, h, w) as masks (n, H, W)."""
    from gen_eval.networks.video_segments import at_size

    masks: NDArray[np.bool_] = _run(rule.segmenter, segmenter, lambda: at_size(low, *size).cpu().numpy())
    return masks


def _picture(frame: Frame, size: tuple[int, int], kind: str) -> Tensor:
    """What a network sees of a frame: (1, 3, *size) on the device, resized where all devices round alike."""
    import torch

    from gen_eval.networks.views import at_size

    with torch.inference_mode(), memory_errors():
        seen = at_size(
            np.ascontiguousarray(frame)[None],
            size,
            filter=kind.removeprefix("pillow_").removesuffix("_antialias"),
            antialias=kind.endswith("_antialias"),
            backend="pillow" if kind.startswith("pillow_") else "torch",
            normalise="imagenet",
        )
        return seen.to(current().device)


def _run(name: str, module: Any, compute: Callable[[], Any]) -> Any:
    """``compute()`` as a network runs. Nothing is yielded in here: what is set up belongs to the thread."""
    import torch

    from gen_eval.networks.loading import shown

    with torch.inference_mode(), memory_errors(), shown(name), autocast(module):
        return compute()


def masks_signal(measure: Mapping[str, Any]) -> ClipSignal:
    """The segmentation that the networks of ``measure`` make of a clip.

    Raises:
        InputError: see :class:`Segmenting`.
    """
    rule = Segmenting.of(measure)
    parameters = {field.name: getattr(rule, field.name) for field in fields(rule)}
    return ClipSignal(
        "masks", ".masks.json", write_masks_of_clip, (rule.detector, rule.segmenter), parameters_of(parameters),
        uses_prompt=True,
    )  # fmt: skip
