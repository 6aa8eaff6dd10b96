"""The kinds of scene, one module each; a kind is a function from a seed to a :class:`~gen_eval.scenes.world.Scene`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType

from gen_eval.scenes.kinds import bouncing, colliding, falling, floating, occluded, pushed, rolling, swinging
from gen_eval.scenes.world import Scene

_MODULES: Mapping[str, ModuleType] = {
    "falling": falling,
    "bouncing": bouncing,
    "colliding": colliding,
    "occluded": occluded,
    "pushed": pushed,
    "swinging": swinging,
    "rolling": rolling,
    "floating": floating,
}

BUILDERS: Mapping[str, Callable[[int], Scene]] = {name: module.build for name, module in _MODULES.items()}
DOMAINS: Mapping[str, str] = {name: module.DOMAIN for name, module in _MODULES.items()}

__all__ = ["BUILDERS", "DOMAINS"]
