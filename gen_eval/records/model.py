"""Samples, generations, groups and scores: immutable, plain, and comparable by content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gen_eval.records.reasons import Flag, Reason, Status


def canonical_json(value: Any) -> str:
    """``value`` as JSON with sorted keys, no spaces and no NaN: equal values give equal text.

    Raises:
        ValueError: a number is NaN or infinite.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest_of(value: Any) -> str:
    """SHA-256 (hex) of :func:`canonical_json`: the identity of anything that is data."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


@dataclass(frozen=True)
class Sample:
    """One case of a benchmark; a field that its benchmark does not have is ``None`` or empty.

    Attributes:
        id: unique within the benchmark.
        domain: the group it is averaged in; ``None`` when unknown.
        prompt: the text that the generator was given.
        captions: prompt variants of the conditional track, the original first.
        condition_image: picture that an image-to-video generator starts from.
        reference: real video that control fidelity is measured against.
        depth: ``.npz`` with the reference's depth maps.
        masks: segmentation file of the reference.
        controls: control signals given to the generator, by name (edge, blur, depth, seg).
        extra: fields that are carried along unread.
    """

    id: str
    domain: str | None = None
    prompt: str | None = None
    captions: tuple[str, ...] = ()
    condition_image: Path | None = None
    reference: Path | None = None
    depth: Path | None = None
    masks: Path | None = None
    controls: Mapping[str, Path] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Generation:
    """One video for one sample.

    Attributes:
        sample: id of the sample.
        member: seed or caption label that tells the generations of one sample apart.
        path: the video; ``None`` for one that was expected and is not there.
        sha256: digest of the file's bytes, ``None`` without a file.
        depth: depth maps of this clip that were given beside it.
        masks: segmentation file of this clip that was given beside it.
        problem: why this generation cannot be scored, known before any decoding.
        detail: what explains the problem.
    """

    sample: str
    member: str
    path: Path | None
    sha256: str | None = None
    depth: Path | None = None
    masks: Path | None = None
    problem: Reason | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Group:
    """The unit of work: one sample with all generations of it by one model, decoded once and in lockstep."""

    model: str
    sample: Sample
    members: tuple[Generation, ...]

    @property
    def key(self) -> tuple[str, str]:
        """What tells groups apart; groups are scheduled, sharded and reported in this order."""
        return (self.model, self.sample.id)


@dataclass(frozen=True)
class Score:
    """One row of a run: a value, or a status and a reason, with all that moved it.

    Attributes:
        parameters: digest of the protocol's parameters for this metric.
        inputs: digest of everything the value was computed from (files, parameters, metric version, weights): two
            scores compare exactly when it is equal, and a row is taken over only then.
        curve: digest of the parquet file that holds the per-frame values, ``None`` without curves.
        frames: pictures of this clip by role (``thumbnail``, ``worst``): file names under ``frames/``.
    """

    model: str
    sample: str
    member: str
    metric: str
    protocol: str
    value: float | None
    status: Status
    reason: Reason | None = None
    flags: tuple[Flag, ...] = ()
    values: Mapping[str, float | None] = field(default_factory=dict)
    detail: Mapping[str, Any] = field(default_factory=dict)
    version: int = 1
    parameters: str = ""
    weights: str | None = None
    inputs: str = ""
    curve: str | None = None
    frames: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        """What tells rows apart within a run; rows are sorted by it."""
        return (self.model, self.sample, self.member, self.metric, self.protocol)

    def to_json(self) -> dict[str, Any]:
        """The row as interchange JSON (see docs/files.md, "scores")."""
        return {
            "model": self.model,
            "sample": self.sample,
            "member": self.member,
            "metric": self.metric,
            "protocol": self.protocol,
            "value": self.value,
            "values": dict(self.values),
            "status": str(self.status),
            "reason": None if self.reason is None else str(self.reason),
            "flags": [str(flag) for flag in self.flags],
            "detail": dict(self.detail),
            "version": self.version,
            "parameters": self.parameters,
            "weights": self.weights,
        }
