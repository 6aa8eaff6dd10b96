"""From a reply of a model to the answer that is kept."""

from __future__ import annotations

from dataclasses import replace

from gen_eval.mllm.asking import cost_of
from gen_eval.mllm.chat import Reply
from gen_eval.mllm.entry import ModelEntry
from gen_eval.records import Answer


def answered(empty: Answer, reply: Reply, entry: ModelEntry) -> Answer:
    """``empty``, which says what was asked and shown, with everything that came back.

    Args:
        empty: its ``shown`` is completed with the form that frames had and the options that had no effect.
        reply: what came back.
        entry: of the model, for the price.
    """
    return replace(
        empty,
        reply=reply.text,
        finish_reason=reply.finish_reason,
        shown={**empty.shown, "form": reply.form, "ignored": list(reply.ignored)},
        chances=first_chances(reply),
        usage={name: count for name, count in vars(reply.usage).items() if count is not None},
        answered_by=reply.model,
        attempts=reply.attempts,
        seconds=reply.seconds,
        cost=0.0 if reply.cached else cost_of(entry, reply.usage),  # a reply from the cache was paid for before
        raw=reply.raw,
    )


def first_chances(reply: Reply) -> dict[str, float] | None:
    """Log-probabilities at the first token of the answer that is more than white space, by token."""
    for token in reply.logprobs or ():
        if token.token.strip():
            return {**token.top, token.token: token.logprob}
    return None


__all__ = ["answered", "first_chances"]
