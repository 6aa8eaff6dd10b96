"""Scoring that all tasks share: pure arithmetic on values that were read from replies."""

from understanding.scoring.aggregate import GroupCount, TaskAggregate
from understanding.scoring.outcome import SampleScore

__all__ = ["GroupCount", "SampleScore", "TaskAggregate"]
