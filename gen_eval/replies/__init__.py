"""Reading what a model said: reasoning blocks, answer tags, JSON repair, yes/no, choices, numbers, boxes.

One reader for all tracks (docs/replies.md); what the public code of each benchmark does in its place is data beside it.
"""

from gen_eval.replies.boxes import Box, read_boxes
from gen_eval.replies.choice import read_choice
from gen_eval.replies.dialects import dialect_names, load_dialect, read_reference
from gen_eval.replies.phrase import read_phrase
from gen_eval.replies.prelude import prelude, unwrap
from gen_eval.replies.reading import Reading
from gen_eval.replies.times import read_span
from gen_eval.replies.yes_no import read_yes_no

__all__ = [
    "Box",
    "Reading",
    "dialect_names",
    "load_dialect",
    "prelude",
    "read_boxes",
    "read_choice",
    "read_phrase",
    "read_reference",
    "read_span",
    "read_yes_no",
    "unwrap",
]
