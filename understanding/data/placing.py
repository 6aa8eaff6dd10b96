"""Whether the row numbers of a prediction table count from 0 or from 1: found out, never taken for granted.

A table that counts from 1 and is read from 0 gives every reply to the question before its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gen_eval.records import InputError
from understanding.data.predictions import Prediction, Predictions
from understanding.data.samples import Samples, SampleT, TaskSample

_ORIGINS = (0, 1)


def placed(found: Predictions, samples: Samples[SampleT]) -> Predictions:
    """``found`` with places that count from 0.

    A row number 0 decides it; else the origin under which more rows say the same as the data (question, options,
    right answer). Rows whose ``index`` is an id need no place.

    Raises:
        InputError: neither is so; the message names the column that is missing.
    """
    numbered = [one for one in found.items if one.index is not None and one.id not in samples.by_id]
    if found.counts_from is not None or not numbered:
        return found
    origin = _origin(numbered, samples.by_index)
    items = tuple(one if one.index is None else replace(one, index=one.index - origin) for one in found.items)
    return replace(found, items=items, counts_from=0)


def _origin(numbered: Sequence[Prediction], by_index: Mapping[int, TaskSample]) -> int:
    if any(one.index == 0 for one in numbered):
        return 0
    speaking = [one for one in numbered if one.said or one.options]
    alike = [sum(_alike(one, by_index.get((one.index or 0) - origin)) for one in speaking) for origin in _ORIGINS]
    best = max(_ORIGINS, key=lambda origin: alike[origin])
    if alike[0] != alike[1] and 2 * alike[best] > len(speaking):
        return best
    first = f"{numbered[0].where}: index {numbered[0].index}"
    if not speaking:
        problem = "the table has no column question, nor A, B, … or answer, that would tell"
    elif alike[0] == alike[1]:
        problem = f"{alike[0]} of {len(speaking)} rows fit the data either way"
    else:
        problem = f"only {alike[best]} of {len(speaking)} rows fit the data at best, so these may be other data"
    raise InputError(
        f"whether index counts from 0 or from 1 cannot be told ({first}): {problem}. Give the table a column question "
        "with the data's own questions, or ids of the data as index"
    )


def _alike(one: Prediction, sample: TaskSample | None) -> bool:
    """Whether everything that the row says of its question is what the data say."""
    if sample is None:
        return False
    options = sample.prompt.get("options")
    known = {"answer": sample.truth, **sample.prompt, **(dict(options) if isinstance(options, Mapping) else {})}
    pairs = [(said, known.get(name)) for name, said in {**one.options, **one.said}.items()]
    return all(isinstance(text, str) and text.split() == said.split() for said, text in pairs)
