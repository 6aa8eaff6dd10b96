"""Benchmarks of the G and C tracks: reading their layouts, and matching videos to their samples.

Layouts (`layouts`): PAI-Bench-G, PAI-Bench-C, a folder of reference videos, nothing but the generated videos; sample
files (`samples_file`): JSON lines. Names of generated files are read in `naming`, files are matched in `matching`.
"""

from gen_eval.data.benchmark import Benchmark, Rejected
from gen_eval.data.layouts import detect_layout, load_benchmark
from gen_eval.data.matching import Matched, match_videos
from gen_eval.data.naming import VIDEO_SUFFIXES, list_videos, split_name
from gen_eval.data.samples_file import load_samples_file

__all__ = [
    "VIDEO_SUFFIXES",
    "Benchmark",
    "Matched",
    "Rejected",
    "detect_layout",
    "list_videos",
    "load_benchmark",
    "load_samples_file",
    "match_videos",
    "split_name",
]
