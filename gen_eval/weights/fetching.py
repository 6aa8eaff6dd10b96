"""Downloading one file so that it is whole, the right one, and not fetched twice.

What is guaranteed:

* Bytes go to ``<file>.part``; the file takes its name only when its length and its digest are right. Beside it,
  ``<file>.part.json`` says what the server called it (entity tag or date). A later call goes on where an earlier one
  stopped, however that ended, but only while the server still has the same file (``If-Range``); else it starts again.
* Two processes that want one file take turns; the second finds it there.
* Only ``https``; plain ``http`` to this machine alone. A redirection may neither change to another scheme nor lead to a
  private address, unless that is where the download was asked from. At most :data:`MOST_REDIRECTS` of them.
* Errors of the network, and answers that say "later", are tried again a bounded number of times with growing pauses;
  as long as bytes arrive in between, a bad line may be as bad as it likes.
* A full disk, an interrupted download: the part is kept.
"""

from __future__ import annotations

import errno
import hashlib
import ipaddress
import json
import os
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import urljoin, urlsplit

from gen_eval.records.errors import GenEvalError, InputError
from gen_eval.records.files import write_atomic
from gen_eval.weights.digests import exclusive

if TYPE_CHECKING:
    import httpx

MOST_REDIRECTS = 8
_ATTEMPTS = 5
_LONGEST_PAUSE = 30.0
_BLOCK = 2**20
_MARGIN = 16 * 2**20  # bytes that are left free beside the download
_LATER = frozenset({408, 425, 429, 500, 502, 503, 504})
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

Progress = Callable[[int, int], None]


class FetchError(GenEvalError):
    """A download that did not succeed; the text says why and what to do.

    Attributes:
        elsewhere: whether another source may serve (not when the disk is full or the file is another one).
    """

    def __init__(self, message: str, elsewhere: bool = True) -> None:
        super().__init__(message)
        self.elsewhere = elsewhere


class _Transient(Exception):  # noqa: N818 - never leaves this module
    """Something that may go better the next time; ``after`` is what the server asks to wait."""

    def __init__(self, message: str, after: float | None = None) -> None:
        super().__init__(message)
        self.after = after


@dataclass(frozen=True)
class Download:
    """One file to fetch.

    Attributes:
        url: where from.
        path: where to.
        size: bytes, approximately; a server that states no length may send twice as many.
        accepts: whether a SHA-256 is the right one (``None``: not known).
        wanted: the right digest, for the message.
    """

    url: str
    path: Path
    size: int | None = None
    accepts: Callable[[str], bool | None] = field(default=lambda _digest: None)
    wanted: str | None = None

    @property
    def part(self) -> Path:
        """The bytes that are there so far."""
        return self.path.with_name(self.path.name + ".part")

    @property
    def note(self) -> Path:
        """What the server said about them."""
        return self.path.with_name(self.path.name + ".part.json")


def download(
    wanted: Download, progress: Progress = lambda _done, _total: None, attempts: int = _ATTEMPTS, pause: float = 0.5
) -> str | None:
    """Fetch a file; returns its SHA-256, or ``None`` when another process had put it there meanwhile.

    Args:
        wanted: what, from where, to where.
        progress: called with the bytes that are there and the bytes that there will be (0: not known).
        attempts: tries in a row that may pass without a single new byte.
        pause: seconds before the second try; doubled each time.

    Raises:
        InputError: the address is not one that is fetched from.
        FetchError: it did not succeed; the part is kept unless its digest was wrong.
    """
    _check_address(wanted.url, origin=wanted.url)
    with _room(wanted), exclusive(wanted.path.with_name(f".{wanted.path.name}.lock")):
        if wanted.path.exists():
            return None
        return _with_patience(wanted, progress, attempts, pause)


def _with_patience(wanted: Download, progress: Progress, attempts: int, pause: float) -> str:
    import httpx

    most, failures = _length(wanted.part), 0
    with httpx.Client(timeout=httpx.Timeout(30.0, connect=15.0), follow_redirects=False) as client:
        while True:
            try:
                return _once(client, wanted, progress)
            except (_Transient, httpx.TransportError) as error:
                here = _length(wanted.part)
                failures = 1 if here > most else failures + 1
                most = max(most, here)
                if failures >= attempts:
                    raise _gave_up(wanted, error, attempts) from None
                asked = error.after if isinstance(error, _Transient) else None
                time.sleep(min(_LONGEST_PAUSE, pause * 2 ** (failures - 1) if asked is None else asked))


