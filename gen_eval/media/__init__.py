"""Video and pictures in and out: frames as ``(T, H, W, 3)`` uint8 RGB, times in seconds from the first frame.

The rules by which files become frames stand at the top of :mod:`gen_eval.media.stream`.
"""

from gen_eval.media.files import sha256_file
from gen_eval.media.images import Picture, encode_thumbnail, read_image, write_image
from gen_eval.media.process import DecoderPool
from gen_eval.media.reading import Clip, read_clip
from gen_eval.media.sampling import (
    All,
    AtRate,
    Explicit,
    Sampling,
    Uniform,
    frame_at,
    frames_of_interval,
    interval_of_frames,
    time_of,
)
from gen_eval.media.stream import ClipInfo, ClipStream, open_clip, probe
from gen_eval.media.writing import FALLBACK_FPS, write_clip

__all__ = [
    "FALLBACK_FPS",
    "All",
    "AtRate",
    "Clip",
    "ClipInfo",
    "ClipStream",
    "DecoderPool",
    "Explicit",
    "Picture",
    "Sampling",
    "Uniform",
    "encode_thumbnail",
    "frame_at",
    "frames_of_interval",
    "interval_of_frames",
    "open_clip",
    "probe",
    "read_clip",
    "read_image",
    "sha256_file",
    "time_of",
    "write_clip",
    "write_image",
]
