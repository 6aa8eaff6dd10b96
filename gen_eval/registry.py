"""Finding metrics, generators, tasks and chat clients: entry points, loaded when asked for.

Reading the table of names imports nothing. An extension that cannot be loaded is reported with its name and does not
take the program down.
"""

from __future__ import annotations

import difflib
import importlib
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any

from gen_eval.records.errors import InputError, MissingPart

# package that is imported -> extra of this project that installs it
EXTRA_OF = {
    "torch": "models",
    "torchvision": "models",
    "transformers": "models",
    "accelerate": "models",
    "lpips": "models",
    "open_clip": "models",
    "timm": "models",
    "diffusers": "generators",
    "vllm": "vllm",
    "ray": "cluster",
    "torchcodec": "gpu-video",
    "fsspec": "storage",
    "s3fs": "storage",
    "psycopg": "postgres",
    "mlflow": "tracking",
    "wandb": "tracking",
    "tensorboard": "tracking",
    "peft": "adapt",
}


def require(package: str) -> ModuleType:
    """Import ``package``, which belongs to an extra.

    Raises:
        MissingPart: it is not installed; the message names the extra.
    """
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != package.split(".")[0]:
            raise
        extra = EXTRA_OF.get(package.split(".")[0])
        hint = f"pip install 'gen-eval[{extra}]'" if extra else f"pip install {package}"
        raise MissingPart(f"the package {package!r} is not installed; {hint}") from None


@lru_cache(maxsize=8)
def _table(group: str) -> dict[str, EntryPoint]:
    return {
        entry.name: entry for entry in sorted(entry_points(group=group), key=lambda entry: (entry.name, entry.value))
    }


def names(group: str) -> list[str]:
    """All names in ``group`` (``gen_eval.metrics``, ``gen_eval.generators``, …), sorted."""
    return list(_table(group))


def load(group: str, name: str) -> Any:
    """The object that ``name`` stands for.

    Raises:
        InputError: there is no such name (near ones are offered), or its module cannot be imported.
    """
    table = _table(group)
    kind = group.rsplit(".", 1)[-1]
    if name not in table:
        near = difflib.get_close_matches(name, table, n=1)
        offer = f"; did you mean {near[0]}" if near else ""
        raise InputError(f"no entry {name!r} among the {kind}{offer}. There are: {', '.join(table) or 'none'}")
    try:
        return table[name].load()
    except MissingPart:
        raise
    except Exception as error:
        raise InputError(
            f"{name!r} among the {kind} ({table[name].value}) cannot be loaded: {type(error).__name__}: {error}"
        ) from error
