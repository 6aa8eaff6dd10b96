r"""A table for a paper: systems by metrics, one table a protocol, in LaTeX with the package ``booktabs``.

A cell is the mean with half the width of its interval. Everything that comes from outside is escaped; nothing that a
file or a sample is called can become a command.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

from api.services import wording
from api.services.facts import facts_of
from api.services.results import RunResults
from api.services.systems import System, protocols_of, systems_of
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
    metrics = sorted({metric for system in systems for metric in system.under(protocol)})
    totals = list(dict.fromkeys(name for one in systems for name, found in one.totals.items() if protocol in found))
    yield r"\begin{table}"
    yield r"  \centering"
    yield rf"  \caption{{Mean $\pm$ half the 95\,\% interval, protocol {escaped(protocol)}.}}"
    yield rf"  \begin{{tabular}}{{l{'r' * (len(metrics) + len(totals))}}}"
    yield r"    \toprule"
    heads = [*map(_heading, metrics), *(rf"{escaped(name)} (\%) $\uparrow$" for name in totals)]
    yield f"    {' & '.join(['system', *heads])} \\\\"
    yield r"    \midrule"
    for system in systems:
        found = system.under(protocol)
        cells = [_cell(found[metric].main) if metric in found else "" for metric in metrics]
        cells += [_cell(system.totals.get(name, {}).get(protocol)) for name in totals]
        yield f"    {' & '.join([escaped(system.label), *cells])} \\\\"
    yield r"    \bottomrule"
    yield r"  \end{tabular}"
    yield r"  \par\smallskip"
    yield rf"  {{\footnotesize {_note(systems, protocol, metrics)}}}"
    yield r"\end{table}"


def _heading(metric: str) -> str:
    facts = facts_of(metric)
    unit = wording.unit_of(facts.unit)
    arrow = "" if facts.caveat else r"$\uparrow$" if facts.higher_is_better else r"$\downarrow$"
    return f"{escaped(metric)}{f' ({escaped(unit)})' if unit else ''} {arrow}".rstrip()


def _cell(one: Aggregate | Total | None) -> str:
    """A mean with half the width of its interval; a total with a part missing has none."""
    if one is None:
        return ""
    if one.value is None:
        return "n/a"
    text = _digits(one.value, one.unit)
    if one.lower is not None and one.upper is not None:
        text += rf" \pm {_digits((one.upper - one.lower) / 2, one.unit)}"
    return f"${text}$"


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
