"""Finding and reading the shipped YAML files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

import gen_eval
from gen_eval.protocols.checking import check_parameters, check_sections
from gen_eval.protocols.model import Preset, Protocol
from gen_eval.records import InputError

_ONE_OF = {"models": "model entry", "weights": "checkpoint"}
_SECTIONS = ("measure", "decide", "reasons", "exceptions", "aggregate")


def _config_roots() -> list[Path]:
    package = Path(gen_eval.__file__).parent
    shipped = package / "configs"  # in the wheel
    roots = [shipped if shipped.is_dir() else package.parent / "configs"]  # else a checkout
    own = os.environ.get("GEN_EVAL_CONFIGS")
    if own and not Path(own).is_dir():
        raise InputError(f"GEN_EVAL_CONFIGS must name a folder; {own} is none")
    return [Path(own), *roots] if own else roots


def config_path(kind: str, name: str) -> Path:
    """The YAML file ``name`` (with or without ending) of one kind of configuration; a path that exists wins.

    Raises:
        InputError: there is no such file; the message lists what there is.
    """
    if Path(name).suffix in {".yaml", ".yml"} and Path(name).is_file():
        return Path(name)
    candidates = [root / kind / f"{name.removesuffix('.yaml')}.yaml" for root in _config_roots()]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    known = sorted({path.stem for root in _config_roots() for path in (root / kind).glob("*.yaml")})
    one = _ONE_OF.get(kind, kind.removesuffix("s"))
    raise InputError(f"no {one} named {name!r}; there are {', '.join(known) or 'none'} (or give a path to a .yaml)")


def config_files(kind: str) -> list[Path]:
    """Every YAML file of one kind of configuration, the ones of ``GEN_EVAL_CONFIGS`` first; the first to say wins."""
    return [path for root in _config_roots() for path in sorted((root / kind).glob("*.yaml"))]


def _read(path: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:  # a date that is none is a ValueError
        raise InputError(f"{path} cannot be read as YAML: {error}") from error
    if not isinstance(content, dict):
        raise InputError(f"{path} must hold a mapping, not {type(content).__name__}")
    return content


@lru_cache(maxsize=1)
def _protocol_table() -> dict[str, dict[str, Any]]:
    """Metric -> protocol name -> sections as written; a file found earlier wins, metric by metric."""
    table: dict[str, dict[str, Any]] = {}
    for root in _config_roots():
        for metric, protocols in _protocols_below(root).items():
            table.setdefault(metric, protocols)
    return table


@lru_cache(maxsize=4)
def _protocols_below(root: Path) -> dict[str, dict[str, Any]]:
    table: dict[str, dict[str, Any]] = {}
    for path in sorted((root / "protocols").glob("*.yaml")):
        for metric, protocols in _read(path).items():
            if not isinstance(protocols, Mapping):
                raise InputError(f"{path}: {metric} must map names of protocols to sections, not {protocols!r}")
            table.setdefault(str(metric), dict(protocols))
    return table


def protocol_names(metric: str) -> list[str]:
    """The protocols that a metric has, in the order of its file.

    Raises:
        InputError: no protocol file knows the metric.
    """
    return list(_entries(metric))


def _entries(metric: str) -> dict[str, Any]:
    table = _protocol_table()
    if metric not in table:
        raise InputError(f"no protocol is written down for the metric {metric!r}; there are {', '.join(sorted(table))}")
    return table[metric]


def load_protocol(metric: str, name: str) -> Protocol:
    """The parameters of ``metric`` under the protocol ``name``.

    Args:
        metric: name of the metric.
        name: a shipped protocol, or the path of a ``.yaml`` that maps metrics to sections (with ``base: NAME`` for
            what it does not say); such a protocol is called by the file's stem.

    Raises:
        InputError: the metric has no protocol of that name, or the file is malformed.
    """
    if is_path(name):
        return _own_protocol(metric, Path(name))
    return _checked(metric, name, _resolve(metric, name, seen=()))


def is_path(name: str) -> bool:
    """Whether ``name`` is that of a YAML file."""
    return Path(name).suffix in {".yaml", ".yml"}


def _own_protocol(metric: str, path: Path) -> Protocol:
    content = _read(path)
    if metric not in content:
        raise InputError(f"{path} says nothing of {metric}; it holds {', '.join(content) or 'nothing'} (see --metrics)")
    if path.stem in protocol_names(metric):
        raise InputError(f"{path} would be called {path.stem!r} like a shipped protocol; give the file another name")
    return _checked(metric, path.stem, _merged(metric, path.stem, content[metric], seen=()))


def _checked(metric: str, name: str, sections: dict[str, dict[str, Any]]) -> Protocol:
    shipped = _protocols_below(_config_roots()[-1]).get(metric, {})
    models = [_resolve(metric, one, (), shipped) for one in shipped]
    check_parameters(_called(metric, name), sections, models)
    return Protocol(name=name, metric=metric, **sections)


def _called(metric: str, name: str) -> str:
    return f"protocol {name!r} of {metric}"


def _resolve(
    metric: str, name: Any, seen: tuple[str, ...], entries: Mapping[str, Any] | None = None
) -> dict[str, dict[str, Any]]:
    entries = _entries(metric) if entries is None else entries
    if not isinstance(name, str) or name not in entries:
        raise InputError(f"{metric} has no protocol {name!r}; it has {', '.join(entries)}")
    if name in seen:
        raise InputError(f"the protocols of {metric} build on each other in a circle: {' -> '.join((*seen, name))}")
    return _merged(metric, name, entries[name], seen, entries)


def _merged(
    metric: str, name: str, content: Any, seen: tuple[str, ...], entries: Mapping[str, Any] | None = None
) -> dict[str, dict[str, Any]]:
    """The sections of one entry, on top of those of its base, which is one of ``entries``."""
    if content is not None and not isinstance(content, Mapping):
        raise InputError(f"{_called(metric, name)} must be a mapping, not {type(content).__name__}")
    entry: Mapping[str, Any] = content or {}
    if unknown := set(map(str, entry)) - {*_SECTIONS, "base"}:
        raise InputError(f"{_called(metric, name)} has unknown sections {sorted(unknown)}; known: {_SECTIONS}")
    check_sections(_called(metric, name), {section: entry.get(section) for section in _SECTIONS})
    base = _resolve(metric, entry["base"], (*seen, name), entries) if "base" in entry else {}
    return {section: {**base.get(section, {}), **(entry.get(section) or {})} for section in _SECTIONS}


@lru_cache(maxsize=1)
def _presets() -> dict[str, Preset]:
    table: dict[str, Preset] = {}
    for root in _config_roots():
        for path in sorted((root / "presets").glob("*.yaml")):
            for name, values in _read(path).items():
                if not is_shown(values):
                    table.setdefault(name, _preset(name, values))
    return table


def is_shown(values: Any) -> bool:
    """Whether a preset says what a model sees (see :mod:`gen_eval.protocols.shown`), and not what a metric is shown."""
    return isinstance(values, Mapping) and bool({"counting", "pixels"} & set(map(str, values)))


def _preset(name: str, values: Any) -> Preset:
    if is_shown(values):
        raise InputError(f"the preset {name!r} says what a model sees; a metric takes one such as `{{limit: 16}}`")
    limit = values.get("limit") if isinstance(values, Mapping) and set(values) <= {"limit"} else -1
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        raise InputError(f"the preset {name!r} must be {{limit: N}} with N frames or null, not {values!r}")
    return Preset(name=name, limit=limit)


def preset_names() -> list[str]:
    """The presets that exist."""
    return sorted(_presets())


def load_preset(name: str) -> Preset:
    """The preset ``name``: a shipped one, or the only one in the ``.yaml`` file of that path.

    Raises:
        InputError: there is none of that name, or the file is malformed.
    """
    if is_path(name):
        content = _read(Path(name))
        if len(content) != 1:
            raise InputError(
                f"{name} must hold exactly one preset, such as `first-16: {{limit: 16}}`; it has {len(content)}"
            )
        return _preset(*next(iter(content.items())))
    presets = _presets()
    if name not in presets:
        raise InputError(f"no preset {name!r} of what metrics are shown; there are {', '.join(sorted(presets))}")
    return presets[name]


def config_names(kind: str) -> list[str]:
    """The names of one kind of configuration (``benchmarks``, ``generators``, …)."""
    return sorted({path.stem for root in _config_roots() for path in (root / kind).glob("*.yaml")})


def read_config(kind: str, name: str) -> dict[str, Any]:
    """The content of one configuration file.

    Raises:
        InputError: there is no such file, or it is malformed.
    """
    return _read(config_path(kind, name))
