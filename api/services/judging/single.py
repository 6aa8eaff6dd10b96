"""`judge ask`: one question about one video."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

from gen_eval.mllm.asking import Asker, Limits, open_client
from gen_eval.protocols.shown import load_shown
from gen_eval.records import InputError
from judge.entry import load_judge
from judge.prompting import WITHOUT_VIDEO
from judge.service import ask


def ask_one(
    video: Path | None,
    question: str,
    *,
    judge: str,
    endpoint: str | None = None,
    served_as: str | None = None,
    prompt: str | None = None,
    preset: str | None = None,
    logprobs: int | None = None,
    device: str = "auto",
    dtype: str | None = None,
) -> dict[str, Any]:
    """Ask one question.

    Args:
        video: the clip; ``None`` asks without one.
        question: its text.
        judge: name of a judge, of a model, or the path of a ``.yaml``.
        endpoint: address of the server, in place of the entry's own.
        served_as: the model's name on that server.
        prompt: in place of the judge's own.
        preset: in place of the judge's own.
        logprobs: alternatives of each token whose log-probabilities are asked for.
        device: where a judge in this process runs.
        dtype: its number format.

    Returns:
        The reply, what it says by which rule, tokens, cost, and what was shown (JSON values only).

    Raises:
        InputError: something that was named does not exist, or the model or the key is refused.
        ItemError: the video cannot be shown, or there is no reply.
        MissingPart: the endpoint cannot be reached, or a package is absent.
    """
    if video is not None and not video.is_file():
        raise InputError(f"there is no video {video}; give the path of a file")
    entry = load_judge(judge, endpoint=endpoint, served_as=served_as)
    entry = entry if prompt is None else entry.with_prompt(prompt)
    if logprobs is not None:
        entry = replace(entry, options=replace(entry.options, logprobs=logprobs))
    shown = load_shown(preset or entry.preset)

    async def work() -> dict[str, Any]:
        client = open_client(entry.model, device=device, dtype=dtype)
        async with Asker(client, limits=Limits.of_settings()) as asker:
            found = await ask(video, question, asker, entry, preset=shown)
            identity = (await asker.identity()).to_json()
        asked_with = entry.prompt if video is not None or not entry.prompt.shows else None
        told = {"name": WITHOUT_VIDEO} if asked_with is None else asked_with.to_json()
        who = {"name": entry.name, "title": entry.title, "simulated": entry.simulated, "identity": identity}
        return {"video": None if video is None else video.name, "judge": who, "prompt": told, **found.to_json()}

    return asyncio.run(work())


__all__ = ["ask_one"]
