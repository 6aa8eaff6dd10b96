"""Checkpoints: which there are, where they lie, under which licence, and how they are opened safely.

The catalogue is data (``configs/weights/*.yaml``; a file of the folder ``GEN_EVAL_CONFIGS`` wins id by id). A file of
checkpoint ``ID`` lies at ``<weights folder>/<ID>/<file>``. Nothing here downloads by itself: ``gen-eval weights fetch``
does. Importing this package imports no torch.
"""

from gen_eval.weights.catalogue import Checkpoint, Source, checkpoint, checkpoint_names, manifest, terms_of
from gen_eval.weights.located import Located, digest, locate, with_needs
from gen_eval.weights.state import absent, check_folder, check_names, load_state, load_together

__all__ = [
    "Checkpoint",
    "Located",
    "Source",
    "absent",
    "check_folder",
    "check_names",
    "checkpoint",
    "checkpoint_names",
    "digest",
    "load_state",
    "load_together",
    "locate",
    "manifest",
    "terms_of",
    "with_needs",
]