def _gave_up(wanted: Download, error: Exception, attempts: int) -> FetchError:
    here = _length(wanted.part)
    kept = f"; {here} bytes are kept, the same command goes on from there" if here else ""
    return FetchError(f"{wanted.url} could not be fetched in {attempts} tries ({_said(error)}){kept}")


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__


def _length(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


@contextmanager
def _room(wanted: Download) -> Iterator[None]:
    """Turn a full disk into a sentence."""
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        here = _length(wanted.part)
        needed = _note_of(wanted).get("size") or wanted.size
        more = f"about {max(0, needed - here)} more bytes are needed" if needed else "more room is needed"
        raise FetchError(
            f"no room for {wanted.path.name} ({error.strerror}): {here} bytes are kept, {more} in "
            f"{wanted.path.parent}; make room, the same command goes on from there",
            elsewhere=False,
        ) from None


def _once(client: httpx.Client, wanted: Download, progress: Progress) -> str:
    """One try: from the bytes that are there to the end."""
    start = _resumable(wanted)
    headers = {"Accept-Encoding": "identity"}
    if start:
        validator = _note_of(wanted)["validator"]
        headers |= {"Range": f"bytes={start}-", "If-Range": validator}
    with _answer(client, wanted.url, headers) as answer:
        start, total = _begins_at(answer, start, wanted)
        if start == 0:
            _write_note(wanted, answer, total)
        if total is not None:
            _check_room(wanted, total - start)
        digest = _receive(answer, wanted, start, total, progress)
    if wanted.accepts(digest) is False:
        _forget(wanted)
        raise FetchError(
            f"{wanted.url} has SHA-256 {digest}, expected {wanted.wanted}; the download was thrown away. The file was "
            f"changed where it is published, or on its way",
            elsewhere=False,
        )
    wanted.part.replace(wanted.path)
    wanted.note.unlink(missing_ok=True)
    return digest


def _resumable(wanted: Download) -> int:
    """How many bytes of an earlier try can be kept."""
    note = _note_of(wanted)
    if note.get("url") == wanted.url and note.get("validator"):
        return _length(wanted.part)
    return 0


def _note_of(wanted: Download) -> dict[str, Any]:
    try:
        note = json.loads(wanted.note.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return note if isinstance(note, dict) else {}


def _write_note(wanted: Download, answer: httpx.Response, total: int | None) -> None:
    tag = answer.headers.get("etag", "")
    strong = tag if tag.startswith('"') else None  # a weak tag may stand for other bytes
    note = {"url": wanted.url, "validator": strong or answer.headers.get("last-modified"), "size": total}
    wanted.part.unlink(missing_ok=True)  # never old bytes beside a new note
    write_atomic(wanted.note, json.dumps(note).encode())


def _forget(wanted: Download) -> None:
    wanted.part.unlink(missing_ok=True)
    wanted.note.unlink(missing_ok=True)


def _begins_at(answer: httpx.Response, start: int, wanted: Download) -> tuple[int, int | None]:
    """Where the answer's bytes belong, and the length of the whole file (``None``: not stated).

    Raises:
        FetchError: the server does not give the file.
        _Transient: it may later.
    """
    if answer.status_code == 416:  # what is here is as long as the file, or longer: begin again
        _forget(wanted)
        raise _Transient("the part did not fit the file any more")
    if answer.status_code in _LATER:
        raise _Transient(f"the server answered {answer.status_code}", _asked_pause(answer))
    if answer.status_code not in {200, 206}:
        raise FetchError(f"{wanted.url} cannot be fetched: the server answered {answer.status_code}")
    if answer.headers.get("content-encoding", "identity") != "identity":
        raise FetchError(f"{wanted.url} is sent compressed, which was not asked for; its length cannot be checked")
    stated = answer.headers.get("content-length")
    length = int(stated) if stated is not None and stated.isdigit() else None
    if answer.status_code == 200:
        if length is None and "chunked" not in answer.headers.get("transfer-encoding", ""):
            raise FetchError(f"{wanted.url} is sent without its length, so that a cut would not be noticed")
        return 0, length
    begin, total = _content_range(answer)
    if not start or begin != start:
        _forget(wanted)
        raise _Transient("the server sent another part than the one that was asked for")
    return start, total


def _content_range(answer: httpx.Response) -> tuple[int | None, int | None]:
    """First byte and total of ``bytes 100-199/200``."""
    unit, _, rest = answer.headers.get("content-range", "").partition(" ")
    span, _, total = rest.partition("/")
    begin = span.partition("-")[0]
    if unit != "bytes" or not begin.isdigit():
        return None, None
    return int(begin), int(total) if total.isdigit() else None


def _asked_pause(answer: httpx.Response) -> float | None:
    asked = answer.headers.get("retry-after", "")
    return float(asked) if asked.isdigit() else None


def _check_room(wanted: Download, more: int) -> None:
    free = shutil.disk_usage(wanted.path.parent).free
    if free < more + _MARGIN:
        raise OSError(errno.ENOSPC, f"{free} bytes are free")


def _receive(answer: httpx.Response, wanted: Download, start: int, total: int | None, progress: Progress) -> str:
    """Append the answer to the part; returns the digest of the whole.

    Raises:
        _Transient: it ended early.
        FetchError: it is longer than it can be.
    """
    most = total if total is not None else 2 * (wanted.size or 2**40)
    with wanted.part.open("r+b" if start else "wb", buffering=0) as file:
        seen = _digest_of_first(file, start)
        done = start
        progress(done, total or 0)
        for block in answer.iter_raw():  # as they come: what a larger block would still wait for is lost in a cut
            done += len(block)
            if done > most:
                raise FetchError(f"{wanted.url} sends more than the {most} bytes that it can have; stopped")
            _write_all(file, block)
            seen.update(block)
            progress(done, total or 0)
        os.fsync(file.fileno())
    if total is not None and done < total:
        raise _Transient(f"{done} of {total} bytes came")
    return str(seen.hexdigest())


def _digest_of_first(file: Any, count: int) -> Any:
    """Digest of the first bytes of a part; leaves the file there, and cuts what is behind."""
    seen, left = hashlib.sha256(), count
    while left and (block := file.read(min(_BLOCK, left))):
        seen.update(block)
        left -= len(block)
    file.truncate(count)
    return seen


def _write_all(file: BinaryIO | Any, block: bytes) -> None:
    view = memoryview(block)
    while view:
        view = view[file.write(view) :]


@contextmanager
def _answer(client: httpx.Client, url: str, headers: dict[str, str]) -> Iterator[httpx.Response]:
    """The answer to a request, behind all redirections; its body is not read yet."""
    address = url
    for _hop in range(MOST_REDIRECTS + 1):
        with client.stream("GET", address, headers=headers) as answer:
            target = answer.headers.get("location")
            if not answer.is_redirect or target is None:
                yield answer
                return
        address = urljoin(address, target)
        _check_address(address, origin=url)
    raise FetchError(f"{url} is redirected more than {MOST_REDIRECTS} times")


def _check_address(url: str, origin: str) -> None:
    """Refuse addresses that nothing is fetched from.

    Raises:
        InputError: ``url`` is the origin itself and no address to fetch from.
        FetchError: it is where a redirection leads.
    """
    parts, first = urlsplit(url), urlsplit(origin)
    refused: type[GenEvalError] = InputError if url == origin else FetchError
    where = url if url == origin else f"{origin} redirects to {parts.scheme}://{parts.hostname}, which"
    local = _is_loopback(parts.hostname)
    if not parts.hostname or parts.scheme not in {"https", "http"} or (parts.scheme == "http" and not local):
        raise refused(f"{where} is not fetched from: only https (and http to this machine)")
    if url != origin and parts.scheme != first.scheme:
        raise refused(f"{where} is not followed: the scheme changes")
    if url != origin and parts.hostname != first.hostname and _is_private(parts.hostname):
        raise refused(f"{where} is not followed: a private address")


def _is_loopback(host: str | None) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


def _is_private(host: str) -> bool:
    """Whether a host is, or its name leads to, an address that is not public; names that lead nowhere are not."""
    try:
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    return any(not ipaddress.ip_address(address.partition("%")[0]).is_global for address in found)
