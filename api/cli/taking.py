"""Commands whose options are a table: written with ``**given``, and taken as if each were spelled out."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

Options = dict[str, tuple[Any, Any]]
"""Name -> its type with the help, its default (``...``: it must be given)."""


def taking(taken: Options) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Give a command that is written with ``**given`` the options ``taken``, where the command line looks for them."""
    empty, kind = inspect.Parameter.empty, inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [
        inspect.Parameter(name, kind, annotation=hint, default=empty if default is ... else default)
        for name, (hint, default) in taken.items()
    ]
    signature = inspect.Signature(parameters, return_annotation=int)

    def written(command: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(command)
        def bound(*args: Any, **kwargs: Any) -> int:
            given = signature.bind(*args, **kwargs)
            given.apply_defaults()
            return command(**given.arguments)

        bound.__signature__ = signature  # type: ignore[attr-defined]
        bound.__annotations__ = {name: hint for name, (hint, _) in taken.items()}
        return bound

    return written
