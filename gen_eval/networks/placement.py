"""Where and how exactly networks compute: recorded with every score that they move."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from gen_eval.records import InputError

Precision: TypeAlias = Literal["float32", "bfloat16", "float16"]


@dataclass(frozen=True)
class Placement:
    """The device, the number format and the form in which networks run.

    Attributes:
        device: ``cpu``, ``cuda`` or ``cuda:N``.
        dtype: number format of the network; what comes out of it is float32 in every case.
        compile: whether networks go through ``torch.compile`` first.
    """

    device: str = "cpu"
    dtype: Precision = "float32"
    compile: bool = False

    def __post_init__(self) -> None:
        """Refuse what no device or format is called.

        Raises:
            InputError: the value and what it may be.
        """
        kind, _, number = self.device.partition(":")
        if kind not in {"cpu", "cuda"} or (number and not (kind == "cuda" and number.isdecimal())):
            raise InputError(f"the device {self.device!r} is not known; expected auto, cpu, cuda or cuda:N")
        if self.dtype not in get_args(Precision):
            raise InputError(f"the dtype {self.dtype!r} is not known; expected {', '.join(get_args(Precision))}")

    def to_json(self) -> dict[str, Any]:
        """What a manifest records. Devices of one kind are not told apart."""
        return {"device": self.device.partition(":")[0], "dtype": self.dtype, "compile": self.compile}


_DEFAULT = Placement()
_CURRENT: ContextVar[Placement] = ContextVar("placement", default=_DEFAULT)


def current() -> Placement:
    """The placement that networks are run under here and now."""
    return _CURRENT.get()


@contextmanager
def placed(placement: Placement) -> Iterator[None]:
    """Run networks under ``placement`` inside the block."""
    token = _CURRENT.set(placement)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def placement_of(device: str, dtype: str = "float32", *, compile: bool = False) -> Placement:
    """The placement that a user asks for.

    Args:
        device: ``auto`` takes CUDA where there is one, else the CPU.
        dtype: ``float32``, ``bfloat16`` or ``float16``.
        compile: see :class:`Placement`.

    Raises:
        InputError: one of them is not known, or CUDA was asked for and cannot be used here.
    """
    asked = Placement("cpu" if device == "auto" else device, dtype, compile)  # type: ignore[arg-type]
    if asked.device == "cpu" and device != "auto":
        return asked
    count = _cuda_devices()
    if device == "auto":
        return Placement("cuda" if count else "cpu", asked.dtype, compile)
    if int(asked.device.partition(":")[2] or 0) >= count:
        raise InputError(f"the device {device!r} cannot be used: CUDA has {count} devices here; take --device cpu")
    return asked


def _cuda_devices() -> int:
    try:
        import torch
    except ModuleNotFoundError:
        return 0
    return torch.cuda.device_count() if torch.cuda.is_available() else 0
