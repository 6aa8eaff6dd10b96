"""Where reports and plots go, seen to before anything is computed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from gen_eval.records import InputError


def check_destinations(
    out: Path | None, plots: Path | None, read: Iterable[Path | None], *, endings: Sequence[str]
) -> None:
    """Refuse what could only fail, or do harm, after a long computation.

    Args:
        out: the report to write, if any.
        plots: folder of the plots, if any.
        read: files and folders that are read; none of them may be written over.
        endings: of reports that can be written.

    Raises:
        InputError: the report has another ending, is a folder, or is a file that is read; the plots go to a file.
    """
    if out is not None:
        if out.suffix.lower() not in endings:
            raise InputError(f"no report is written as {out.name!r}; use one of {', '.join(endings)}")
        if out.is_dir():
            raise InputError(f"the report {out} cannot be written: it is a folder; give another --out")
        for path in read:
            if path is not None and _same(out, path):
                raise InputError(f"the report would take the place of {path}, which is read; give another --out")
    if plots is not None and plots.exists() and not plots.is_dir():
        raise InputError(f"plots cannot be written to {plots}: it is a file; give another --plots")


def _same(out: Path, path: Path) -> bool:
    """Whether both are one file, by whatever names (links, ``..``, large and small letters)."""
    return out.exists() and path.exists() and out.samefile(path)


__all__ = ["check_destinations"]
