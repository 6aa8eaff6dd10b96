"""What a run of a task says of itself; its digest is the run's id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gen_eval
from api.services.facts import facts_of
from api.services.planning import asked_name
from api.services.understanding.rows import Scorer
from gen_eval.data import Rejected
from gen_eval.records import Reason, digest_of
from gen_eval.records.run import MANIFEST_FORMAT
from understanding.data.samples import Samples, TaskSample

TRACK = "understanding"

_WITHOUT: Mapping[str, Any] = {
    "totals": {},
    "chunk": None,
    "environment": {},
    "networks": None,
    "domains": None,
    "limit": None,
    "unknown_videos": [],
    "not_asked_videos": [],
}
"""What manifests of all tracks have, where a task has nothing to say of it."""


def manifest_of(
    scorer: Scorer,
    samples: Samples[Any],
    members: Mapping[str, Sequence[str]],
    rejected: Sequence[Rejected],
    *,
    protocol: str,
    preset: Mapping[str, Any],
    digests: Mapping[str, str | None],
    **more: Any,
) -> dict[str, Any]:
    """What was asked.

    Args:
        scorer: the task and the protocols.
        samples: of the data, those that take part.
        members: sample -> seeds that are expected.
        rejected: lines that could not be used.
        protocol: as it was asked for.
        preset: what the model was shown.
        digests: sample -> digest of its media file.
        more: further fields: who was asked what, or which replies are scored.
    """
    main = scorer.main
    return {
        **_WITHOUT,
        "format": MANIFEST_FORMAT,
        "gen_eval": gen_eval.__version__,
        "track": TRACK,
        "task": main.name,
        "dialect": next((one.dialect for one in scorer.tasks if one.dialect), None),
        "model": scorer.model,
        "layout": samples.layout,
        "metrics": {main.metric: _metric(scorer)},
        "protocol": asked_name(protocol),
        "preset": dict(preset),
        "seeds": sorted({seed for own in members.values() for seed in own}),
        "samples": [_entry(one, members[one.id], digests.get(one.id)) for one in samples.samples],
        "rejected": [{"where": one.where, "reason": one.reason, "message": one.message} for one in rejected],
        **more,
    }


def _metric(scorer: Scorer) -> dict[str, Any]:
    """The metric, and how each protocol takes seeds together."""
    bound = [one.protocol for one in scorer.tasks]
    return {
        "version": facts_of(scorer.main.metric).version,
        "protocols": {one.name: one.digest for one in bound},
        "members": {one.name: one.aggregate.get("members", "sample_first") for one in bound},
    }


def _entry(sample: TaskSample, members: Sequence[str], digest: str | None) -> dict[str, Any]:
    missing = sample.media is not None and not sample.media.present
    problem = str(Reason.MISSING_MEDIA) if missing and digest is None else None
    name = None if sample.media is None else sample.media.name or None
    return {
        "id": sample.id,
        "domain": sample.groups.get("column") or sample.groups.get("category"),
        "groups": dict(sample.groups),
        "cluster": sample.cluster,
        "prompt": sample.prompt_digest,
        "truth": digest_of(sample.truth),
        "condition_image": None,
        "members": [{"id": one, "path": name, "sha256": digest, "problem": problem} for one in members],
    }
