"""What a manifest says of the networks of a run: placement, weights, package versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from gen_eval import weights
from gen_eval.features.plan import Measurement, Plan
from gen_eval.records import InputError, digest_of

_PACKAGES = ("torch", "torchvision", "timm", "open_clip_torch", "pillow", "ftfy", "regex", "transformers", "tokenizers")
"""pillow resizes condition images; ftfy, regex and tokenizers prepare prompts."""


def network_section(plan: Plan) -> dict[str, Any] | None:
    """Everything about networks and accelerators that moves a score of ``plan``; ``None`` when none is used.

    Returns:
        ``placement``, ``packages`` (version, ``None`` when not installed), ``weights`` (checkpoint -> SHA-256 of its
        file, ``None`` when it is not there) and ``definitions`` (checkpoint -> what is built for it, and what of its
        file is taken).
    """
    if not plan.networks and not any(_accelerated(one, plan.placement.to_json()) for one in plan.measurements):
        return None
    return {
        "placement": plan.placement.to_json(),
        "packages": {package: _version(package) for package in _PACKAGES},
        "weights": {name: weights.digest(name) for name in plan.networks},
        "definitions": {name: _definition(name) for name in plan.networks},
    }


def runs_networks(plan: Plan) -> bool:
    """Whether a measurement of ``plan`` has all the networks on this machine that it needs."""
    return any(_complete(one.networks) or _complete(_made_by(one, plan)) for one in plan.measurements)


def _complete(names: Sequence[str]) -> bool:
    return bool(names) and all(weights.locate(name) is not None for name in names)


def _made_by(measurement: Measurement, plan: Plan) -> tuple[str, ...]:
    return measurement.signal_networks if measurement.metric.signal in plan.computes else ()


def _definition(name: str) -> dict[str, Any]:
    located = weights.locate(name)
    taken = {} if located is None else located.source.model_dump(include={"key", "keep", "member", "names"})
    companions = {} if located is None else {one.source.file: one.sha256 for one in located.companions}
    beside = {"companions": companions} if companions else {}
    return {"network": dict(weights.checkpoint(name).network or {}), **taken, **beside}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def used_by(
    measurement: Measurement, section: Mapping[str, Any] | None, *, signal: bool = False
) -> dict[str, Any] | None:
    """The part of a manifest's ``section`` that the values of ``measurement`` depend on.

    Args:
        measurement: what is measured.
        section: ``networks`` of the manifest.
        signal: whether networks made one of the files that it compares.
    """
    names = (*measurement.networks, *(measurement.signal_networks if signal else ()))
    if section is None or not (names or _accelerated(measurement, section["placement"])):
        return None
    own = {part: {name: section[part][name] for name in names} for part in ("weights", "definitions")}
    return {**section, **own}


def _accelerated(measurement: Measurement, placement: Mapping[str, Any]) -> bool:
    """Whether arithmetic without a network runs on an accelerator, where it rounds otherwise."""
    return measurement.metric.accelerated and placement["device"] != "cpu"


def weights_digest(used: Mapping[str, Any] | None) -> str | None:
    """What a row carries that depends on ``used`` (see :func:`used_by`).

    Returns:
        The checkpoint's digest, one digest over all where there are several, ``None`` without.
    """
    digests: dict[str, str | None] = used["weights"] if used else {}
    if not digests or any(digest is None for digest in digests.values()):
        return None
    return next(iter(digests.values())) if len(digests) == 1 else digest_of(digests)


def networks_ran(section: Mapping[str, Any]) -> bool:
    """Whether anything can have run as ``section`` says: a network whose weights were here, arithmetic on a GPU."""
    return any(section["weights"].values()) or section["placement"]["device"] != "cpu"


@dataclass(frozen=True)
class UsedNetwork:
    """A network that scores of a run depend on.

    Attributes:
        checkpoint: its name.
        title: for people.
        sha256: digest of the file that was used, ``None`` when it was not there.
        licence: of the weights.
        commercial: whether that allows commercial use, as we read it: ``yes``, ``no`` or ``unknown``.
    """

    checkpoint: str
    title: str
    sha256: str | None
    licence: str
    commercial: str

    @property
    def terms(self) -> str:
        """Licence and what it means for commercial use, in words."""
        return weights.terms_of(self.licence, self.commercial)


def networks_of(manifest: Mapping[str, Any]) -> tuple[UsedNetwork, ...]:
    """The networks that a run used, with the licences of their weights."""
    section = manifest.get("networks") or {}
    return tuple(_used(name, digest) for name, digest in sorted(section.get("weights", {}).items()))


def _used(name: str, digest: str | None) -> UsedNetwork:
    try:
        entry = weights.checkpoint(name)
    except InputError:  # a checkpoint of an own catalogue that is not at hand now
        return UsedNetwork(name, name, digest, "not known here", "unknown")
    return UsedNetwork(name, entry.title, digest, entry.licence, entry.commercial)


def not_for_commercial_use(networks: Sequence[UsedNetwork]) -> tuple[UsedNetwork, ...]:
    """Those that scores come from and whose licence forbids commercial use, or leaves it open."""
    return tuple(one for one in networks if one.sha256 is not None and one.commercial != "yes")


@dataclass(frozen=True)
class AskedModel:
    """A model whose answers scores of a run come from.

    Attributes:
        role: what it was asked as.
        name: of its entry.
        id: hub id, provider's id, or what the server calls it.
        terms: licence and what it means for commercial use, in words.
        restricted: whether the licence forbids commercial use, or leaves it open.
    """

    role: str
    name: str
    id: str
    terms: str
    restricted: bool


def models_of(manifest: Mapping[str, Any]) -> tuple[AskedModel, ...]:
    """The language models that a run asked; a simulated judge is none."""
    judge, asked = manifest.get("judge") or {}, manifest.get("asked") or {}
    second = asked.get("second_stage") or {}
    entries = {"judge": judge.get("model"), "model": asked.get("model"), "second stage": second.get("model")}
    return tuple(
        AskedModel(
            role,
            str(one["name"]),
            str(one["id"]),
            weights.terms_of(one["licence"], one["commercial"]),
            one["commercial"] != "yes",
        )
        for role, one in entries.items()
        if isinstance(one, Mapping) and one["backend"] != "simulated"
    )


def networks_json(manifest: Mapping[str, Any]) -> dict[str, Any] | None:
    """What ``--json`` says of the networks of a run, ``None`` when it used none."""
    section = manifest.get("networks")
    if not section:
        return None
    used = networks_of(manifest)
    return {
        "placement": section["placement"],
        "packages": section["packages"],
        "weights": [asdict(one) for one in used],
        "commercial_use": not not_for_commercial_use(used),
    }
