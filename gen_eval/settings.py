"""Settings of this machine: from the environment (``GEN_EVAL_…``), never part of a score's identity."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from gen_eval.records.errors import InputError

_PREFIX = "GEN_EVAL_"
_DAY = 86_400.0


class Settings(BaseSettings):
    """Read from environment variables named ``GEN_EVAL_`` plus the field name in capitals."""

    model_config = SettingsConfigDict(env_prefix=_PREFIX, extra="ignore")

    workers: int = Field(
        0, ge=0, description="processes that score groups; 0 takes one for each core, and a single one with networks"
    )
    threads: int = Field(
        0, ge=0, description="threads that one process may use for arithmetic; 0 divides the cores among the processes"
    )
    chunk: int = Field(8, ge=1, description="frames of each member that are held at a time")
    device: str = Field("auto", description="where networks run: auto, cpu, cuda or cuda:N")
    decode_timeout: float = Field(
        30.0, gt=0, le=_DAY, description="seconds that a decoder may take for its next frames"
    )
    max_pixels: int = Field(67_108_864, gt=0, description="largest frame (width x height) that is decoded")
    store: str | None = Field(None, description="database URL for rows, when they are not kept in the run folder")
    weights: Path = Field(Path("~/.cache/gen-eval/weights"), description="folder of checkpoints, one folder for each")
    weights_mirror: Path | None = Field(
        None, description="read-only folder of checkpoints in the same layout, looked into before anything is fetched"
    )
    weights_lock: Path | None = Field(
        None,
        description="file of pinned digests, to be kept with a project; default: `lock.json` in the weights folder",
    )
    hub: str = Field("https://huggingface.co", description="address that hub ids are fetched from")
    attempts: int = Field(2, ge=1, description="tries of a group within a run before its failure is recorded")
    chat_concurrency: int = Field(16, ge=1, description="most requests to a model that are under way at once")
    chat_requests_per_minute: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="most requests to a model in a minute; unset for any number"
    )
    chat_attempts: int = Field(4, ge=1, description="most requests for one reply, the first included")
    chat_timeout: float = Field(180.0, gt=0, le=_DAY, description="seconds that a model may take for one reply")
    chat_cache: Path | None = Field(
        None, description="file that keeps replies which would come out the same again; unset keeps none"
    )


@lru_cache(maxsize=1)
def settings() -> Settings:
    """The settings of this process, read once.

    Raises:
        InputError: a variable has a value that cannot be used; all of them are named.
    """
    try:
        return Settings()
    except ValidationError as error:
        problems = (
            f"{_PREFIX}{str(problem['loc'][0]).upper()} is {problem['input']!r}: {problem['msg']}"
            for problem in error.errors()
        )
        raise InputError(f"{'; '.join(problems)}. Correct or unset the environment variable") from None
