"""Asking models that see: one interface, several backends, replies that are kept.

* :mod:`gen_eval.mllm.chat`: requests and replies;
* :mod:`gen_eval.mllm.client`: the interface of a backend, found through the entry points ``gen_eval.chat``;
* :mod:`gen_eval.mllm.entry`: model entries (``configs/models/*.yaml``);
* :mod:`gen_eval.mllm.asking`: concurrency, limits, retries and the cache, alike for all backends;
* :mod:`gen_eval.mllm.showing`: what of a clip a model sees.

Importing this package imports no backend.
"""

from gen_eval.mllm.chat import (
    ChatRequest,
    Frames,
    Image,
    Message,
    Options,
    Reply,
    Text,
    TokenChance,
    Usage,
    VideoFile,
)
from gen_eval.mllm.client import Capabilities, ChatClient, ChatError, Identity
from gen_eval.mllm.entry import ModelEntry, load_model, model_names

__all__ = [
    "Capabilities",
    "ChatClient",
    "ChatError",
    "ChatRequest",
    "Frames",
    "Identity",
    "Image",
    "Message",
    "ModelEntry",
    "Options",
    "Reply",
    "Text",
    "TokenChance",
    "Usage",
    "VideoFile",
    "load_model",
    "model_names",
]
