"""Networks that rate frames: one number a frame, which aesthetic and imaging quality average."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gen_eval.records import InputError


def ratings(outputs: NDArray[Any], *, network: str) -> NDArray[np.float64]:
    """The numbers (n,) that the checkpoint ``network`` gave to n frames, from its ``outputs`` (n, 1).

    Raises:
        InputError: it gives more than one number, so it is no network that rates.
    """
    if outputs.ndim != 2 or outputs.shape[1] != 1:
        raise InputError(
            f"the network {network} gives {outputs.shape[-1]} numbers a frame, and one rating is needed; "
            "name a network that rates, such as aesthetic_head or musiq_spaq, in the protocol"
        )
    return outputs[:, 0].astype(np.float64)


def scale_of(decide: Mapping[str, Any]) -> float:
    """The rating that becomes 1.

    Raises:
        InputError: it is not positive.
    """
    if decide["scale"] <= 0:
        raise InputError(f"scale must be the rating that becomes 1, above 0, not {decide['scale']}")
    return float(decide["scale"])
