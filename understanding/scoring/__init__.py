"""Scoring that all tasks share: pure arithmetic on values that were read from replies."""
