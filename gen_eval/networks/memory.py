"""Running out of memory, told alike by all devices."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_ALLOCATORS = ("can't allocate memory", "not enough memory", "out of memory", "STATUS_ALLOC_FAILED", "bad_alloc")


@contextmanager
def memory_errors() -> Iterator[None]:
    """Turn what torch raises when memory runs out into ``MemoryError``: the chunk is then halved and tried again."""
    import torch

    try:
        yield
    except RuntimeError as error:  # torch's own class for accelerators is one, too; the CPU's has no class of its own
        if not isinstance(error, torch.OutOfMemoryError) and not any(text in str(error) for text in _ALLOCATORS):
            raise
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        raise MemoryError(str(error).splitlines()[0]) from error
