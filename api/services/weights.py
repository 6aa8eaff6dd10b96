"""Checkpoints for people: what there is, fetching, verifying, converting."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from api.services.models import how_had
from gen_eval.mllm import model_names
from gen_eval.records import GenEvalError, InputError, ItemError, MissingPart, Reason
from gen_eval.registry import names as metric_names
from gen_eval.registry import require
from gen_eval.settings import settings
from gen_eval.weights import Checkpoint, Located, Source, checkpoint, checkpoint_names, load_state, locate, manifest
from gen_eval.weights.containers import ContainerError, safetensors_shapes
from gen_eval.weights.digests import pin, pinned, read_digest, remember_digest, remembered_digest, weights_folder
from gen_eval.weights.located import target_of
from gen_eval.weights.state import differences, spoken

Shapes = Mapping[str, Sequence[int]]
Say = Callable[[str], None]
Progress = Callable[[str, int, int], None]
_MEGABYTE = 1_000_000


def chosen(names: Sequence[str] = (), scope: str | None = None) -> list[str]:
    """The checkpoints that ``names`` (ids or metrics) and ``scope`` (a track or a metric) stand for.

    What they are read together with comes along, before them.

    Raises:
        InputError: a name is none of a checkpoint, a metric, a track.
    """
    asked = [*names, *([scope] if scope else [])]
    found = [name for one in asked for name in _standing_for(one)]
    complete: list[str] = []
    for name in found:
        _add_with_needs(name, complete)
    return complete


def _standing_for(word: str) -> list[str]:
    entries = [checkpoint(name) for name in checkpoint_names()]
    if word in checkpoint_names():
        return [word]
    meant = [entry for entry in entries if not entry.alternative]
    fits = [entry.name for entry in meant if word == entry.track or word in entry.used_by]
    if not fits:
        if word in model_names():
            raise InputError(f"not fetched by this command: {how_had(word)}")
        words = sorted({word for entry in entries for word in (entry.name, entry.track, *entry.used_by)})
        if word in metric_names("gen_eval.metrics"):
            raise InputError(f"the metric {word} needs no checkpoint. `gen-eval weights list` shows those that do")
        near = difflib.get_close_matches(word, words, n=3) or [one for one in words if word.lower() in one][:3]
        offer = f"; did you mean {' or '.join(near)}" if near else ""
        raise InputError(f"{word!r} is no checkpoint, metric or track{offer}. `gen-eval weights list` shows them all")
    return fits


def _add_with_needs(name: str, to: list[str]) -> None:
    for source in checkpoint(name).sources[:1]:
        for other in source.needs:
            _add_with_needs(other, to)
    if name not in to:
        to.append(name)


def list_checkpoints(scope: str | None = None) -> list[dict[str, Any]]:
    """All checkpoints (of a track or metric): terms, size, whether they are here and whether their digest is right.

    No file is read: the digest's state is what the last reading found.
    """
    names = chosen(scope=scope) if scope else checkpoint_names()
    return [_listed(checkpoint(name)) for name in names]


def _listed(entry: Checkpoint) -> dict[str, Any]:
    found = locate(entry.name)
    first = entry.sources[0] if entry.sources else None
    return {
        "id": entry.name,
        "title": entry.title,
        "track": entry.track,
        "used_by": entry.used_by,
        "size": found.path.stat().st_size if found else first.size if first else None,
        "licence": entry.licence,
        "commercial": entry.commercial,
        "file": found.key if found else f"{entry.name}/{first.file}" if first else None,
        "where": _where(found) if found else None,
        "digest_published": bool(first and (first.sha256 or first.sha256_prefix)),
        "digest": _digest_state(found) if found else None,
        "note": entry.note,
    }


def _where(found: Located) -> str:
    """In a word, where a file lies."""
    if found.path.is_relative_to(weights_folder()):
        return "converted" if found.record else "weights folder"
    mirror = settings().weights_mirror
    return "mirror" if mirror and found.path.is_relative_to(mirror.expanduser()) else "package"


def _digest_state(found: Located) -> str:
    if remembered_digest(found.path) is None:
        return "not read yet"
    if found.problem() is not None:
        return "differs"
    if found.source.sha256 or found.source.sha256_prefix:
        return "as published"
    return "as pinned" if pinned(found.key) else "not pinned"


# --- fetch


def fetch(
    names: Sequence[str] = (),
    scope: str | None = None,
    *,
    accept_licence: bool = False,
    progress: Progress = lambda _label, _done, _total: None,
    say: Say = lambda _text: None,
) -> list[dict[str, Any]]:
    """Bring checkpoints to this machine; without a name, all that the quality track needs.

    Licences are said before the first byte is asked for. What is here already (weights folder, mirror) is checked and
    not fetched again.

    Returns:
        One entry a checkpoint: ``id``, ``status`` (``present``, ``fetched``, ``failed``), ``sha256``, ``message``.

    Raises:
        InputError: an unknown name, or a licence that restricts commercial use was not accepted.
    """
    entries = [checkpoint(name) for name in chosen(names, scope or (None if names else "quality"))]
    absent = [entry for entry in entries if not _is_whole(entry) and _can_be_fetched(entry)]
    for entry in absent:
        say(f"{entry.name}: {entry.title}. {entry.terms}.{f' {entry.note}' if entry.note else ''}")
    if (restricted := [entry for entry in absent if entry.restricted]) and not accept_licence:
        terms = "; ".join(f"{entry.name}: {entry.terms}" for entry in restricted)
        free = [entry.name for entry in absent if not entry.restricted]
        others = f" The others need none: `gen-eval weights fetch {' '.join(free)}`." if free else ""
        raise InputError(
            f"not fetched before you accept these terms with --accept-licence: {terms}. The licence texts rule.{others}"
        )
    return [_fetched(entry, progress, say) for entry in entries]


def _is_whole(entry: Checkpoint) -> bool:
    found = locate(entry.name)
    return found is not None and not found.missing_companions


def _can_be_fetched(entry: Checkpoint) -> bool:
    return any(source.url or source.hub for source in entry.sources)


def _fetched(entry: Checkpoint, progress: Progress, say: Say) -> dict[str, Any]:
    try:
        here = locate(entry.name)
        if here is None:
            digest, status = _from_sources(entry, progress, say), "fetched"
        else:
            for file in (here, *here.companions):
                file.check()
            digest, status = here.published_sha256, "present"
            if here.missing_companions:
                digest, status = _from_sources(entry, progress, say), "fetched"
    except ItemError as error:
        return {"id": entry.name, "status": "failed", "sha256": None, "message": error.message}
    except GenEvalError as error:
        return {"id": entry.name, "status": "failed", "sha256": None, "message": str(error)}
    return {"id": entry.name, "status": status, "sha256": digest, "message": None}


def _from_sources(entry: Checkpoint, progress: Progress, say: Say) -> str:
    from gen_eval.weights.fetching import FetchError

    problems: list[str] = []
    for source in entry.sources:
        try:
            return _from_source(entry, source, progress)
        except FetchError as error:
            if not error.elsewhere:
                raise
            problems.append(str(error))
            say(f"{entry.name}: {error}")
    if not problems:
        raise FetchError(f"no file is known for it. {entry.note or ''}".rstrip())
    by_hand = (
        f"without a download, put the file at {target_of(entry.name, entry.sources[0].file)}, or name a folder that"
    )
    raise FetchError(f"{'; '.join(problems)}; {by_hand} has it in GEN_EVAL_WEIGHTS_MIRROR")


def _from_source(entry: Checkpoint, source: Source, progress: Progress) -> str:
    """Fetch one source with its companions; returns the digest of its main file."""
    from gen_eval.weights.fetching import FetchError

    if source.package:
        raise FetchError(f"it comes with the package {source.package}: pip install 'gen-eval[models]'")
    if not source.url and not source.hub:
        raise FetchError(f"no address is known; put the file at {target_of(entry.name, source.file)}")
    for companion in source.companions:
        own = {"file": companion, "size": None, "sha256": None, "sha256_prefix": None}
        _download(entry, source.model_copy(update=own), progress)
    return _download(entry, source, progress)


def address_of(source: Source) -> str:
    """Where a source is downloaded from."""
    if source.hub:
        return f"{settings().hub.rstrip('/')}/{source.hub}/resolve/{source.revision}/{source.file}"
    return str(source.url)


def _download(entry: Checkpoint, source: Source, progress: Progress) -> str:
    from gen_eval.weights.fetching import Download, download

    key, path = f"{entry.name}/{source.file}", target_of(entry.name, source.file)
    held = None if source.sha256 else pinned(key)

    def accepts(digest: str) -> bool | None:
        published = source.accepts(digest)
        return published if published is False or held is None else digest == held

    def move(done: int, total: int) -> None:
        progress(f"{source.file} (MB)", done // _MEGABYTE, max(1, (total or source.size or 0) // _MEGABYTE))

    prefix = f"{source.sha256_prefix}…" if source.sha256_prefix else None
    wanted = Download(address_of(source), path, source.size, accepts, source.sha256 or held or prefix)
    digest = download(wanted, move)
    if digest is None:  # another process put it there meanwhile
        return read_digest(path)
    remember_digest(path, digest)
    if source.sha256 is None:
        pin(key, digest)
    return digest


# --- verify


def verify(
    names: Sequence[str] = (),
    scope: str | None = None,
    *,
    repin: bool = False,
    progress: Progress = lambda _label, _done, _total: None,
) -> list[dict[str, Any]]:
    """Read checkpoints again: digest against the published or pinned one, names and shapes against their list.

    Without a name, all that are on this machine. A digest that nobody knows yet is pinned; ``repin`` also replaces a
    pinned one (never a published one).

    Returns:
        One entry a checkpoint: ``id``, ``file``, ``status`` (``ok``, ``bad``, ``absent``), ``sha256``, ``expected``,
        ``digest``, ``names``, ``problems``.

    Raises:
        InputError: an unknown name.
        MissingPart: nothing is on this machine.
    """
    wanted = chosen(names, scope) if names or scope else [name for name in checkpoint_names() if locate(name)]
    if not any(locate(name) for name in wanted):
        asked = " ".join(names) or f"--for {scope}" if names or scope else ""
        raise MissingPart(f"none of these checkpoints is on this machine; `gen-eval weights fetch {asked}`".rstrip())
    lines = []
    for number, name in enumerate(wanted):
        progress("checkpoints", number, len(wanted))
        lines.append(_verified(name, repin))
    progress("checkpoints", len(wanted), len(wanted))
    return lines


def _verified(name: str, repin: bool) -> dict[str, Any]:
    found = locate(name)
    line: dict[str, Any] = {"id": name, "file": found.key if found else None, "status": "absent", "problems": []}
    if found is None:
        return {**line, "sha256": None, "expected": None, "digest": None, "names": None}
    problems = [problem for file in (found, *found.companions) if (problem := _read_again(file, repin)) is not None]
    expected = found.expected()
    line |= {"sha256": found.published_sha256, "expected": expected, "digest": _digest_state(found)}
    if problems:
        return {**line, "status": "bad", "names": "not compared", "problems": problems}
    new = [file for file in (found, *found.companions) if _pinned_now(file)]
    if new:
        line["digest"] = "pinned now"
    if _is_folder(found.checkpoint) and (lacking := found.missing_companions):
        said = f"{name} lacks {', '.join(lacking)} beside {found.source.file}; `gen-eval weights fetch {name}`"
        return {**line, "status": "bad", "names": "not compared", "problems": [said]}
    names, problems = _names_of(found)
    return {**line, "status": "bad" if problems else "ok", "names": names, "problems": problems}


def _read_again(file: Located, repin: bool) -> str | None:
    """What is wrong with the digest of a file, read now and not from memory."""
    read_digest(file.path)
    if repin and file.source.accepts(file.published_sha256) is None:
        pin(file.key, file.published_sha256)
    return file.problem()


def _pinned_now(file: Located) -> bool:
    """Whether the digest was not known before and is pinned now."""
    return file.expected() is None and pin(file.key, file.published_sha256)


def _names_of(found: Located) -> tuple[str, list[str]]:
    """What the comparison of names and shapes found, in a word and in full."""
    try:
        expected, actual = _asked(found) if _needs_torch(found) else _in_header(found)
    except MissingPart as error:
        return f"not compared: {error}", []
    except ItemError as error:
        if error.reason is Reason.MISSING_WEIGHTS:  # a package of the network; the file is as good as it was
            return f"not compared: {error.message}", []
        return "cannot be read", [error.message]
    except ContainerError as error:
        return "cannot be read", [f"{found.key} {error}"]
    if expected is None:
        return "no list to compare with", []
    if differ := differences(actual, expected):
        return "differ", [f"{found.key} is not the checkpoint {found.checkpoint.name}: {spoken(differ)}"]
    return f"{len(expected)} as expected", []


def _needs_torch(found: Located) -> bool:
    """Whether names and shapes take more than reading the header of a safetensors file and a list."""
    entry = found.checkpoint
    plain = found.record is not None or found.source.container == "safetensors"
    return not plain or found.source.names is not None or (entry.manifest is None and entry.network is not None)


def _is_folder(entry: Checkpoint) -> bool:
    from gen_eval.networks.registry import FOLDERS

    return (entry.network or {}).get("kind") in FOLDERS


def _in_header(found: Located) -> tuple[Shapes | None, Shapes]:
    require("safetensors")
    return manifest(found.checkpoint.name), safetensors_shapes(found.path, found.source.keep)


def _asked(found: Located) -> tuple[Shapes | None, Shapes]:
    """Names and shapes that must be there, and those that are, by reading the file.

    Where the file has names of its own, or there is no list, the network is asked; it is built without numbers.
    """
    require("torch")
    entry = found.checkpoint
    if _is_folder(entry):
        from gen_eval.networks.folders import open_network

        shapes = _shapes(open_network(entry.name).state_dict())  # it refuses what differs
        return shapes, shapes
    listed: Shapes | None = manifest(entry.name)
    tensors: Any = load_state(entry.name)
    if entry.network is not None and (listed is None or found.source.names):
        from gen_eval.networks.loading import build

        module: Any = build(entry.network, name=entry.name)
        translate = getattr(module, "translate", None)
        tensors = translate(tensors) if translate else tensors
        listed = _shapes(module.state_dict())
    return listed, _shapes(tensors)


def _shapes(tensors: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


# --- convert


def convert(
    what: str,
    *,
    out: Path | None = None,
    key: str | None = None,
    trust: bool = False,
    seconds: int,
    memory: int | None = None,
) -> dict[str, Any]:
    """Convert a file, or the file of a checkpoint, to safetensors; returns the converter's record.

    Raises:
        InputError: ``what`` is neither, or see :func:`gen_eval.weights.converting.convert`.
    """
    from gen_eval.weights.converting import convert as convert_file

    made = convert_file(_file_of(what), out, key=key, trust=trust, seconds=seconds, memory=memory)
    return {"path": str(made.path), **made.record}


def _file_of(what: str) -> Path:
    if Path(what).is_file():
        return Path(what)
    if what not in checkpoint_names():
        raise InputError(f"{what} is neither a file nor a checkpoint; `gen-eval weights list` shows the checkpoints")
    for source in checkpoint(what).sources:
        if (path := target_of(what, source.file)).is_file():
            if source.container == "safetensors":
                raise InputError(f"{what}/{source.file} is safetensors already and is read as it is")
            return path
    raise InputError(f"the checkpoint {what} is not in the weights folder; `gen-eval weights fetch {what}`")
