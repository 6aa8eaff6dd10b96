"""Zip files of foreign origin: read by member name, nothing is ever unpacked to disk.

The whole table of contents is checked before a byte is read. Refused are names that are absolute, lead upwards or hold
backslashes or control characters, symbolic links, encrypted members, names that come twice, members or totals above a
limit, and members that expand more than :data:`MOST_EXPANSION` times.
"""

from __future__ import annotations

import stat
import zipfile
from collections import Counter
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Self

MOST_MEMBER = 4 * 2**30
MOST_TOTAL = 16 * 2**30
MOST_EXPANSION = 100  # trained tensors hardly compress; a thousand times is a bomb
_SMALL = 2**20
_BLOCK = 2**20


class ArchiveError(Exception):
    """The archive is broken or holds something that is not accepted; the text says what."""


class CheckedZip:
    """A zip file whose table of contents was found harmless."""

    def __init__(self, path: Path) -> None:
        """Open ``path`` and check every name and size.

        Raises:
            ArchiveError: it is no zip file or holds something that is refused.
        """
        try:
            self._zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise ArchiveError(f"no zip file that can be read ({error})") from error
        try:
            self._check()
        except BaseException:
            self._zip.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._zip.close()

    def _check(self) -> None:
        members = self._zip.infolist()
        most_common = Counter(member.filename for member in members).most_common(1)
        if most_common and most_common[0][1] > 1:
            raise ArchiveError(f"the archive holds {most_common[0][0][:200]!r} more than once")
        for member in members:
            if (problem := _problem(member)) is not None:
                raise ArchiveError(f"the archive's member {member.filename[:200]!r} {problem}")
        if (total := sum(member.file_size for member in members)) > MOST_TOTAL:
            raise ArchiveError(f"the archive expands to {total} bytes, more than {MOST_TOTAL}")

    def find(self, *names: str) -> str | None:
        """The member whose name is, or whose last folders are, one of ``names``.

        Raises:
            ArchiveError: several members fit.
        """
        for name in names:
            fits = [each for each in self._zip.namelist() if each == name or each.endswith(f"/{name}")]
            fits = [each for each in fits if not each.startswith("__MACOSX/")]
            if len(fits) > 1:
                raise ArchiveError(f"several members of the archive fit {name!r}: {', '.join(fits[:4])}")
            if fits:
                return fits[0]
        return None

    def read(self, name: str) -> bytes:
        """The content of one member.

        Raises:
            ArchiveError: it is absent, damaged, or not as long as the table says.
        """
        try:
            wanted = self._zip.getinfo(name)
        except KeyError:
            held = ", ".join(self._zip.namelist()[:12])
            raise ArchiveError(f"the archive has no member {name!r}; it holds {held}") from None
        content = bytearray()
        try:
            with self._zip.open(wanted) as file:
                while block := file.read(_BLOCK):
                    content += block
                    if len(content) > wanted.file_size:
                        raise ArchiveError(f"the archive's member {name!r} is longer than its table says")
        except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
            raise ArchiveError(f"the archive's member {name!r} cannot be read ({error})") from error
        except Exception as error:  # zlib.error and its like share no other base
            raise ArchiveError(f"the archive's member {name!r} cannot be read ({error})") from error
        return bytes(content)


def _problem(member: zipfile.ZipInfo) -> str | None:
    """What is wrong with one line of the table of contents."""
    name = member.orig_filename  # as stored: the library's own cleaning would hide what was tried
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or name[1:2] == ":":
        return "has a name that leads out of the archive"
    if any(ord(letter) < 32 for letter in name):
        return "has control characters in its name"
    if stat.S_ISLNK(member.external_attr >> 16):
        return "is a symbolic link"
    if member.flag_bits & 0x1:
        return "is encrypted"
    if member.file_size > MOST_MEMBER:
        return f"expands to {member.file_size} bytes, more than {MOST_MEMBER}"
    if member.file_size > max(_SMALL, MOST_EXPANSION * member.compress_size):
        return f"expands {MOST_EXPANSION} times and more"
    return None
