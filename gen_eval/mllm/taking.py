"""What of a model's entry holds behind one backend: the form that it really takes, the context that it really has."""

from __future__ import annotations

from gen_eval.mllm.client import ChatClient
from gen_eval.mllm.entry import ModelEntry


def entry_as_taken(client: ChatClient) -> ModelEntry:
    """The entry by which clips are shown to ``client``, after its identity was asked.

    A backend that takes no frames as one video gets loose pictures, of which each costs its own tokens and none is
    repeated to fill a group. A server's own limit of context counts where it is below the entry's.
    """
    entry, able = client.entry, client.capabilities
    sees = entry.sees
    if sees.form == "video" and not able.video_form:
        sees = sees.model_copy(update={"form": "images", "frames_per_token": 1})
    elif sees.form == "file" and not able.video_file:
        sees = sees.model_copy(update={"form": "video" if able.video_form else "images"})
    if able.most_pictures is not None and sees.form == "images":
        sees = sees.model_copy(update={"most_frames": min(able.most_pictures, sees.most_frames or able.most_pictures)})
    limits = [limit for limit in (entry.context, client.context) if limit is not None]
    return entry.model_copy(update={"sees": sees, "context": min(limits, default=None)})


__all__ = ["entry_as_taken"]
