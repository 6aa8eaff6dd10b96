"""The questions that a judge is asked: the public layout (``vqa/<video_id>.json``) and JSON lines.

What cannot be asked is listed with its reason, and the rest is asked. Nothing in the files is trusted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gen_eval.data import Rejected
from gen_eval.data.naming import is_unicode, shown_name
from gen_eval.data.records_file import JSON_LINES, Refused, json_lines, object_of, parsed, required_text, text
from gen_eval.records import InputError, Rejection
from gen_eval.records.files import is_file

_FOLDER = "vqa"
_LINES = "questions.jsonl"
_PROMPT_FILE_END = "_full_info.json"
_KNOWN = frozenset({"id", "uid", "question", "index2ans", "answer", "task"})
_BINARY = frozenset({"yes", "no"})
_CALLED = "the question file"


@dataclass(frozen=True)
class JudgeQuestion:
    """A question about the videos of one sample.

    Attributes:
        sample: id of the sample.
        uid: unique within the sample: the second of two equal uids has ``#2`` added.
        question: the text that is asked.
        options: key -> answer text (``index2ans``).
        answer: key of the right answer.
        task: topic, group before the colon (``Space: Relationship``); empty when unknown.
        listed_uid: the uid as the file has it.
        extra: fields that are carried along unread.
    """

    sample: str
    uid: str
    question: str
    options: Mapping[str, str]
    answer: str
    task: str = ""
    listed_uid: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse a question whose answer is no option.

        Raises:
            ValueError: ``answer`` is not a key of ``options``.
        """
        if self.answer not in self.options:
            raise ValueError(f"question {self.uid}: answer {self.answer!r} is none of {', '.join(self.options)}")
        if not self.listed_uid:
            object.__setattr__(self, "listed_uid", self.uid)

    @property
    def truth(self) -> str:
        """Text of the right answer."""
        return self.options[self.answer]

    @property
    def binary(self) -> str | None:
        """``yes`` or ``no`` when the right answer is one of them, else ``None``."""
        word = self.truth.strip().casefold()
        return word if word in _BINARY else None

    def identity(self) -> dict[str, Any]:
        """What of a question moves a score (JSON values only)."""
        return {
            "uid": self.uid,
            "question": self.question,
            "options": dict(self.options),
            "answer": self.answer,
            "task": self.task,
        }


@dataclass(frozen=True)
class Questions:
    """All questions of a benchmark.

    Attributes:
        by_sample: id -> its questions in the order of the file; ids sorted; samples without a question are absent.
        rejected: files, lines and questions that cannot be asked, and samples that have none.
        repeated: sample and uid of every question that was given another uid because its own came before.
        keyless: samples with a question whose key is none of its options, which is not asked.
    """

    by_sample: Mapping[str, tuple[JudgeQuestion, ...]]
    rejected: tuple[Rejected, ...] = ()
    repeated: tuple[tuple[str, str], ...] = ()
    keyless: tuple[str, ...] = ()


def load_questions(data: Path, *, known: Collection[str] | None = None) -> Questions:
    """The questions in ``data``.

    Args:
        data: a benchmark folder with ``vqa/`` (or ``questions.jsonl``), its prompt file, the folder ``vqa`` itself, or
            a ``.jsonl`` / ``.jsonl.gz`` with a question a line.
        known: ids of the samples; questions about others are listed as ``unknown_video``, and samples without a
            question as ``no_truth``. ``None``: every sample that has questions.

    Raises:
        InputError: there are no questions there, or the file cannot be read.
    """
    found = _Collected()
    if data.is_file() and data.name.endswith(JSON_LINES):
        _from_lines(data, known, found)
    else:
        _from_place(data, known, found)
    for sample in sorted(set(known or ()) - found.by_sample.keys()):
        found.reject(sample, Refused(Rejection.NO_TRUTH, "it has no question that can be asked; it is not scored"))
    by_sample = {sample: tuple(found.by_sample[sample]) for sample in sorted(found.by_sample)}
    return Questions(by_sample, tuple(found.rejected), tuple(found.repeated), tuple(sorted(found.keyless)))


def is_question_file(path: Path) -> bool:
    """Whether the first record of a ``.jsonl`` is a judge question: it has a ``uid`` and a ``question``.

    Raises:
        InputError: the file cannot be read.
    """
    damaged: list[Rejected] = []
    record = next((record for _, record in json_lines(path, damaged, called=_CALLED)), None)
    return not damaged and record is not None and "uid" in record and "question" in record


class _Collected:
    """What was found so far."""

    def __init__(self) -> None:
        self.by_sample: dict[str, list[JudgeQuestion]] = {}
        self.rejected: list[Rejected] = []
        self.repeated: list[tuple[str, str]] = []
        self.keyless: set[str] = set()
        self._taken: dict[str, set[str]] = {}
        self._listed: dict[tuple[str, str], int] = {}

    def reject(self, where: str, refusal: Refused) -> None:
        self.rejected.append(refusal.at(where))

    def add(self, question: JudgeQuestion) -> None:
        """Keep ``question``, under another uid if its own came before in the same sample."""
        taken = self._taken.setdefault(question.sample, set())
        place = (question.sample, question.uid)
        number = self._listed[place] = self._listed.get(place, 0) + 1
        if question.uid in taken:
            number = max(number, 2)
            while (uid := f"{question.uid}#{number}") in taken:
                number += 1
            question = _renamed(question, uid)
            self.repeated.append((question.sample, uid))
        taken.add(question.uid)
        self.by_sample.setdefault(question.sample, []).append(question)


