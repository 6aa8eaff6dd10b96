"""Protocols and presets as data: loaded from YAML, frozen, with a digest.

A *protocol* fixes how a metric computes; a *preset* fixes what it is shown. Code asks for a parameter's value and never
which protocol it is. Files ship in ``configs/``; a directory named by ``GEN_EVAL_CONFIGS`` is searched first.

A file ``protocols/<track>.yaml`` maps metric -> protocol name -> four sections:

* ``measure``: what decides the counts (filters, thresholds, precision). Protocols with equal sections share one
  measurement, so their numbers come out of one pass.
* ``decide``: how counts become a value where the protocols differ (degenerate cases).
* ``reasons``: reasons that this protocol calls otherwise (``too_small: reference_stops``).
* ``exceptions``: what the public code raises where a reason is called ``reference_stops``.
* ``aggregate``: how values of videos become one number.

A benchmark's file (``benchmarks/``) says which scores make up its totals (``totals``), and how its table is printed
(``track``, ``columns``, ``conditions``).

``base: NAME`` takes over another protocol of the same metric and lists the changes only.
"""

from gen_eval.protocols.columns import (
    PublishedColumn,
    PublishedTable,
    columns_by_score,
    in_published_order,
    published_table,
    published_tables,
)
from gen_eval.protocols.loading import (
    config_files,
    config_names,
    config_path,
    load_preset,
    load_protocol,
    preset_names,
    protocol_names,
)
from gen_eval.protocols.model import Preset, Protocol
from gen_eval.protocols.totals import TotalRule, total_rules, totals_of

__all__ = [
    "Preset",
    "Protocol",
    "PublishedColumn",
    "PublishedTable",
    "TotalRule",
    "columns_by_score",
    "config_files",
    "config_names",
    "config_path",
    "in_published_order",
    "load_preset",
    "load_protocol",
    "preset_names",
    "protocol_names",
    "published_table",
    "published_tables",
    "total_rules",
    "totals_of",
]
