"""Reports of runs: one self-contained HTML page, CSV, Parquet, JSON, a LaTeX table.

Equal runs give equal bytes in every form: a report is made of manifests, rows, curves and pictures only, all in key
order, and never of times, paths or the environment that writes it.
"""

from api.services.reporting.limits import Limits
from api.services.reporting.writing import SUFFIXES, render, write_report

__all__ = ["SUFFIXES", "Limits", "render", "write_report"]
