"""The data of PAI-Bench-U: parquet or a JSON list with a folder of videos, or JSON lines.

Fields (protocol, "Data"): ``question``, ``index2ans`` (struct of letters to text or null), ``answer`` (letter),
``video_path``, ``category``, ``subcategory``. The exact strings of the last two must be read from the data, so they are
matched against the aliases in ``configs/benchmarks/pai-bench-u.yaml``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from gen_eval.data.benchmark import Rejected
from gen_eval.data.records_file import JSON_LINES, json_document, object_of, text
from gen_eval.protocols.loading import read_config
from gen_eval.records import InputError
from gen_eval.records.files import is_file
from understanding.data.choices import ChoiceSample, options_of
from understanding.data.media import Media, media
from understanding.data.samples import Samples, collected, id_of, load_samples_file

TASK = "pai/u"
BENCHMARK = "pai-bench-u"

_KNOWN = {"id", "task", "video", "video_path", "question", "options", "index2ans", "answer", "category", "subcategory"}
_MOST_ROWS = 1_000_000
_PLAIN = re.compile(r"[\W_]+")


@dataclass(frozen=True)
class Column:
    """One column of the published table.

    Attributes:
        name: ``cs_space``, ``er_bd``, …
        title: for people.
        average: the column that pools it (``cs_avg``, ``er_avg``).
        questions: how many the benchmark has.
        aliases: category strings that mean it, as :func:`plain` writes them.
    """

    name: str
    title: str
    average: str
    questions: int
    aliases: frozenset[str]


def plain(words: str) -> str:
    """``words`` without case, blanks and punctuation.

    >>> plain("BridgeData V2"), plain("agibot-world")
    ('bridgedatav2', 'agibotworld')
    """
    return _PLAIN.sub("", words.casefold())


@lru_cache(maxsize=1)
def columns() -> tuple[Column, ...]:
    """The columns of the published table, in order.

    Raises:
        InputError: the benchmark's file is malformed, or an alias means two columns.
    """
    content = read_config("benchmarks", BENCHMARK)
    try:
        found = tuple(
            Column(
                str(one["name"]),
                str(one["title"]),
                str(one["average"]),
                int(one["questions"]),
                frozenset(plain(str(alias)) for alias in one["aliases"]),
            )
            for one in content["parts"]
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"the benchmark {BENCHMARK} has a part that cannot be read: {error!r}") from error
    aliases = [alias for one in found for alias in one.aliases]
    if twice := sorted({alias for alias in aliases if aliases.count(alias) > 1}):
        raise InputError(f"the benchmark {BENCHMARK} gives the alias {twice[0]} to two parts")
    return found


def column_of(category: str | None, subcategory: str | None, folder: str | None = None) -> Column | None:
    """The column that a question belongs to, by the first of its names that is an alias.

    Args:
        category: as in the data.
        subcategory: as in the data; the part before a colon comes first.
        folder: name of the set's folder of videos.
    """
    names = [part for words in (subcategory, category) if words for part in (words.split(":")[0], words)]
    for name in map(plain, [*names, folder or ""]):
        for column in columns():
            if name in column.aliases:
                return column
    return None


def load(path: Path, *, media_folder: Path | None = None) -> Samples[ChoiceSample]:
    """The questions in ``path``.

    Args:
        path: a folder with ``data/*.parquet`` (split test) or one JSON list, and ``videos/``; one of these files; or
            JSON lines.
        media_folder: folder that video paths are relative to, instead of the data's own.

    Raises:
        InputError: it is none of these, or holds no question that can be used.
    """
    file = path / "samples.jsonl" if path.is_dir() and (path / "samples.jsonl").is_file() else path
    if file.name.endswith(JSON_LINES):
        return load_samples_file(file, make_sample, task=TASK, media=media_folder)
    files = _files(path)
    root = media_folder if media_folder is not None else _root(path)
    rejected: list[Rejected] = []
    rows = (row for one in files for row in _rows(one))
    return collected("pai-u", path, rows, make_row, root, rejected)


def _files(path: Path) -> list[Path]:
    if path.is_file() and path.suffix in {".parquet", ".json"}:
        return [path]
    if path.is_dir():
        parquet = _regular(path, "data/*.parquet", "*.parquet")
        test = [one for one in parquet if one.name.startswith("test")]
        if parquet:
            return test or parquet
        lists = _regular(path, "*.json", "data/*.json")
        if len(lists) == 1:
            return lists
        if known := [*lists, *sorted(path.glob("*.jsonl"))]:
            named = ", ".join(one.relative_to(path).as_posix() for one in known[:5])
            raise InputError(f"{path} holds no questions by their usual name, but {named}; name the file that has them")
    raise InputError(
        f"{path} holds no questions of PAI-Bench-U. Expected a folder with data/*.parquet (or one JSON list) and "
        "videos/, one of these files, or .jsonl lines with id, video, question, options, answer"
    )


def _regular(folder: Path, *patterns: str) -> list[Path]:
    """The files that fit; pipes and devices are none: reading them may never end."""
    return sorted({one for pattern in patterns for one in folder.glob(pattern) if is_file(one)})


def _root(path: Path) -> Path:
    folder = path if path.is_dir() else path.parent
    return folder.parent if folder.name == "data" else folder


def _rows(path: Path) -> Iterator[tuple[str, Any]]:
    content = _parquet_rows(path) if path.suffix == ".parquet" else json_document(path)
    if not isinstance(content, list):
        raise InputError(f"{path} must be a JSON list of objects with question, index2ans, answer and video_path")
    for number, row in enumerate(content):
        yield f"{path.name} row {number}", row


def _parquet_rows(path: Path) -> list[dict[str, Any]]:
    import pyarrow
    import pyarrow.parquet as parquet

    try:
        with parquet.ParquetFile(path) as file:
            if file.metadata.num_rows > _MOST_ROWS:
                raise InputError(f"{path} has {file.metadata.num_rows} rows; at most {_MOST_ROWS} are read")
            names = [name for name in file.schema_arrow.names if name in _KNOWN | {"uid", "question_id"}]
            rows: list[dict[str, Any]] = file.read(columns=names).to_pylist()
            return rows
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as parquet: {error}") from error


def make_sample(record: Mapping[str, Any], place: int, root: Path) -> ChoiceSample:
    """A question of interchange form, or of the benchmark's own.

    Raises:
        Refused: a field has another form.
    """
    if "video_path" in record or "index2ans" in record:
        return _sample(record, id_of(record), place, root, video="video_path", options="index2ans")
    return _sample(record, id_of(record), place, root, video="video", options="options")


def make_row(record: Any, place: int, root: Path) -> ChoiceSample:
    """A row of the benchmark's own form; without an ``id`` it is called by its place.

    Raises:
        Refused: it is no object, or a field has another form.
    """
    record = object_of(record)
    name = id_of(record) if record.get("id") is not None else f"u_{place:05d}"
    return _sample(record, name, place, root, video="video_path", options="index2ans")


def _sample(record: Mapping[str, Any], name: str, place: int, root: Path, *, video: str, options: str) -> ChoiceSample:
    found = media(record, video, root, *([root / "videos"] if video == "video_path" else []))
    category, subcategory = text(record, "category"), text(record, "subcategory")
    return ChoiceSample(
        id=name,
        index=place,
        media=found,
        groups=groups_of(category, subcategory, found),
        cluster=found.name if found is not None and found.name else name,
        question=text(record, "question"),
        options=options_of(record, options),
        answer=_letter(text(record, "answer")),
        extra={key: value for key, value in record.items() if key not in _KNOWN},
    )


def _letter(answer: str | None) -> str | None:
    return None if answer is None else answer.strip() or None


def groups_of(category: str | None, subcategory: str | None, found: Media | None = None) -> dict[str, str]:
    """The groups of a question.

    Its category, the part of the sub-category before the colon, the sub-category whole, and the columns of the
    published table that it is in.
    """
    groups: dict[str, str] = {}
    if category is not None:
        groups["category"] = category
    if subcategory is not None:
        groups["part"] = subcategory.split(":")[0].strip()
        groups["subcategory"] = subcategory
    folder = Path(found.name).parent.name if found is not None else None
    if (column := column_of(category, subcategory, folder)) is not None:
        groups["column"], groups["average"] = column.name, column.average
    return groups
