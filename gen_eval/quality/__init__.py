"""Quality dimensions of a video on its own; all but temporal flickering ask a network and need its checkpoint."""

from gen_eval.quality.aesthetic_quality import aesthetic_quality
from gen_eval.quality.background_consistency import background_consistency
from gen_eval.quality.dynamic_degree import dynamic_degree
from gen_eval.quality.i2v_background import i2v_background
from gen_eval.quality.i2v_subject import i2v_subject
from gen_eval.quality.imaging_quality import imaging_quality
from gen_eval.quality.motion_smoothness import motion_smoothness
from gen_eval.quality.overall_consistency import overall_consistency
from gen_eval.quality.subject_consistency import subject_consistency
from gen_eval.quality.temporal_flickering import temporal_flickering

__all__ = [
    "aesthetic_quality",
    "background_consistency",
    "dynamic_degree",
    "i2v_background",
    "i2v_subject",
    "imaging_quality",
    "motion_smoothness",
    "overall_consistency",
    "subject_consistency",
    "temporal_flickering",
]
