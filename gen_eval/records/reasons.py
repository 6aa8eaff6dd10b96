"""Every status, reason and flag that a score can carry: one list for all tracks.

A reason says why there is no number; a flag says what was unusual about a number that is there. Both are snake-case
names without parameters, so that a report can be filtered by them; numbers belong into the row's ``detail``.
"""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """What became of one score.

    ``undefined`` means that the input is fine and the metric has no value for it; ``skipped`` that a needed part is
    absent or was not asked for; ``failed`` that the input or the attempt was broken; ``refused`` that a model declined.
    """

    OK = "ok"
    UNDEFINED = "undefined"
    REFUSED = "refused"
    SKIPPED = "skipped"
    FAILED = "failed"


class Reason(StrEnum):
    """Why a score has no value."""

    # media
    MISSING_VIDEO = "missing_video"
    UNDECODABLE = "undecodable"
    DECODE_TIMEOUT = "decode_timeout"
    DUPLICATE_VIDEO = "duplicate_video"
    NOT_UINT8_RGB = "not_uint8_rgb"
    SIZE_CHANGES = "size_changes"
    ASPECT_MISMATCH = "aspect_mismatch"
    SIZE_MISMATCH = "size_mismatch"
    # quality and control
    TOO_FEW_FRAMES = "too_few_frames"
    TOO_SMALL = "too_small"
    NO_VALID_DEPTH = "no_valid_depth"
    NO_REFERENCE_OBJECTS = "no_reference_objects"
    TOO_FEW_CLIPS = "too_few_clips"
    MISSING_CONDITION_IMAGE = "missing_condition_image"
    MISSING_PROMPT = "missing_prompt"
    NOT_FINITE = "not_finite"
    OUT_OF_MEMORY = "out_of_memory"
    MISSING_WEIGHTS = "missing_weights"
    BAD_WEIGHTS = "bad_weights"
    MISSING_GROUND_TRUTH = "missing_ground_truth"
    GENERATOR_DECLINED = "generator_declined"
    REFERENCE_STOPS = "reference_stops"
    REFERENCE_UNSET = "reference_unset"
    INTERNAL_ERROR = "internal_error"
    # replies
    MISSING_REPLY = "missing_reply"
    CONTENT_FILTER = "content_filter"
    ENDPOINT_ERROR = "endpoint_error"
    CONTEXT_OVERFLOW = "context_overflow"
    MISSING_DEMONSTRATIONS = "missing_demonstrations"
    MISSING_MEDIA = "missing_media"
    # human study and statistics
    NOT_CONNECTED = "not_connected"
    ONE_SIDED = "one_sided"
    TOO_FEW_SYSTEMS = "too_few_systems"
    NO_VARIANCE = "no_variance"

    @property
    def status(self) -> Status:
        """The status that this reason always comes with."""
        return _STATUS_OF.get(self, Status.FAILED)

    @property
    def transient(self) -> bool:
        """Whether another attempt with the same input may end otherwise; only such rows are tried again on resume."""
        return self in _TRANSIENT


class Flag(StrEnum):
    """What was unusual about a score that has a value."""

    # media
    TRUNCATED = "truncated"
    PIXEL_ASPECT = "pixel_aspect"
    UNKNOWN_DOMAIN = "unknown_domain"
    RESIZED = "resized"
    SHORT_CLIP = "short_clip"
    LONG_CLIP = "long_clip"
    FPS_MISMATCH = "fps_mismatch"
    VARIABLE_FPS = "variable_fps"
    ALPHA_DROPPED = "alpha_dropped"
    ROTATED = "rotated"
    NOT_8_BIT = "not_8_bit"
    # quality and control
    FRAMES_REPEATED = "frames_repeated"
    FEW_FRAMES = "few_frames"
    ENLARGED = "enlarged"
    CONSTANT_FRAME = "constant_frame"
    NO_EDGES = "no_edges"
    NO_EDGES_ONE_SIDE = "no_edges_one_side"
    DEAD_FRAMES = "dead_frames"
    NO_DETECTIONS = "no_detections"
    MISSING_CLASS = "missing_class"
    EXTRA_CLASS = "extra_class"
    CLIP_COUNT = "clip_count"
    # replies
    UNPARSED = "unparsed"
    EMPTY = "empty"
    NOT_TEXT = "not_text"
    UNCLOSED_REASONING = "unclosed_reasoning"
    BAD_JSON = "bad_json"
    AMBIGUOUS = "ambiguous"
    NOT_AN_OPTION = "not_an_option"
    NO_ANSWER = "no_answer"
    OUT_OF_RANGE = "out_of_range"
    NO_USABLE_BOX = "no_usable_box"
    NO_USABLE_EVENT = "no_usable_event"
    CLIPPED = "clipped"
    CORNERS_SWAPPED = "corners_swapped"
    SCALE_SUSPECT = "scale_suspect"
    ORDER_SUSPECT = "order_suspect"
    CUT_OFF = "cut_off"
    SEVERAL_SPANS = "several_spans"
    RANDOM_DRAW = "random_draw"


class Rejection(StrEnum):
    """Why a line or a file was listed and not used; such things have no row."""

    UNKNOWN_VIDEO = "unknown_video"
    LINE_NOT_JSON = "line_not_json"
    MALFORMED_RECORD = "malformed_record"
    DUPLICATE_ID = "duplicate_id"
    NO_TRUTH = "no_truth"
    DUPLICATE_REPLY = "duplicate_reply"
    UNKNOWN_SAMPLE = "unknown_sample"
    CONFLICTING_FIELDS = "conflicting_fields"
    SELF_VOTE = "self_vote"
    UNKNOWN_LABEL = "unknown_label"
    DUPLICATE_VOTE = "duplicate_vote"
    MISSING_FIELD = "missing_field"


_STATUS_OF = (
    dict.fromkeys(
        (
            Reason.TOO_FEW_FRAMES,
            Reason.TOO_SMALL,
            Reason.NO_VALID_DEPTH,
            Reason.NO_REFERENCE_OBJECTS,
            Reason.TOO_FEW_CLIPS,
            Reason.REFERENCE_UNSET,
            Reason.NOT_CONNECTED,
            Reason.ONE_SIDED,
            Reason.TOO_FEW_SYSTEMS,
            Reason.NO_VARIANCE,
        ),
        Status.UNDEFINED,
    )
    | dict.fromkeys((Reason.MISSING_WEIGHTS, Reason.MISSING_GROUND_TRUTH), Status.SKIPPED)
    | dict.fromkeys((Reason.GENERATOR_DECLINED, Reason.CONTENT_FILTER), Status.REFUSED)
)

_TRANSIENT = frozenset(
    {
        Reason.DECODE_TIMEOUT,
        Reason.OUT_OF_MEMORY,
        Reason.INTERNAL_ERROR,
        Reason.ENDPOINT_ERROR,
        Reason.CONTEXT_OVERFLOW,
    }
)
