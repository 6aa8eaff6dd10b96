"""Whether what was asked for came back: servers take options without heeding them, and say nothing."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from gen_eval.mllm.chat import Options, Reply

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_DEPTH = 32


def disobeyed(options: Options, reply: Reply) -> tuple[str, ...]:
    """Names of the options that ``reply`` shows not to have been heeded.

    >>> disobeyed(Options(choices=("Yes", "No"), logprobs=5), Reply("Perhaps"))
    ('choices', 'logprobs')
    """
    text = reply.text or ""
    broken = {
        "choices": options.choices is not None and text.strip() not in options.choices,
        "schema": options.schema is not None and not fits_text(text, options.schema),
        "logprobs": options.logprobs is not None and not reply.logprobs,
        "stop": any(one in text for one in options.stop or ()),
        "max_tokens": (reply.usage.completion_tokens or 0) > options.max_tokens,
        "thinking": options.thinking is False and bool((reply.reasoning or "").strip()),
    }
    return tuple(sorted(name for name, is_broken in broken.items() if is_broken))


def fits_text(text: str, schema: Mapping[str, Any]) -> bool:
    """Whether ``text`` is JSON that fits ``schema``."""
    try:
        return fits(json.loads(text), schema)
    except (ValueError, RecursionError):
        return False


def fits(value: Any, schema: Mapping[str, Any], depth: int = 0) -> bool:
    """Whether ``value`` fits a JSON schema, as far as types, enumerations, bounds, items and properties go.

    Keywords beyond those are taken to be met: this notices a server that pays no heed, it validates nothing.

    >>> fits({"answer": "yes"}, {"type": "object", "required": ["answer", "why"]})
    False
    """
    if depth > _DEPTH:
        return True
    return (
        _of_type(value, schema.get("type"))
        and ("enum" not in schema or value in schema["enum"])
        and ("const" not in schema or value == schema["const"])
        and _in_bounds(value, schema)
        and (not isinstance(value, list) or _items_fit(value, schema, depth))
        and (not isinstance(value, dict) or _properties_fit(value, schema, depth))
    )


def _of_type(value: Any, names: Any) -> bool:
    if names is None:
        return True
    wanted = [names] if isinstance(names, str) else names
    if isinstance(value, bool):
        return "boolean" in wanted
    if isinstance(value, float) and value.is_integer() and "integer" in wanted:
        return True
    return any(isinstance(value, _TYPES.get(name, (object,))) for name in wanted)


def _in_bounds(value: Any, schema: Mapping[str, Any]) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return True
    return bool(schema.get("minimum", -math.inf) <= value <= schema.get("maximum", math.inf))


def _items_fit(value: list[Any], schema: Mapping[str, Any], depth: int) -> bool:
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", math.inf):
        return False
    items = schema.get("items")
    return not isinstance(items, Mapping) or all(fits(one, items, depth + 1) for one in value)


def _properties_fit(value: Mapping[str, Any], schema: Mapping[str, Any], depth: int) -> bool:
    known: Mapping[str, Any] = schema.get("properties", {})
    if any(name not in value for name in schema.get("required", ())):
        return False
    if schema.get("additionalProperties") is False and set(value) - set(known):
        return False
    return all(fits(value[name], one, depth + 1) for name, one in known.items() if name in value)
