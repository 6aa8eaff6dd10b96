"""Handing a video file to Gemini's Files interface once for all its questions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from gen_eval.mllm.chat import VideoFile
from gen_eval.mllm.client import ChatError
from gen_eval.mllm.encoding import content_of, mapping
from gen_eval.mllm.wire import Wire
from gen_eval.records import Reason

KEPT = 40 * 3600.0
"""Seconds for which an upload is used again; the provider keeps it for 48 hours."""
_BETWEEN = 2.0
_LOOKS = 150
_MEDIA_TYPES = {".mp4": "video/mp4", ".mov": "video/quicktime", ".webm": "video/webm", ".mpeg": "video/mpeg"}


@dataclass(frozen=True)
class Uploaded:
    """A file at the provider.

    Attributes:
        uri: by which requests name it.
        media_type: of its content.
        since: on the monotonic clock, seconds.
    """

    uri: str
    media_type: str
    since: float


class Uploads:
    """Files handed over so far, by digest; questions about one file that come together wait for one upload.

    Args:
        wire: to the provider.
        sleep: waits while a file is prepared there; another one for tests.
    """

    def __init__(self, wire: Wire, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._wire, self.sleep = wire, sleep
        self._done: dict[str, Uploaded] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def of(self, video: VideoFile) -> Uploaded:
        """The file at the provider, handed over when it is not there yet.

        Raises:
            ChatError: the file cannot be read, handed over, or is refused there.
        """
        async with self._locks.setdefault(video.sha256, asyncio.Lock()):
            known = self._done.get(video.sha256)
            if known is None or time.monotonic() - known.since > KEPT:
                known = self._done[video.sha256] = await self._hand_over(video)
            return known

    async def _hand_over(self, video: VideoFile) -> Uploaded:
        media_type = _MEDIA_TYPES.get(video.path.suffix.lower(), "video/mp4")
        content = await asyncio.to_thread(content_of, video)
        started = await self._wire.send(
            "POST",
            f"{self._wire.root}/upload{self._wire.base.removeprefix(self._wire.root)}/files",
            content=b'{"file": {"display_name": "%s"}}' % video.sha256[:16].encode(),
            headers={
                "Content-Type": "application/json",
                "X-Goog-Upload-Protocol": "resumable",
                "X-Goog-Upload-Command": "start",
                "X-Goog-Upload-Header-Content-Length": str(len(content)),
                "X-Goog-Upload-Header-Content-Type": media_type,
            },
        )
        target = started.headers.get("x-goog-upload-url")
        if not target:
            raise ChatError(Reason.ENDPOINT_ERROR, "the provider gave no address for the upload", retry=True)
        done = await self._wire.send(
            "POST",
            target,
            content=content,
            headers={"X-Goog-Upload-Offset": "0", "X-Goog-Upload-Command": "upload, finalize"},
        )
        return await self._prepared(mapping(done.document).get("file"), media_type)

    async def _prepared(self, found: Any, media_type: str) -> Uploaded:
        """Wait until the provider can use the file."""
        for _ in range(_LOOKS):
            file = mapping(found)
            state, uri, name = file.get("state"), file.get("uri"), file.get("name")
            if not isinstance(uri, str) or not isinstance(name, str):
                raise ChatError(Reason.ENDPOINT_ERROR, "the provider did not say where the upload is", retry=True)
            if state in ("ACTIVE", None):
                return Uploaded(uri, media_type, time.monotonic())
            if state == "FAILED":
                said = str(mapping(file.get("error")).get("message", "no reason"))[:200]
                raise ChatError(Reason.UNDECODABLE, f"the provider cannot read the video: {said}")
            await self.sleep(_BETWEEN)
            found = (await self._wire.get(f"/{quote(name)}")).document
        raise ChatError(Reason.ENDPOINT_ERROR, "the provider did not finish preparing the video", retry=True)
