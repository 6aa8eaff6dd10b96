"""A benchmark in memory: its samples, and what of it could not be used."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from gen_eval.records import InputError, Rejection, Sample

PAI_G_DOMAINS = ("av", "common_sense", "human", "industry", "misc", "physics", "robot")
"""Prefixes of ``video_id`` in PAI-Bench-G."""


@dataclass(frozen=True)
class Rejected:
    """A line or file of a benchmark that was not used.

    Attributes:
        where: file name, with the line number for lines.
        reason: its name.
        message: what was found and what was expected.
    """

    where: str
    reason: Rejection
    message: str


@dataclass(frozen=True)
class Benchmark:
    """Samples in order of their id.

    Attributes:
        layout: how it was stored (``pai-g``, ``pai-c``, ``references``, ``samples-file``, ``videos-only``).
        root: folder that the paths of its samples lie under.
        samples: sorted by id; ids are unique.
        rejected: what could not be used.
        has_domains: whether a sample without a domain is worth a flag.
    """

    layout: str
    root: Path
    samples: tuple[Sample, ...]
    rejected: tuple[Rejected, ...] = ()
    has_domains: bool = True
    by_id: dict[str, Sample] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Index the samples by id."""
        object.__setattr__(self, "by_id", {sample.id: sample for sample in self.samples})

    def with_domains_of_ids(self) -> Benchmark:
        """The same samples; those that name no domain have the one that their id starts with (G track only)."""
        samples = (replace(one, domain=one.domain or domain_of_id(one.id)) for one in self.samples)
        return replace(self, samples=tuple(samples))

    def restricted(self, *, domains: tuple[str, ...] | None = None, limit: int | None = None) -> Benchmark:
        """The same benchmark with the samples of ``domains`` only, and of those the first ``limit``.

        Raises:
            InputError: a domain has no sample, or the limit is below one.
        """
        chosen = self.samples
        if domains is not None:
            known = sorted({sample.domain for sample in self.samples if sample.domain is not None})
            if absent := [domain for domain in domains if domain not in known]:
                raise InputError(
                    f"no sample has the domain {', '.join(absent)}; there are {', '.join(known) or 'none'}"
                )
            chosen = tuple(sample for sample in chosen if sample.domain in domains)
        if limit is not None:
            if limit < 1:
                raise InputError(f"--limit must be at least 1, not {limit}")
            chosen = chosen[:limit]
        return Benchmark(self.layout, self.root, chosen, self.rejected, self.has_domains)


def domain_of_id(sample_id: str) -> str | None:
    """The PAI-Bench-G domain that an id starts with (``common_sense_12`` -> ``common_sense``), else ``None``."""
    return next((domain for domain in PAI_G_DOMAINS if sample_id.startswith(f"{domain}_")), None)
