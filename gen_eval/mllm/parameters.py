"""What a model entry says to its backend alone (``parameters``), checked when the backend is opened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gen_eval.mllm.chat import Options
from gen_eval.mllm.entry import ModelEntry
from gen_eval.records import InputError

Chosen = TypeVar("Chosen", bound="Parameters")


class Parameters(BaseModel):
    """What all backends over HTTP understand."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    without: tuple[str, ...] = Field((), description="options that this model does not take, by name")
    body: Mapping[str, Any] = Field(default_factory=dict, description="fields sent with each request as they are")

    @classmethod
    def of(cls: type[Chosen], entry: ModelEntry) -> Chosen:
        """The parameters of ``entry``.

        Raises:
            InputError: one is not known or cannot be used; the message names it.
        """
        try:
            found = cls.model_validate(dict(entry.parameters))
        except ValidationError as error:
            problems = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
            known = ", ".join(cls.model_fields)
            raise InputError(f"parameters of the model entry {entry.name!r}: {problems} (known: {known})") from None
        if unknown := set(found.without) - set(Options.__dataclass_fields__):
            raise InputError(f"parameters.without of {entry.name!r} names no option: {', '.join(sorted(unknown))}")
        return found

    def added(self, body: dict[str, Any]) -> dict[str, Any]:
        """``body`` with the entry's own fields.

        Raises:
            InputError: one of them is said by the request already.
        """
        if both := sorted(set(body) & set(self.body)):
            raise InputError(f"parameters.body of the model entry repeats {', '.join(both)}; use options for those")
        return {**body, **self.body}


class PictureParameters(Parameters):
    """Of backends that look at pictures in a stated size."""

    detail: Literal["low", "high", "auto"] = Field("high", description="size at which pictures are looked at")


def check_effort(entry: ModelEntry, effort: str | None) -> None:
    """Refuse an effort that the model does not have.

    Raises:
        InputError: the entry lists others.
    """
    known = entry.thinking.efforts
    if effort is not None and known and effort not in known:
        raise InputError(f"{entry.name} knows the efforts {', '.join(known)}, not {effort!r}")