def _renamed(question: JudgeQuestion, uid: str) -> JudgeQuestion:
    own = (question.question, question.options, question.answer, question.task, question.listed_uid, question.extra)
    return JudgeQuestion(question.sample, uid, *own)


# --- the public layout ----------------------------------------------------------------------------------------------


def _from_place(data: Path, known: Collection[str] | None, found: _Collected) -> None:
    if data.is_file() and not data.name.endswith(_PROMPT_FILE_END):
        raise InputError(f"{data} holds no judge questions; give a folder with vqa/ or a .jsonl of questions")
    home = data.parent if data.is_file() else data
    folder = home if home.name == _FOLDER else home / _FOLDER
    if folder.is_dir():
        _from_folder(folder, known, found)
    elif is_file(home / _LINES):
        _from_lines(home / _LINES, known, found)
    else:
        raise InputError(
            f"{home} holds no questions: expected vqa/<video_id>.json or questions.jsonl; name them with --questions"
        )


def _from_folder(folder: Path, known: Collection[str] | None, found: _Collected) -> None:
    try:
        files = sorted((path for path in folder.iterdir() if path.suffix == ".json"), key=lambda path: path.name)
    except OSError as error:
        raise InputError(f"the folder {folder} cannot be read: {error.strerror or error}") from error
    for path in files:
        where = f"{_FOLDER}/{shown_name(path)}"
        try:
            records = _file_records(path, known)
        except Refused as refusal:
            found.reject(where, refusal)
            continue
        for place, record in enumerate(records):
            _take(f"{where}[{place}]", path.stem, record, found)


def _file_records(path: Path, known: Collection[str] | None) -> list[Any]:
    if known is not None and path.stem not in known:
        raise Refused(Rejection.UNKNOWN_VIDEO, "no sample of the prompt file has this id; its questions are not asked")
    if not is_unicode(path.stem):
        raise Refused(Rejection.MALFORMED_RECORD, "the file name is not UTF-8 text and can be no id")
    if path.exists() and not is_file(path):  # reading a pipe or a device may never end
        raise Refused(Rejection.MALFORMED_RECORD, "it is no regular file")
    try:
        content = parsed(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(Rejection.MALFORMED_RECORD, f"the file cannot be read: {error}") from error
    if not isinstance(content, list):
        raise Refused(Rejection.MALFORMED_RECORD, f"expected a list of questions, not {type(content).__name__}")
    return content


# --- JSON lines -----------------------------------------------------------------------------------------------------


def _from_lines(path: Path, known: Collection[str] | None, found: _Collected) -> None:
    for where, record in json_lines(path, found.rejected, called=_CALLED):
        try:
            sample = required_text(record, "id")
            if known is not None and sample not in known:
                raise Refused(Rejection.UNKNOWN_VIDEO, f"no sample has the id {sample!r}; the question is not asked")
        except Refused as refusal:
            found.reject(where, refusal)
        else:
            _take(where, sample, record, found)
    if not found.by_sample and known is None:
        first = f": {found.rejected[0].where}: {found.rejected[0].message}" if found.rejected else ""
        raise InputError(f"{path} holds no judge question that can be used{first}")


# --- one record -----------------------------------------------------------------------------------------------------


def _take(where: str, sample: str, record: Any, found: _Collected) -> None:
    try:
        found.add(_question(sample, record))
    except Refused as refusal:
        found.reject(where, refusal)
        if refusal.reason is Rejection.NO_TRUTH:
            found.keyless.add(sample)


def _question(sample: str, record: Any) -> JudgeQuestion:
    record = object_of(record)
    uid, question = required_text(record, "uid"), required_text(record, "question")
    options, task = _options(record), text(record, "task")
    answer = record.get("answer")
    if not isinstance(answer, str) or answer not in options:
        what = "the answer is missing" if answer is None else f"the answer {answer!r:.60} is no key of index2ans"
        raise Refused(Rejection.NO_TRUTH, f"{what} ({_listed(options)}); the question is not asked")
    extra = {name: value for name, value in record.items() if name not in _KNOWN}
    return JudgeQuestion(sample, uid, question, options, answer, task or "", extra=extra)


def _options(record: Mapping[str, Any]) -> dict[str, str]:
    options = record.get("index2ans")
    if not isinstance(options, dict) or not options or not all(isinstance(words, str) for words in options.values()):
        raise Refused(Rejection.MALFORMED_RECORD, f"index2ans must map keys to answer texts, not {options!r:.80}")
    if any("\0" in words for words in (*options, *options.values())):
        raise Refused(Rejection.MALFORMED_RECORD, f"index2ans holds a NUL character: {options!r:.80}")
    return options


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"{name!r:.40}" for name in list(names)[:8])


__all__ = ["JudgeQuestion", "Questions", "is_question_file", "load_questions"]
