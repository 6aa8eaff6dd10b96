"""What differs between two runs besides their numbers, in words and the weightiest first."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from api.services import wording
from api.services.results import RunResults
from gen_eval.records.run import differing

SAMPLE_FILES = ("reference", "depth", "masks", "condition_image")
"""Files of a sample that a score may depend on, as manifests name them."""

_FILE_WORDS = {
    "reference": "reference videos",
    "depth": "depth maps of the references",
    "masks": "segmentations of the references",
    "condition_image": "condition images",
}


@dataclass(frozen=True)
class Difference:
    """One thing that differs.

    Attributes:
        about: a short name for programs (``prompts``, ``preset``, ``fps``).
        text: the sentence for people, with both sides.
        expected: whether runs of two models on one benchmark always differ in it.
    """

    about: str
    text: str
    expected: bool = False

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {"about": self.about, "text": self.text, "expected": self.expected}


def differences(first: RunResults, second: RunResults) -> tuple[Difference, ...]:
    """Everything in which the manifests of two runs and the videos of their rows differ."""
    pair = _Pair(first, second)
    parts = (
        pair.value("track", "the runs belong to different tracks: {} and {}"),
        pair.imported(),
        pair.condition(),
        pair.sample_sets(),
        pair.prompts(),
        *(pair.sample_files(name) for name in SAMPLE_FILES),
        pair.metric_sets(),
        pair.metric_rules(),
        pair.value("protocol", "the protocol that was asked for: {} and {}"),
        pair.preset(),
        pair.value("layout", "layout of the data: {} and {}"),
        pair.value("seeds", "seeds or captions that were asked for: {} and {}", absent="those found"),
        pair.value("domains", "domains that were asked for: {} and {}", absent="all"),
        pair.value("limit", "number of samples that was asked for: {} and {}", absent="all"),
        pair.recorded("fps", "fps", "frame rate of the videos", "{:.6g} fps"),
        pair.recorded("frames", "decoded_frames", "frames in the videos", "{:.0f} frames"),
        pair.member_sets(),
        pair.domains(),
        pair.totals(),
        pair.environment(),
        pair.networks(),
        pair.judges(),
        pair.rest(),
        pair.model(),
        pair.videos(),
    )
    return tuple(one for part in parts for one in part)


def differing_samples(first: RunResults, second: RunResults, name: str) -> list[str]:
    """Common samples whose file ``name`` has another content in the two runs."""
    pair = _Pair(first, second)
    return pair.where(lambda entry: _content(entry, name))


def _content(entry: Mapping[str, Any], name: str) -> Any:
    file = entry.get(name)
    return file.get("sha256") if isinstance(file, Mapping) else file


_HANDLED = frozenset(
    {
        "imported",
        "condition",
        "totals",
        "track",
        "samples",
        "metrics",
        "protocol",
        "preset",
        "layout",
        "seeds",
        "domains",
        "limit",
        "environment",
        "networks",
        "model",
        "judge",
    }
    | {"unknown_videos", "not_asked_videos"}
)


_NOT_SAID = frozenset({"chunk"})
"""What the manifest of an imported run cannot say."""


class _Pair:
    """Two runs and their common samples."""

    def __init__(self, first: RunResults, second: RunResults) -> None:
        self.first, self.second = first, second

    @cached_property
    def _samples(self) -> tuple[dict[str, Any], dict[str, Any]]:
        one, other = ({entry["id"]: entry for entry in run.manifest["samples"]} for run in (self.first, self.second))
        return one, other

    @cached_property
    def common(self) -> list[str]:
        """Samples that both runs have, sorted."""
        one, other = self._samples
        return sorted(one.keys() & other.keys())

    def where(self, part: Callable[[Mapping[str, Any]], Any]) -> list[str]:
        """Common samples for which ``part`` of the entry differs; what an import does not know differs from nothing."""
        one, other = self._samples
        sides = ((sample, part(one[sample]), part(other[sample])) for sample in self.common)
        return [sample for sample, mine, theirs in sides if mine != theirs and self._known(mine, theirs)]

    def _known(self, mine: Any, theirs: Any) -> bool:
        """Whether a run really says so on both sides: ``None`` in an imported run is no statement."""
        return not ((mine is None and self.first.imported) or (theirs is None and self.second.imported))

    @property
    def _any_imported(self) -> bool:
        return self.first.imported or self.second.imported

    def imported(self) -> Iterator[Difference]:
        """What is not known of scores that were read from another program's result files."""
        for run, which in ((self.first, "first"), (self.second, "second")):
            if run.imported:
                files = wording.listed([str(file["path"]) for file in run.manifest["imported"]["files"]])
                text = (
                    f"the {which} run was imported from {files}: its weights, number format, packages and videos are "
                    "not known and may differ"
                )
                yield Difference("imported", text)

    def condition(self) -> Iterator[Difference]:
        """What the generators were given besides the prompt."""
        one, other = self.first.condition, self.second.condition
        if one != other and self._known(one, other):
            sides = ["not said" if side is None else side for side in (one, other)]
            yield Difference("condition", f"what the generators were given: {sides[0]} and {sides[1]}")

    def totals(self) -> Iterator[Difference]:
        """What common totals are made of."""
        one, other = (run.manifest.get("totals") or {} for run in (self.first, self.second))
        for name in sorted(one.keys() & other.keys()):
            if one[name]["mean_of"] != other[name]["mean_of"]:
                sides = " and ".join(", ".join(side[name]["mean_of"]) for side in (one, other))
                yield Difference("totals", f"parts of the total {name}: {sides}")

    def _some(self, about: str, what: str, found: list[str], expected: bool = False) -> Iterator[Difference]:
        if found:
            share = f"{len(found):,} of {wording.counted(len(self.common), 'common sample')}"
            yield Difference(about, f"{what} differ for {share}: {wording.listed(found)}", expected)

    # --- manifest -----------------------------------------------------------------------------------------------

    def value(self, name: str, text: str, absent: str = "none") -> Iterator[Difference]:
        """A field of the manifest; ``absent`` is what it says when nothing was given."""
        one, other = (run.manifest.get(name) for run in (self.first, self.second))
        if one != other:
            yield Difference(name, text.format(*(absent if side is None else _spoken(side) for side in (one, other))))

    def preset(self) -> Iterator[Difference]:
        """Which frames the metrics were shown."""
        one, other = (run.manifest["preset"] for run in (self.first, self.second))
        if one != other:
            alike = one["name"] == other["name"]  # then a file of that name was changed
            sides = [f"{side['name']} ({_spoken(side)})" if alike else side["name"] for side in (one, other)]
            yield Difference("preset", f"what the metrics were shown (preset): {sides[0]} and {sides[1]}")

    def sample_sets(self) -> Iterator[Difference]:
        """Samples that only one of them has."""
        one, other = self._samples
        for own, others, which in ((one, other, "first"), (other, one, "second")):
            if only := sorted(own.keys() - others.keys()):
                text = f"{wording.counted(len(only), 'sample')} of {len(own):,} only in the {which} run: "
                yield Difference("samples", text + wording.listed(only))

    def prompts(self) -> Iterator[Difference]:
        """Texts that the generators were given."""
        return self._some("prompts", "prompts", self.where(lambda entry: entry.get("prompt")))

    def sample_files(self, name: str) -> Iterator[Difference]:
        """Files that scores are taken against; another path with the same content is no difference."""
        found = self.where(lambda entry: _content(entry, name))
        return self._some(name, _FILE_WORDS[name], found)

    def domains(self) -> Iterator[Difference]:
        """Domains of common samples."""
        return self._some("domains_of_samples", "domains", self.where(lambda entry: entry.get("domain")))

    def member_sets(self) -> Iterator[Difference]:
        """Seeds (captions) of common samples."""
        found = self.where(lambda entry: sorted(member["id"] for member in entry["members"]))
        return self._some("members", "seeds or captions", found)

    def metric_sets(self) -> Iterator[Difference]:
        """Metrics and protocols that only one of them has."""
        one, other = (
            {(metric, name) for metric, entry in run.manifest["metrics"].items() for name in entry["protocols"]}
            for run in (self.first, self.second)
        )
        for own, others, which in ((one, other, "first"), (other, one, "second")):
            by_metric: dict[str, list[str]] = defaultdict(list)
            for metric, name in sorted(own - others):
                by_metric[metric].append(name)
            if by_metric:
                found = [f"{metric} ({', '.join(names)})" for metric, names in by_metric.items()]
                yield Difference("metrics", f"only in the {which} run: {', '.join(found)}")

    def metric_rules(self) -> Iterator[Difference]:
        """Versions and parameter digests of common metrics."""
        ones, others = self.first.manifest["metrics"], self.second.manifest["metrics"]
        for metric in sorted(ones.keys() & others.keys()):
            one, other = ones[metric], others[metric]
            if one["version"] != other["version"]:
                yield Difference("version", f"version of {metric}: {one['version']} and {other['version']}")
            for name in sorted(one["protocols"].keys() & other["protocols"].keys()):
                mine, theirs = one["protocols"][name], other["protocols"][name]
                if mine != theirs:
                    text = f"parameters of {metric} under {name}: digest {mine[:12]} and {theirs[:12]}"
                    yield Difference("parameters", text)
                rules = [entry.get("members", {}).get(name) for entry in (one, other)]
                if rules[0] != rules[1] and all(rules):
                    text = f"how videos enter the mean of {metric} under {name}: {rules[0]} and {rules[1]}"
                    yield Difference("aggregation", text)

    def environment(self) -> Iterator[Difference]:
        """Versions of packages that move scores."""
        if self._any_imported:
            return
        one, other = self.first.manifest["environment"], self.second.manifest["environment"]
        for name in sorted({*one, *other}):
            if one.get(name) != other.get(name):
                text = f"{name}: {one.get(name, 'absent')} and {other.get(name, 'absent')}"
                yield Difference("environment", text)

    def networks(self) -> Iterator[Difference]:
        """Placement, packages and weights of the networks that both used."""
        if self._any_imported:
            return
        one, other = (run.manifest.get("networks") or {} for run in (self.first, self.second))
        for part, kind in (
            ("placement", "networks"),
            ("packages", "package"),
            ("weights", "weights of"),
            ("definitions", "definition of"),
        ):
            for name in sorted(one.get(part, {}).keys() & other.get(part, {}).keys()):
                values = [side[part][name] for side in (one, other)]
                if values[0] != values[1]:
                    shown = [str(value)[:12] if part == "weights" and value else str(value) for value in values]
                    yield Difference("networks", f"{kind} {name}: {shown[0]} and {shown[1]}")

    def judges(self) -> Iterator[Difference]:
        """Who judged: by name where they are two, else what of the one judge is another."""
        one, other = (run.manifest.get("judge") for run in (self.first, self.second))
        if one is None or other is None or one == other:
            return
        if one.get("title") != other.get("title"):
            text = f"the judges: {one.get('title')} and {other.get('title')}; scores of two judges do not compare"
            yield Difference("judge", text)
            return
        for line in differing({"judge": one}, {"judge": other}):
            yield Difference(line.split(":")[0], line.replace(" -> ", " and "))

    def rest(self) -> Iterator[Difference]:
        """Every other field of the manifests, so that nothing goes unsaid."""
        unsaid = _NOT_SAID if self._any_imported else frozenset[str]()
        one, other = (
            {name: value for name, value in run.manifest.items() if name not in _HANDLED | unsaid}
            for run in (self.first, self.second)
        )
        for line in differing(one, other):
            yield Difference(line.split(":")[0], line.replace(" -> ", " and "))

    def model(self) -> Iterator[Difference]:
        """Labels of the models."""
        if self.first.model != self.second.model:
            yield Difference("model", f"model: {self.first.model} and {self.second.model}", expected=True)

    def videos(self) -> Iterator[Difference]:
        """Contents of the generated videos."""
        contents = [
            {
                (sample["id"], member["id"]): member.get("sha256")
                for sample in run.manifest["samples"]
                for member in sample["members"]
            }
            for run in (self.first, self.second)
        ]
        common = contents[0].keys() & contents[1].keys()
        found = sum(
            contents[0][one] != contents[1][one] and self._known(contents[0][one], contents[1][one]) for one in common
        )
        if found:
            text = f"the generated videos: {found:,} of {len(common):,} have another content"
            yield Difference("videos", text, expected=self.first.model != self.second.model)

    # --- rows ---------------------------------------------------------------------------------------------------

    def recorded(self, about: str, name: str, what: str, form: str) -> Iterator[Difference]:
        """What the rows record about the videos of common samples."""
        one, other = (_recorded(run, name) for run in (self.first, self.second))
        found = [sample for sample in self.common if sample in one and sample in other and one[sample] != other[sample]]
        if found:
            counts = (
                _distribution([number for sample in found for number in side[sample]], form) for side in (one, other)
            )
            share = f"{len(found):,} of {wording.counted(len(self.common), 'common sample')}"
            yield Difference(about, f"{what}, for {share}: {' against '.join(counts)}")


def _recorded(run: RunResults, name: str) -> dict[str, tuple[float, ...]]:
    """Sample -> the number that each of its videos has, sorted and each once."""
    numbers: dict[str, set[float]] = defaultdict(set)
    for row in run.rows:
        video = row.detail.get("video")
        number = video.get(name) if isinstance(video, Mapping) else None
        if isinstance(number, int | float):
            numbers[row.sample].add(round(float(number), 3))
    return {sample: tuple(sorted(found)) for sample, found in numbers.items()}


def _distribution(numbers: list[float], form: str) -> str:
    counts = sorted(Counter(numbers).items(), key=lambda entry: (-entry[1], entry[0]))
    if len(counts) == 1:
        return form.format(counts[0][0])
    words = [f"{form.format(number)} ({count:,} times)" for number, count in counts]
    return wording.listed(words, 3)


def _spoken(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_spoken(entry)}" for name, entry in value.items())
    if isinstance(value, list):
        return wording.listed([str(entry) for entry in value])
    return "none" if value is None else str(value)
