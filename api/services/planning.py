"""Metrics and protocols of a request, and where their networks run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from api.services.network_facts import runs_networks
from api.services.request import ScoreRequest
from gen_eval.features.clip_signals import CLIP_SIGNALS, given_file
from gen_eval.features.metric import Metric
from gen_eval.features.plan import Plan, companions
from gen_eval.networks import placement_of
from gen_eval.protocols import Protocol, load_preset, load_protocol, protocol_names
from gen_eval.records import Group, InputError, MetricFacts
from gen_eval.registry import load, names

_ANSWERED = {"domain": "`gen-eval score domain`", "understanding": "`gen-eval understand`"}
_PRESET_OF = {"quality": "all-frames", "control": "121-frames"}


def make_plan(request: ScoreRequest, *, computes: frozenset[str] = frozenset()) -> Plan:
    """Metrics of the request under the protocol that was asked for, and under those that come for nothing.

    Args:
        request: what is asked for.
        computes: signals that networks have to make.

    Raises:
        InputError: a metric, protocol, preset or device is not known.
    """
    chosen = [load_metric(name) for name in request.metrics] if request.metrics else track_metrics(request.track)
    for metric in chosen:
        if metric.track != request.track:
            raise InputError(f"{metric.name} belongs to `gen-eval score {metric.track}`, not to {request.track}")
    with_protocols = [(metric, _protocols_of(metric, request.protocol)) for metric in chosen]
    plan = Plan.of(with_protocols, load_preset(request.preset or _PRESET_OF[request.track]), request.chunk)
    plan = replace(plan, computes=computes & {metric.signal for metric in chosen})
    if not plan.networks and request.device in {"auto", "cpu"}:
        return plan
    # looking for a device takes seconds, as it imports torch: not where no network will run for want of weights
    device = request.device if request.device != "auto" or runs_networks(plan) else "cpu"
    return replace(plan, placement=placement_of(device, request.dtype, compile=request.compile))


def _protocols_of(metric: Metric, name: str) -> list[Protocol]:
    asked = load_protocol(metric.name, name)
    others = [load_protocol(metric.name, other) for other in protocol_names(metric.name) if other != name]
    return [asked, *companions(metric, others, asked)]


def asked_name(protocol: str) -> str:
    """The name of a protocol that was asked for by name or by path."""
    return Path(protocol).stem if Path(protocol).suffix in {".yaml", ".yml"} else protocol


def load_metric(name: str) -> Metric:
    """The metric ``name``.

    Raises:
        InputError: there is none, or what the entry point names is no metric.
    """
    metric = load("gen_eval.metrics", name)
    if isinstance(metric, MetricFacts):
        raise InputError(f"{name} comes from answers of models, {_ANSWERED[metric.track]}, not from frames")
    if not isinstance(metric, Metric):
        raise InputError(f"the entry point {name!r} must name a gen_eval.features.Metric, not {type(metric).__name__}")
    return metric


def track_metrics(track: str) -> list[Metric]:
    """All metrics of ``track``, by name."""
    found = (load("gen_eval.metrics", name) for name in names("gen_eval.metrics"))
    return [load_metric(metric.name) for metric in found if metric.track == track]


def signals_to_compute(groups: Iterable[Group]) -> frozenset[str]:
    """The signals of which some file that will be needed was not given."""
    found = set()
    for group in groups:
        present = [member for member in group.members if member.path is not None]
        for signal in CLIP_SIGNALS if present else ():
            given = [given_file(group.sample, signal), *(given_file(member, signal) for member in present)]
            if None in given:
                found.add(signal)
    return frozenset(found)
