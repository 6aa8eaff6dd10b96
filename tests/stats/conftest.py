"""Recorded numbers that the statistics are held against."""

import csv
import json
from pathlib import Path

import pytest

GOLDENS = Path(__file__).parent.parent / "goldens" / "stats"


@pytest.fixture(scope="session")
def bootstrap_golden():
    return json.loads((GOLDENS / "bootstrap.json").read_text())


@pytest.fixture(scope="session")
def correlation_golden():
    return json.loads((GOLDENS / "correlation.json").read_text())["correlations"]


@pytest.fixture(scope="session")
def nine_systems():
    """The published table of ratings and scores as columns by name."""
    with (GOLDENS / "pai_table8.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] if name == "model" else float(row[name]) for row in rows] for name in rows[0]}
