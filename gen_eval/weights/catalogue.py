"""What checkpoints exist: read from ``configs/weights/*.yaml``, validated, looked up by name."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from gen_eval.protocols import config_files
from gen_eval.records.errors import InputError

Container = Literal["safetensors", "state_dict", "nested", "torchscript", "zip", "dreamsim_archive"]
Commercial = Literal["yes", "no", "unknown"]

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # every process reads the catalogue: ten times as fast
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def _relative(value: Any) -> Any:
    """A file name, perhaps in folders: every part plain, so that it cannot lead out of the checkpoint's folder."""
    if isinstance(value, str) and not all(_NAME.fullmatch(part) for part in value.split("/")):
        raise ValueError("must be a plain relative file name of letters, digits, '_', '.', '-'")
    return value


def _spoken_truth(value: Any) -> Any:
    """YAML reads the words yes and no as truth values."""
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else value


def _with_kind(network: dict[str, Any]) -> dict[str, Any]:
    kind = network.get("kind")
    if not (isinstance(kind, str) and kind):
        raise ValueError("must name the kind of network, such as {kind: dino, width: 768, …}")
    return network


FileName = Annotated[str, BeforeValidator(_relative)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _Entry(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Source(_Entry):
    """One published file from which a checkpoint can be had.

    Attributes:
        file: name under which it lies in the checkpoint's folder (of a hub repository: its path there; of an installed
            package: its path inside).
        url: where it is downloaded from; or ``hub`` (repository id) with ``revision``; or ``package`` (comes with an
            installed package). None of them: it is put there by hand.
        container: how the tensors are packed.
        key: entry that holds the tensors. Needed for ``nested``; for ``state_dict`` taken when it is there.
        member: file inside a ``zip``.
        keep: only names that begin with one of these are taken (the file holds other networks too).
        names: whose names the tensors carry, when they are not those of the manifest; the network maps them.
        size: bytes, approximately.
        sha256: published digest, or ``sha256_prefix`` its published beginning.
        needs: checkpoints that are read together with this file.
        companions: further files of the same repository that are fetched beside it and read with it.
    """

    file: FileName
    container: Container
    url: str | None = None
    hub: Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$")] | None = None
    revision: FileName | None = None
    package: Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_]*$")] | None = None
    key: str | None = None
    member: str | None = None
    keep: list[str] = Field(default_factory=list)
    names: str | None = None
    size: int | None = Field(None, gt=0)
    sha256: Digest | None = None
    sha256_prefix: Annotated[str, Field(pattern=r"^[0-9a-f]{8,63}$")] | None = None
    needs: list[str] = Field(default_factory=list)
    companions: list[FileName] = Field(default_factory=list)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if sum(origin is not None for origin in (self.url, self.hub, self.package)) > 1:
            raise ValueError("give one of url, hub, package")
        if self.hub and not self.revision:
            raise ValueError("hub needs a revision")
        if self.companions and (self.url or self.package):
            raise ValueError("companions are files of a hub repository, or put there by hand; give hub, or no origin")
        if self.container == "nested" and not self.key:
            raise ValueError("container nested needs the key that holds the tensors")
        if self.container == "zip" and not self.member:
            raise ValueError("container zip needs the member that holds the tensors")
        return self

    def accepts(self, digest: str) -> bool | None:
        """Whether ``digest`` is the published one; ``None`` where none is published."""
        if self.sha256:
            return digest == self.sha256
        return digest.startswith(self.sha256_prefix) if self.sha256_prefix else None


class Checkpoint(_Entry):
    """One entry of the catalogue.

    Attributes:
        name: id, also the name of its folder.
        title: for people.
        track: what it belongs to (``quality``, ``control``, …).
        used_by: metrics that need it.
        sources: in order of preference; any one serves.
        manifest: name of the list of tensor names and shapes, ``None`` when there is none.
        licence: as published.
        commercial: our reading for the user's benefit; the licence text rules.
        network: what is built for it (``kind``, the rest are the builder's arguments), ``None`` when nothing is here.
        alternative: whether own protocols only ask for it; it is then not meant by the name of a metric or track.
        note: what else one should know.
    """

    name: FileName
    title: str
    track: Annotated[str, Field(pattern=r"^[a-z]+$")]
    used_by: list[str] = Field(default_factory=list)
    sources: list[Source]
    manifest: str | None
    licence: str
    commercial: Annotated[Commercial, BeforeValidator(_spoken_truth)]
    network: Annotated[dict[str, Any], AfterValidator(_with_kind)] | None
    alternative: bool = False
    note: str | None = None

    @property
    def restricted(self) -> bool:
        """Whether commercial use is forbidden or unclear."""
        return self.commercial != "yes"

    @property
    def terms(self) -> str:
        """Licence and what it means for commercial use, in words."""
        return terms_of(self.licence, self.commercial)


_MEANING = {"yes": "commercial use allowed", "no": "no commercial use", "unknown": "commercial use unclear"}


def terms_of(licence: str, commercial: str) -> str:
    """A licence and what it means for commercial use (``yes``, ``no``, ``unknown``), in words.

    Example:
        >>> terms_of("CC BY-NC 4.0", "no")
        'CC BY-NC 4.0: no commercial use'
    """
    return f"{licence}: {_MEANING[commercial]}"


def checkpoint_names() -> list[str]:
    """The checkpoints that exist, by name."""
    return sorted(_catalogue())


def checkpoint(name: str) -> Checkpoint:
    """The entry of ``name``.

    Raises:
        InputError: there is none (near names are offered), or a catalogue file is malformed.
    """
    table = _catalogue()
    if name not in table:
        near = difflib.get_close_matches(name, table, n=3)
        offer = f"; did you mean {' or '.join(near)}" if near else ""
        raise InputError(f"no checkpoint {name!r} in the catalogue{offer}. There are: {', '.join(sorted(table))}")
    return table[name]


def manifest(name: str) -> dict[str, list[int]] | None:
    """Tensor names and shapes that checkpoint ``name`` is published with; ``None`` when no list is known.

    Raises:
        InputError: there is no such checkpoint, or its manifest is not there.
    """
    listed = checkpoint(name).manifest
    if listed is None:
        return None
    path = files("gen_eval.weights").joinpath("manifests", f"{listed}.json")
    if not path.is_file():
        raise InputError(
            f"checkpoint {name!r} names the manifest {listed!r}, which does not exist; write `manifest: null`"
        )
    content: dict[str, list[int]] = json.loads(path.read_text(encoding="utf-8"))
    return content


def _catalogue() -> dict[str, Checkpoint]:
    return _read_all(tuple((path, path.stat().st_mtime_ns, path.stat().st_size) for path in config_files("weights")))


@lru_cache(maxsize=4)
def _read_all(stamped: tuple[tuple[Path, int, int], ...]) -> dict[str, Checkpoint]:
    """Entries of all files, the first one of an id; read again only when a file changed."""
    table: dict[str, Checkpoint] = {}
    for path, _time, _size in stamped:
        try:
            content = yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER) or {}  # noqa: S506 - a safe one
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise InputError(f"{path} cannot be read as YAML: {error}") from error
        if not isinstance(content, Mapping):
            raise InputError(f"{path} must map ids of checkpoints to entries, not hold a {type(content).__name__}")
        for name, entry in content.items():
            table.setdefault(str(name), _checked(path, str(name), entry))
    for name in table:
        _check_needs(table, (name,))
    return table


def _check_needs(table: Mapping[str, Checkpoint], chain: tuple[str, ...]) -> None:
    """Refuse checkpoints that need each other in a circle; ``chain`` ends with the one whose needs are followed."""
    for other in [need for source in table[chain[-1]].sources for need in source.needs if need in table]:
        if other in chain:
            raise InputError(
                f"the checkpoints of the catalogue need each other in a circle: {' -> '.join(chain)} -> {other}"
            )
        _check_needs(table, (*chain, other))


def _checked(path: Path, name: str, entry: Any) -> Checkpoint:
    if not isinstance(entry, Mapping):
        raise InputError(f"{path}: {name} must be a mapping of fields, not {type(entry).__name__}")
    try:
        return Checkpoint.model_validate({**entry, "name": name})
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, problem['loc'])) or 'entry'}: {problem['msg'].removeprefix('Value error, ')}"
            for problem in error.errors()
        )
        raise InputError(f"{path}: checkpoint {name}: {problems}") from None
