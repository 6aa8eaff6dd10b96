r"""A table for a paper: systems by metrics, one table a protocol, in LaTeX with the package ``booktabs``.

Columns stand as the benchmark prints them, on its scale and with its decimals (``configs/benchmarks``); what it does
not print comes after. A cell is the mean with half the width of its interval, one decimal more. Everything that comes
from outside is escaped; nothing that a file or a sample is called can become a command.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from api.services import wording
from api.services.facts import facts_of
from api.services.results import RunResults
from api.services.systems import System, judges_line, protocols_of, systems_of
from gen_eval.protocols import PublishedColumn, columns_by_score, in_published_order
from gen_eval.stats import Aggregate, Total

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    "'": r"\textquotesingle{}",
    "-": r"{-}",  # no ligatures: -- stays two hyphens
}


def escaped(text: str) -> str:
    r"""``text`` as LaTeX that prints it; control and format characters become spaces.

    Example:
        >>> escaped(r"\input{a_b}")
        '\\textbackslash{}input\\{a\\_b\\}'
    """
    return "".join(
        " " if unicodedata.category(one) in {"Cc", "Cf", "Zl", "Zp"} else _SPECIAL.get(one, one) for one in text
    )


def to_latex(results: Sequence[RunResults]) -> bytes:
    """One ``table`` a protocol, the one that was asked for first."""
    systems = systems_of(results)
    lines = ["% needs \\usepackage{booktabs} and \\usepackage{textcomp}"]
    for protocol in protocols_of(results):
        lines += ["", *_table(systems, protocol)]
    return ("\n".join(lines) + "\n").encode()


def _table(systems: Sequence[System], protocol: str) -> Iterator[str]:
    columns = list(_columns(systems, protocol))
    conditions = any(system.condition is not None for system in systems)
    names = ["system", "given"] if conditions else ["system"]
    yield r"\begin{table}"
    yield r"  \centering"
    judges = judges_line(systems)
    by = f" {escaped(judges)}." if judges else ""
    yield rf"  \caption{{Mean $\pm$ half the 95\,\% interval, protocol {escaped(protocol)}.{by}}}"
    yield rf"  \begin{{tabular}}{{{'l' * len(names)}{'r' * len(columns)}}}"
    yield r"    \toprule"
    yield f"    {' & '.join([*names, *(column.head for column in columns)])} \\\\"
    yield r"    \midrule"
    for system in systems:
        called = [system.model, system.condition or ""] if conditions else [system.label]
        yield f"    {' & '.join([*map(escaped, called), *(column.cell(system, protocol) for column in columns)])} \\\\"
    yield r"    \bottomrule"
    yield r"  \end{tabular}"
    yield r"  \par\smallskip"
    yield rf"  {{\footnotesize {_note(systems, protocol, [one.score for one in columns if not one.total])}}}"
    yield r"\end{table}"


@dataclass(frozen=True)
class _Column:
    """A column: a metric, one of its further numbers, or a total.

    Attributes:
        further: name of the further number; empty for the value itself.
        published: how the benchmark prints it, ``None`` when it does not.
    """

    score: str
    further: str
    total: bool
    published: PublishedColumn | None

    @property
    def head(self) -> str:
        """Title, unit and direction."""
        shown = self.published
        if self.further:
            assert shown is not None
            assert shown.beside is not None
            return escaped(shown.beside.title)
        if shown is not None:
            percent = r" (\%)" if shown.scale == 100 else ""
            arrow = "" if not self.total and facts_of(self.score).caveat else rf" {_arrow(shown.higher_is_better)}"
            return f"{escaped(shown.title)}{percent}{arrow}"
        return rf"{escaped(self.score)} (\%) $\uparrow$" if self.total else _heading(self.score)

    def cell(self, system: System, protocol: str) -> str:
        """The number of ``system``, empty where it was not scored so."""
        if self.total:
            return _cell(system.totals.get(self.score, {}).get(protocol), self.published)
        found = system.under(protocol).get(self.score)
        if found is None:
            return ""
        return _cell(found.values.get(self.further) if self.further else found.main, self.published)


def _columns(systems: Sequence[System], protocol: str) -> Iterator[_Column]:
    """Metrics and totals as the benchmarks print them, then those that no benchmark prints."""
    found = [system.under(protocol) for system in systems]
    totals = list(dict.fromkeys(name for one in systems for name, table in one.totals.items() if protocol in table))
    metrics = {metric for table in found for metric in table}
    published = columns_by_score()
    for name in in_published_order([*metrics, *totals]):
        column = published.get(name)
        yield _Column(name, "", name not in metrics, column)
        if column is None or column.beside is None:
            continue
        if any(name in table and column.beside.value in table[name].values for table in found):
            yield _Column(name, column.beside.value, False, column)


def _arrow(higher_is_better: bool) -> str:
    return r"$\uparrow$" if higher_is_better else r"$\downarrow$"


def _heading(metric: str) -> str:
    facts = facts_of(metric)
    unit = wording.unit_of(facts.unit)
    arrow = "" if facts.caveat else _arrow(facts.higher_is_better)
    return f"{escaped(metric)}{f' ({escaped(unit)})' if unit else ''} {arrow}".rstrip()


def _cell(one: Aggregate | Total | None, published: PublishedColumn | None) -> str:
    """A mean with half the width of its interval; a total with a part missing has none."""
    if one is None:
        return ""
    if one.value is None:
        return "n/a"
    half = None if one.lower is None or one.upper is None else (one.upper - one.lower) / 2
    if published is None:
        text = _digits(one.value, one.unit)
        return f"${text}$" if half is None else rf"${text} \pm {_digits(half, one.unit)}$"
    text = published.printed(one.value)
    return (
        f"${text}$"
        if half is None
        else rf"${text} \pm {replace(published, digits=published.digits + 1).printed(half)}$"
    )


def _digits(value: float, unit: str) -> str:
    shown = wording.bare(value, unit)
    return f"{shown:.2f}" if unit == "ratio" else f"{shown:.4f}"


def _note(systems: Sequence[System], protocol: str, metrics: Sequence[str]) -> str:
    """How many samples have a value, for each system; metrics of equal coverage together."""
    parts = []
    for system in systems:
        found = system.under(protocol)
        coverage: dict[str, list[str]] = {}
        for metric in metrics:
            if metric in found:
                main = found[metric].main
                coverage.setdefault(f"{main.n} of {main.N}", []).append(escaped(metric))
        if len(coverage) == 1:
            parts.append(f"{escaped(system.label)}: {next(iter(coverage))}")
        elif coverage:
            listed = ", ".join(f"{count} ({', '.join(names)})" for count, names in coverage.items())
            parts.append(f"{escaped(system.label)}: {listed}")
    return f"Samples with a value, of all: {'; '.join(parts)}. Samples without a value are left out of the mean."
