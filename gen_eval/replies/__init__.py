"""Reading what a model said: reasoning blocks, answer tags, JSON repair, yes/no, choices, numbers, boxes.

One reader for all tracks (docs/replies.md); what the public code of each benchmark does in its place is data beside it.
"""

from gen_eval.replies.reading import Reading

__all__ = ["Reading"]
