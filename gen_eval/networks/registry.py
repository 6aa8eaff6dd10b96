"""What builds the network of a checkpoint: kind -> ``module:function``.

A builder takes the other entries of the checkpoint's ``network`` section as keyword arguments and returns a module
whose ``state_dict`` has exactly the names and shapes of the published file.
"""

from __future__ import annotations

from collections.abc import Mapping

BUILDERS: Mapping[str, str] = {
    "dino": "gen_eval.networks.vit:build",
    "clip": "gen_eval.networks.clip:build",
    "linear": "gen_eval.networks.linear:build",
    "dreamsim": "gen_eval.networks.dreamsim:build",
    "viclip": "gen_eval.networks.viclip:build",
    "musiq": "gen_eval.networks.musiq:build",
    "amt": "gen_eval.networks.amt:build",
    "raft": "gen_eval.networks.raft:build",
}
