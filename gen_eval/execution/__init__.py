"""Running work on groups: on this machine, one process or several (`local`)."""

from gen_eval.execution.local import Done, Lost, run_groups, threads
from gen_eval.execution.shards import parse_shard, shard_of

__all__ = ["Done", "Lost", "parse_shard", "run_groups", "shard_of", "threads"]
