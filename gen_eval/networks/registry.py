"""What makes the network of a checkpoint: kind -> ``module:function``.

A builder takes the other entries of the checkpoint's ``network`` section as keyword arguments and returns a module
whose ``state_dict`` has exactly the names and shapes of the published file.

An opener (of a network that is a folder) takes the folder and the same arguments, and returns the module with its
numbers; see :mod:`gen_eval.networks.folders`.
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
    "dover": "gen_eval.networks.dover:build",
    "video_depth": "gen_eval.networks.video_depth:build",
    "lpips": "gen_eval.networks.lpips:build",
}

FOLDERS: Mapping[str, str] = {
    "depth_anything": "gen_eval.networks.depth_anything:open_folder",
    "grounding_dino": "gen_eval.networks.grounding:open_folder",
    "sam2_video": "gen_eval.networks.video_segments:open_folder",
}
