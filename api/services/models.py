"""Language models for people: what entries there are, their terms, and how a model is had."""

from __future__ import annotations

from typing import Any

from gen_eval.mllm import ModelEntry, load_model, model_names
from gen_eval.mllm.entry import IN_PROCESS


def list_models() -> list[dict[str, Any]]:
    """All model entries, with their terms and sizes.

    Raises:
        InputError: an entry cannot be used.
    """
    return [_listed(load_model(name)) for name in model_names()]


def _listed(entry: ModelEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "title": entry.title,
        "id": entry.id,
        "backend": entry.backend,
        "size": entry.size,
        "licence": entry.licence,
        "commercial": entry.commercial,
        "rows": dict(entry.rows),
    }


def how_had(name: str) -> str:
    """In words, where the model of an entry comes from; `weights fetch` brings none."""
    entry = load_model(name)
    terms = f"its licence: {entry.licence} (commercial use: {entry.commercial})"
    if entry.backend in IN_PROCESS:
        return (
            f"{name} is a language model: its first use in this process loads {entry.id} from the hub through "
            f"transformers, which keeps it in its own cache; {terms}"
        )
    if entry.endpoint.base_url is None and entry.backend == "http":
        return (
            f"{name} is a language model: a server such as `vllm serve {entry.id}` fetches and runs it, and --endpoint "
            f"gives its address; {terms}"
        )
    return f"{name} is a hosted model: there is nothing to fetch; set {entry.endpoint.api_key_env} to ask it; {terms}"
