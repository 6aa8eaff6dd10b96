"""How a model of the package transformers decodes: settings, choices, log-probabilities, the end of a reply."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gen_eval.mllm.chat import Options, TokenChance
from gen_eval.mllm.choosing import ChoiceTokens

if TYPE_CHECKING:
    from torch import Tensor

_NEUTRAL = {"do_sample": False, "temperature": 1.0, "top_p": 1.0, "top_k": 0, "repetition_penalty": 1.0}
LOGGED_TOKENS = 64
"""Tokens of a reply, from the first one, whose log-probabilities are kept."""


def settings_of(options: Options, room: int | None) -> dict[str, Any]:
    """What ``options`` say in the package's words; the rest stays as the checkpoint has it, or off.

    >>> settings_of(Options(max_tokens=9), room=4)
    {'max_new_tokens': 4, 'num_beams': 1, 'do_sample': False}
    """
    found: dict[str, Any] = {"max_new_tokens": options.max_tokens if room is None else min(options.max_tokens, room)}
    found["num_beams"] = 1
    if options.temperature == 0:
        found["do_sample"] = False
    else:
        if options.temperature is not None:
            found |= {"do_sample": True, "temperature": options.temperature}
        found |= {} if options.top_p is None else {"top_p": options.top_p}
        found |= {} if options.top_k is None else {"top_k": options.top_k}
    if options.repetition_penalty is not None:
        found["repetition_penalty"] = options.repetition_penalty
    return found


def decoding_of(stored: Any, options: Options, room: int | None, pad: int | None) -> Any:
    """The checkpoint's generation settings, changed to what ``options`` say."""
    config = copy.deepcopy(stored)
    changes: dict[str, Any] = {**settings_of(options, room), "max_length": None}
    if options.choices is not None:  # what else the checkpoint holds back must not forbid a choice
        changes |= {"suppress_tokens": [], "begin_suppress_tokens": []}
    if config.pad_token_id is None:
        changes["pad_token_id"] = pad
    for name, value in changes.items():
        setattr(config, name, value)
    for name, value in _NEUTRAL.items():  # the package would fill in numbers of its own
        if getattr(config, name, None) is None:
            setattr(config, name, value)
    return config


def effective(config: Any) -> dict[str, Any]:
    """What of the settings moved a reply, for its row."""
    names = ["max_new_tokens", "do_sample", "repetition_penalty"]
    names += ["temperature", "top_p", "top_k", "min_p"] if config.do_sample else []
    return {name: value for name in names if (value := getattr(config, name, None)) is not None}


def ends_of(config: Any) -> list[int]:
    """Tokens that end a reply."""
    ends = config.eos_token_id
    return [] if ends is None else list(ends) if isinstance(ends, list | tuple) else [int(ends)]


def follower(options: Options, tokenizer: Any, ends: Sequence[int], start: int) -> Callable[..., list[int]] | None:
    """The rule that holds replies to the choices, as generation asks for it.

    Args:
        options: with or without choices.
        tokenizer: of the model.
        ends: tokens that end a reply.
        start: tokens of the prompt, padding included.
    """
    if options.choices is None:
        return None
    own = tokenizer.eos_token_id
    stops = [own] if own in ends else list(ends)
    tree = ChoiceTokens([tokenizer.encode(text, add_special_tokens=False) for text in options.choices], stops)
    return lambda _, written: tree.allowed(written[start:].tolist())


class Recorder:
    """Log-probabilities of the first tokens, after what is forbidden was ruled out and before sampling changes them.

    It takes part in generation as a logits processor that changes nothing.

    Args:
        count: likeliest alternatives that are kept of each token.
        start: tokens of the prompt, padding included.
    """

    def __init__(self, count: int, start: int) -> None:
        self._count, self._start = count, start
        self._steps: list[tuple[Tensor, Tensor]] = []
        self._chosen: list[Tensor] = []
        self._last: Tensor | None = None

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Note the chances of the next token."""
        self._note_chosen(input_ids[:, -1])
        if len(self._steps) < LOGGED_TOKENS:
            self._last = scores.float().log_softmax(dim=-1)
            top = self._last.topk(min(max(self._count, 1), scores.shape[-1]), dim=-1)
            self._steps.append((top.values.cpu(), top.indices.cpu()))
        return scores

    def _note_chosen(self, tokens: Tensor) -> None:
        if self._last is not None:
            self._chosen.append(self._last.gather(1, tokens[:, None])[:, 0].cpu())
            self._last = None

    def finish(self, sequences: Tensor) -> None:
        """Note the last token, which no further step tells."""
        if self._last is not None:
            self._note_chosen(sequences[:, self._start + len(self._steps) - 1])

    def chances(self, row: int, tokens: Sequence[int], tokenizer: Any) -> tuple[TokenChance, ...]:
        """Of the tokens of one reply; alternatives that were ruled out are left out."""
        found = []
        for token, (values, ids), chosen in zip(tokens, self._steps, self._chosen, strict=False):
            top: dict[str, float] = {}
            for value, other in zip(values[row].tolist(), ids[row].tolist(), strict=True):
                if value > -1e30:
                    top.setdefault(tokenizer.decode([other]), value)  # the likeliest of tokens that share a text
            found.append(TokenChance(tokenizer.decode([token]), float(chosen[row]), top))
        return tuple(found)


@contextmanager
def seeded(options: Options, device: Any) -> Iterator[None]:
    """Draw by the seed of ``options`` inside the block, and leave the generators as they were."""
    import torch

    if options.seed is None or options.temperature == 0:
        yield
        return
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(options.seed)
        yield


def cut_at(text: str, stops: Sequence[str] | None) -> tuple[str, bool]:
    """``text`` up to the first of ``stops``, and whether there is one.

    >>> cut_at("Yes. No.", ["No", "."])
    ('Yes', True)
    """
    places = [place for stop in stops or () if (place := text.find(stop)) >= 0]
    return (text[: min(places)], True) if places else (text, False)
