"""Quality dimensions of a video on its own; the metrics here need no weights."""

from gen_eval.quality.temporal_flickering import temporal_flickering

__all__ = ["temporal_flickering"]
