"""The data model: samples, generations, groups, scores, and the names that they carry.

Importing this package is cheap (no database, no NumPy-heavy module beyond NumPy itself); the store is
:mod:`gen_eval.records.store`, the run folder :mod:`gen_eval.records.run`.
"""

from gen_eval.records.answer import Answer
from gen_eval.records.errors import GenEvalError, InputError, ItemError, MissingPart
from gen_eval.records.metric_facts import MetricFacts
from gen_eval.records.model import Generation, Group, Sample, Score, canonical_json, digest_of
from gen_eval.records.reasons import Flag, Reason, Rejection, Status
from gen_eval.records.result import MetricResult

__all__ = [
    "Answer",
    "Flag",
    "GenEvalError",
    "Generation",
    "Group",
    "InputError",
    "ItemError",
    "MetricFacts",
    "MetricResult",
    "MissingPart",
    "Reason",
    "Rejection",
    "Sample",
    "Score",
    "Status",
    "canonical_json",
    "digest_of",
]
