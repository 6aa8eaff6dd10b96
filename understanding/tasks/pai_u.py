"""PAI-Bench-U: multiple-choice questions about real videos of the physical world."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from gen_eval.data.records_file import Refused
from gen_eval.records import InputError
from understanding.data import pai_u
from understanding.data.choices import ChoiceSample
from understanding.data.samples import Samples
from understanding.scoring.outcome import SampleScore
from understanding.scoring.public_outputs import harness_output, script_output
from understanding.tasks.choices import ChoiceTask


class PaiU(ChoiceTask):
    """The U track of PAI-Bench: accuracy over 1,214 questions (publication, table 5)."""

    name: ClassVar[str] = pai_u.TASK
    title: ClassVar[str] = "PAI-Bench-U, understanding of physical video"
    dialects: ClassVar[tuple[str, ...]] = ("paibench_u", "reason_script", "physical_ai_understanding")
    prompts: ClassVar[str] = "pai_u"
    table: ClassVar[str] = "pai_table5"
    ways: ClassVar[tuple[str, ...]] = ("category", "part", "subcategory", "column", "average")

    def samples(self, path: str | os.PathLike[str], *, media: Path | None = None) -> Samples[ChoiceSample]:
        """The questions in ``path``: the published folder (parquet or a JSON list, with ``videos/``) or JSON lines.

        Raises:
            InputError: there are none that can be used.
        """
        return pai_u.load(Path(path), media_folder=media)

    def sample(self, record: Mapping[str, Any]) -> ChoiceSample:
        """One question from its fields.

        Raises:
            InputError: a field has another form.
        """
        try:
            return replace(pai_u.make_sample({"id": "sample", **record}, 0, Path()), index=None)
        except Refused as refusal:
            raise InputError(f"the sample cannot be used: {refusal}") from None

    def _order(self, way: str, groups: Iterable[str]) -> list[str]:
        """Columns as the published table has them, everything else by name."""
        columns = pai_u.columns()
        published = {"column": [one.name for one in columns], "average": [one.average for one in columns]}
        places = {name: place for place, name in reversed([*enumerate(published.get(way, []))])}
        return sorted(groups, key=lambda name: (places.get(name, len(places)), name))

    def _public_outputs(self, scores: list[SampleScore]) -> dict[str, Any]:
        return {"harness": harness_output(scores), "script": script_output(scores)}


TASK = PaiU
