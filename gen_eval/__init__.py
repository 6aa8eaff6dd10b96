"""gen-eval: scores for generated video that can be defended."""

__version__ = "0.1.0"
