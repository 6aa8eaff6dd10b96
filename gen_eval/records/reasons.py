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
    MISSING_VIDEO = "missing_video"  # a sample has no file
    UNDECODABLE = "undecodable"  # no frame (no map, no mask) could be read
    DECODE_TIMEOUT = "decode_timeout"  # the decoder did not answer in time
    DUPLICATE_VIDEO = "duplicate_video"  # several files claim one sample and member
    NOT_UINT8_RGB = "not_uint8_rgb"  # an array of another type, layout or range
    SIZE_CHANGES = "size_changes"  # frames of one video differ in size
    ASPECT_MISMATCH = "aspect_mismatch"  # width / height of two clips differ by more than 5 %
    SIZE_MISMATCH = "size_mismatch"  # clips that must have one size do not
    # quality and control
    TOO_FEW_FRAMES = "too_few_frames"  # fewer frames than the metric needs
    TOO_SMALL = "too_small"  # a side is below what the metric needs
    NO_VALID_DEPTH = "no_valid_depth"  # no frame has a valid pixel
    NO_REFERENCE_OBJECTS = "no_reference_objects"  # nothing was found in the reference clip
    TOO_FEW_CLIPS = "too_few_clips"  # diversity of fewer than two
    MISSING_CONDITION_IMAGE = "missing_condition_image"  # the picture that the clip starts from is absent
    MISSING_PROMPT = "missing_prompt"  # a metric that reads the text has none
    NOT_FINITE = "not_finite"  # the formula or the network gave NaN or infinity
    OUT_OF_MEMORY = "out_of_memory"  # too large even with one frame at a time, or the system killed the process
    MISSING_WEIGHTS = "missing_weights"  # a checkpoint, or the signal that its network would make, is absent
    BAD_WEIGHTS = "bad_weights"  # a checkpoint's digest or names do not fit
    MISSING_GROUND_TRUTH = "missing_ground_truth"  # no reference clip, depth or masks for this sample
    GENERATOR_DECLINED = "generator_declined"  # the generator refused the sample
    REFERENCE_STOPS = "reference_stops"  # the public code raises on this item
    REFERENCE_UNSET = "reference_unset"  # the public code catches an error and leaves the number unset
    INTERNAL_ERROR = "internal_error"  # a surprise; the traceback is in the log
    # replies
    MISSING_REPLY = "missing_reply"  # a sample without a prediction
    CONTENT_FILTER = "content_filter"  # the endpoint declined to answer
    ENDPOINT_ERROR = "endpoint_error"  # the call of the model failed
    CONTEXT_OVERFLOW = "context_overflow"  # the question does not fit the model's context
    MISSING_DEMONSTRATIONS = "missing_demonstrations"  # examples were asked for and there is no ranking
    MISSING_MEDIA = "missing_media"  # a question without its video or picture
    # human study and statistics
    NOT_CONNECTED = "not_connected"  # the comparisons do not link all systems
    ONE_SIDED = "one_sided"  # one system always wins or loses
    TOO_FEW_SYSTEMS = "too_few_systems"  # correlation of fewer than three
    NO_VARIANCE = "no_variance"  # correlation or agreement of a constant column

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
    TRUNCATED = "truncated"  # fewer frames than the container declares
    PIXEL_ASPECT = "pixel_aspect"  # pixels are not square; used as stored
    UNKNOWN_DOMAIN = "unknown_domain"  # the sample counts in the whole and in no domain
    RESIZED = "resized"  # brought to the size of the reference clip
    SHORT_CLIP = "short_clip"  # fewer frames than the reference clip
    LONG_CLIP = "long_clip"  # surplus frames left out
    FPS_MISMATCH = "fps_mismatch"  # rates differ by more than 1 %; frames pair by index
    VARIABLE_FPS = "variable_fps"  # frame steps differ; sampling goes by time stamps
    ALPHA_DROPPED = "alpha_dropped"  # transparency removed
    ROTATED = "rotated"  # rotation flag applied
    NOT_8_BIT = "not_8_bit"  # deeper samples brought to 8 bit
    # quality and control
    FRAMES_REPEATED = "frames_repeated"  # fewer frames than are drawn; some are used twice
    FEW_FRAMES = "few_frames"  # very few frames for this network
    ENLARGED = "enlarged"  # enlarged for the network
    CONSTANT_FRAME = "constant_frame"  # a frame has one colour only; SSIM took range 255 where it is of the reference
    NO_EDGES = "no_edges"  # neither clip has an edge; F1 is 1
    NO_EDGES_ONE_SIDE = "no_edges_one_side"  # one clip has none; F1 is 0
    DEAD_FRAMES = "dead_frames"  # frames without a valid depth pixel left out
    NO_DETECTIONS = "no_detections"  # nothing found in the generated clip; value 0
    MISSING_CLASS = "missing_class"  # more classes on the reference side
    EXTRA_CLASS = "extra_class"  # more classes on the generated side
    CLIP_COUNT = "clip_count"  # diversity of another number of clips than six
    # replies
    UNPARSED = "unparsed"  # the reply could not be read; value 0
    EMPTY = "empty"  # empty reply
    NOT_TEXT = "not_text"  # the reply is no text
    UNCLOSED_REASONING = "unclosed_reasoning"  # the reasoning never ended
    BAD_JSON = "bad_json"  # JSON that cannot be repaired
    AMBIGUOUS = "ambiguous"  # several answers
    NOT_AN_OPTION = "not_an_option"  # an answer that is none of the options
    NO_ANSWER = "no_answer"  # no answer in the text
    OUT_OF_RANGE = "out_of_range"  # a value outside the declared range
    NO_USABLE_BOX = "no_usable_box"  # no box is left
    NO_USABLE_EVENT = "no_usable_event"  # no event is left
    CLIPPED = "clipped"  # cut to the picture
    CORNERS_SWAPPED = "corners_swapped"  # corners put in order
    SCALE_SUSPECT = "scale_suspect"  # the unit looks wrong
    ORDER_SUSPECT = "order_suspect"  # the order of coordinates looks wrong
    CUT_OFF = "cut_off"  # the reply ends in the middle
    SEVERAL_SPANS = "several_spans"  # more than one span
    RANDOM_DRAW = "random_draw"  # the public harness draws a letter


class Rejection(StrEnum):
    """Why a line or a file was listed and not used; such things have no row."""

    UNKNOWN_VIDEO = "unknown_video"  # a file that belongs to no sample
    LINE_NOT_JSON = "line_not_json"  # a line that is no JSON
    MALFORMED_RECORD = "malformed_record"  # a record of another form
    DUPLICATE_ID = "duplicate_id"  # an id that came before
    NO_TRUTH = "no_truth"  # a sample without a right answer
    DUPLICATE_REPLY = "duplicate_reply"  # a second reply for one question
    UNKNOWN_SAMPLE = "unknown_sample"  # a reply to no sample
    CONFLICTING_FIELDS = "conflicting_fields"  # two fields that should agree
    SELF_VOTE = "self_vote"  # a system against itself
    UNKNOWN_LABEL = "unknown_label"  # a label that is not known
    DUPLICATE_VOTE = "duplicate_vote"  # a vote that came before
    MISSING_FIELD = "missing_field"  # a field that is needed is absent


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
