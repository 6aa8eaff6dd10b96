"""Numbers, statuses, reasons and flags as people read them; reports, comparisons and tables share these words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gen_eval.records import Flag, Reason, Status
from gen_eval.stats import Aggregate

if TYPE_CHECKING:
    from gen_eval.mllm.asking import Tally

NO_VALUE = "–"


def number(value: float | None, unit: str) -> str:
    """A value: ratios in percent with two decimals, everything else with four figures in its own unit.

    Example:
        >>> number(0.98765, "ratio"), number(0.25, "seconds"), number(None, "ratio")
        ('98.77 %', '0.25', '–')
    """
    if value is None:
        return NO_VALUE
    return f"{100 * value:.2f} %" if unit == "ratio" else f"{value:.4g}"


def difference(value: float | None, unit: str) -> str:
    """A difference with its sign: that of ratios in percentage points.

    Example:
        >>> difference(-0.0123, "ratio")
        '-1.23 points'
        >>> difference(-0.0000321, "ratio")  # not a zero
        '-0.003 points'
    """
    if value is None:
        return NO_VALUE
    if unit != "ratio":
        return f"{value:+.4g}"
    points = 100 * value
    return f"{points:+.1g} points" if 0 < abs(points) < 0.005 else f"{points:+.2f} points"


def bare(value: float, unit: str) -> float:
    """``value`` on the scale that it is printed in (percent for ratios)."""
    return 100 * value if unit == "ratio" else value


def unit_of(unit: str) -> str:
    """How the unit is printed: ``%`` for ratios, nothing for a unit that is not known."""
    return {"ratio": "%", "unknown": ""}.get(unit, unit)


def interval(one: Aggregate) -> str:
    """The interval of an aggregate, or a dash."""
    return ends(one.lower, one.upper, one.unit)


def ends(lower: float | None, upper: float | None, unit: str) -> str:
    """Both ends of an interval, or a dash."""
    if lower is None or upper is None:
        return NO_VALUE
    if unit == "ratio":
        return f"{100 * lower:.2f} … {100 * upper:.2f} %"
    return f"{lower:.4g} … {upper:.4g}"


def span(lower: float | None, upper: float | None, unit: str) -> str:
    """Both ends of the interval of a difference, or a dash.

    Example:
        >>> span(-0.02, 0.01, "ratio")
        '-2.00 … +1.00 points'
    """
    if lower is None or upper is None:
        return NO_VALUE
    return f"{difference(lower, unit).removesuffix(' points')} … {difference(upper, unit)}"


def placement(recorded: Mapping[str, Any]) -> str:
    """Where networks run and in which number format, as a manifest records it.

    Example:
        >>> placement({"device": "cuda", "dtype": "bfloat16", "compile": True})
        'cuda, bfloat16, compiled'
    """
    return f"{recorded['device']}, {recorded['dtype']}{', compiled' if recorded['compile'] else ''}"


def counted(count: int, singular: str, plural: str | None = None) -> str:
    """``1 video``, ``3 videos``.

    Example:
        >>> counted(1, "video"), counted(3, "video")
        ('1 video', '3 videos')
    """
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def listed(names: list[str] | tuple[str, ...], shown: int = 5) -> str:
    """The first names, and how many more there are.

    Example:
        >>> listed(["a", "b", "c"], shown=2)
        'a, b and 1 more'
    """
    text = ", ".join(names[:shown])
    return text if len(names) <= shown else f"{text} and {len(names) - shown:,} more"


STATUS_WORDS: dict[Status, str] = {
    Status.OK: "has a value",
    Status.UNDEFINED: "the input is fine, the metric has no value for it",
    Status.REFUSED: "a model or endpoint declined",
    Status.SKIPPED: "not attempted: a needed part is absent",
    Status.FAILED: "the input or the attempt was broken",
}

REASON_WORDS: dict[Reason, str] = {
    Reason.MISSING_VIDEO: "there is no video file for this sample and member",
    Reason.UNDECODABLE: "no frame of the file could be decoded",
    Reason.DECODE_TIMEOUT: "the decoder did not answer in the set time",
    Reason.DUPLICATE_VIDEO: "several files claim this sample and member",
    Reason.NOT_UINT8_RGB: "the frames are not 8-bit RGB",
    Reason.SIZE_CHANGES: "the frame size changes within the video",
    Reason.ASPECT_MISMATCH: "the clip and its reference differ in shape by more than the protocol allows",
    Reason.SIZE_MISMATCH: "clips that must be equal in size are not",
    Reason.TOO_FEW_FRAMES: "fewer frames than the metric needs",
    Reason.TOO_SMALL: "the frames are smaller than the metric needs",
    Reason.NO_VALID_DEPTH: "no frame has a pixel with valid depth",
    Reason.NO_REFERENCE_OBJECTS: "nothing was detected in the reference clip",
    Reason.TOO_FEW_CLIPS: "fewer clips of the sample than the metric needs",
    Reason.MISSING_CONDITION_IMAGE: "the condition image is absent",
    Reason.MISSING_PROMPT: "the sample has no prompt",
    Reason.NOT_FINITE: "the formula gave no finite number",
    Reason.OUT_OF_MEMORY: "memory ran out",
    Reason.MISSING_WEIGHTS: "the weights, or what a network would have made of the clip, are absent",
    Reason.BAD_WEIGHTS: "the weights could not be used",
    Reason.MISSING_GROUND_TRUTH: "the data has nothing to compare with",
    Reason.GENERATOR_DECLINED: "the generator declined",
    Reason.REFERENCE_STOPS: "the public reference code stops on this input",
    Reason.REFERENCE_UNSET: "the public reference code leaves this number unset",
    Reason.INTERNAL_ERROR: "an unexpected error; its traceback is in run.log.jsonl",
    Reason.MISSING_REPLY: "there is no reply for this sample",
    Reason.CONTENT_FILTER: "a content filter stopped the reply",
    Reason.ENDPOINT_ERROR: "the endpoint answered with an error",
    Reason.CONTEXT_OVERFLOW: "the request is longer than the model's context",
    Reason.MISSING_DEMONSTRATIONS: "the demonstrations are absent",
    Reason.MISSING_MEDIA: "the sample's media is absent",
    Reason.NOT_CONNECTED: "the votes do not connect all systems",
    Reason.ONE_SIDED: "a system won or lost every comparison",
    Reason.TOO_FEW_SYSTEMS: "fewer than three systems in common",
    Reason.NO_VARIANCE: "one side has the same value everywhere",
}

FLAG_WORDS: dict[Flag, str] = {
    Flag.TRUNCATED: "fewer frames than the file declares",
    Flag.PIXEL_ASPECT: "pixels are not square; frames are used as stored",
    Flag.UNKNOWN_DOMAIN: "the sample's domain is not known; it counts in the whole and in no domain",
    Flag.RESIZED: "frames were resized to the reference clip",
    Flag.SHORT_CLIP: "fewer frames than the reference clip",
    Flag.LONG_CLIP: "more frames than the reference clip; the surplus is left out",
    Flag.FPS_MISMATCH: "the frame rate differs from the reference clip's; frames are paired by number",
    Flag.VARIABLE_FPS: "the time between frames varies",
    Flag.ALPHA_DROPPED: "transparency was removed",
    Flag.ROTATED: "the rotation flag was applied",
    Flag.NOT_8_BIT: "deeper samples were brought to 8 bit",
    Flag.FRAMES_REPEATED: "fewer frames than the sampler draws; some are used twice",
    Flag.FEW_FRAMES: "very few frames",
    Flag.ENLARGED: "small frames were enlarged",
    Flag.CONSTANT_FRAME: "a frame has one colour only",
    Flag.NO_EDGES: "neither clip has an edge",
    Flag.NO_EDGES_ONE_SIDE: "only one of the clips has edges",
    Flag.DEAD_FRAMES: "frames without valid depth were left out",
    Flag.NO_DETECTIONS: "nothing was detected in the generated clip",
    Flag.MISSING_CLASS: "a class of the reference clip is missing",
    Flag.EXTRA_CLASS: "the generated clip has an additional class",
    Flag.CLIP_COUNT: "another number of clips than the publication used",
    Flag.UNPARSED: "the reply could not be read",
    Flag.EMPTY: "the reply is empty",
    Flag.NOT_TEXT: "the reply is not text",
    Flag.UNCLOSED_REASONING: "the reasoning block was not closed",
    Flag.BAD_JSON: "the reply holds no readable JSON",
    Flag.AMBIGUOUS: "the reply can be read in several ways",
    Flag.NOT_AN_OPTION: "the reply names no option",
    Flag.NO_ANSWER: "the reply gives no answer",
    Flag.OUT_OF_RANGE: "a number lies outside the declared range",
    Flag.NO_USABLE_BOX: "the reply has no usable box",
    Flag.NO_USABLE_EVENT: "the reply has no usable event",
    Flag.CLIPPED: "a number was clipped to its range",
    Flag.CORNERS_SWAPPED: "the corners of a box were swapped",
    Flag.SCALE_SUSPECT: "the scale of the coordinates is suspect",
    Flag.ORDER_SUSPECT: "the order of the coordinates is suspect",
    Flag.CUT_OFF: "the reply was cut off",
    Flag.SEVERAL_SPANS: "the reply names several spans",
    Flag.RANDOM_DRAW: "the answer was drawn at random by the rule",
}


def tally_line(tally: Tally) -> str:
    """What asking came to, in a line.

    >>> from gen_eval.mllm.asking import Tally
    >>> tally_line(Tally(requests=3, retries=1, cached=2))
    '3 requests (1 of them again), 2 questions answered by the reply to an equal request'
    """
    parts = [counted(tally.requests, "request") + (f" ({tally.retries} of them again)" if tally.retries else "")]
    if tally.cached:
        parts.append(f"{counted(tally.cached, 'question')} answered by the reply to an equal request")
    if tally.failed:
        parts.append(f"{tally.failed} without a reply")
    tokens = [tally.usage.prompt_tokens, tally.usage.completion_tokens]
    if any(tokens):
        parts.append(f"{tokens[0] or 0:,} tokens in and {tokens[1] or 0:,} out")
    if tally.cost is not None:
        parts.append(f"{tally.cost:.4g} {tally.currency}")
    return ", ".join(parts)


def ignored_line(counts: Mapping[str, int]) -> str:
    """Options that were asked for and had no effect, with the number of replies that say so.

    >>> ignored_line({"logprobs": 12, "top_k": 12})
    'without effect with this model: logprobs (12 replies), top_k (12 replies)'
    """
    named = ", ".join(f"{name} ({counted(count, 'reply', 'replies')})" for name, count in counts.items())
    return f"without effect with this model: {named}"
