"""A weights folder and a catalogue of one's own, and a server on this machine that gives files and misbehaves."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import yaml

from gen_eval.settings import settings


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty weights folder, used by this process."""
    path = tmp_path / "weights"
    path.mkdir()
    monkeypatch.setenv("GEN_EVAL_WEIGHTS", str(path))
    settings.cache_clear()
    yield path
    settings.cache_clear()


def entry(*sources, **fields):
    """A catalogue entry with plain values."""
    plain = {"title": "A network", "track": "quality", "manifest": None, "licence": "MIT", "commercial": True}
    return {**plain, "network": None, "sources": list(sources), **fields}


@pytest.fixture
def make_entry():
    return entry


@pytest.fixture
def catalogue(tmp_path, monkeypatch):
    """Write a catalogue of one's own; its ids come before the shipped ones."""

    def write(**entries):
        path = tmp_path / "configs" / "weights" / "own.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(entries))
        monkeypatch.setenv("GEN_EVAL_CONFIGS", str(tmp_path / "configs"))
        return path

    return write


@pytest.fixture
def own(folder, catalogue):
    """A checkpoint `own` whose file is written by ``save(path)``; returns the file's path."""

    def make(file, container, save=None, **fields):
        source = {"file": file, "container": container}
        source |= {name: fields.pop(name) for name in list(fields) if name in SOURCE_FIELDS}
        catalogue(own=entry(source, **fields))
        path = folder / "own" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        if save is not None:
            save(path)
        return path

    return make


SOURCE_FIELDS = {"key", "member", "keep", "names", "sha256", "sha256_prefix", "needs", "companions", "url", "hub"}


class Site:
    """What the server gives, and how it misbehaves.

    ``files`` maps paths to content; ``tags`` to entity tags. ``cuts`` is a list of byte counts: each answer takes one
    and breaks off behind it. ``answers`` is a list of status codes that come before anything else. ``moved`` maps paths
    to where they redirect. ``asked`` are the headers of all requests. ``length`` is stated in place of the true one.
    """

    UNSTATED, CHUNKED = -1, -2  # lengths

    def __init__(self):
        self.files, self.tags, self.moved = {}, {}, {}
        self.cuts, self.answers, self.asked = [], [], []
        self.length = None
        self.stall = None  # so many bytes, then silence until the test ends
        self.done = threading.Event()
        self.ranges = True
        self.tagged = True


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_arguments):
        pass

    def do_GET(self):
        site = self.server.site
        site.asked.append((self.path, dict(self.headers)))
        if site.answers:
            return self.plain(site.answers.pop(0))
        if self.path in site.moved:
            self.send_response(302)
            self.send_header("Location", site.moved[self.path])
            self.send_header("Content-Length", "0")
            return self.end_headers()
        if self.path not in site.files:
            return self.plain(404)
        return self.give(site, site.files[self.path], site.tags.get(self.path, '"one"'))

    def plain(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def give(self, site, content, tag):
        start, wanted = 0, self.headers.get("Range")
        if site.ranges and wanted and self.headers.get("If-Range") == tag:
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
        if start > len(content) or (start and start == len(content)):
            return self.plain(416)
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        if site.tagged:
            self.send_header("ETag", tag)
        length = site.length if site.length is not None else len(content) - start
        if length >= 0:
            self.send_header("Content-Length", str(length))
        if length == site.CHUNKED:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        body = content[start:]
        if site.cuts:
            body = body[: site.cuts.pop(0)]
        if length == site.CHUNKED:
            body = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:1000], body[1000:], b""))
        self.wfile.write(body if site.stall is None else body[: site.stall])
        if site.stall is not None:
            self.wfile.flush()
            site.done.wait(60)
        self.close_connection = True
        return None


@pytest.fixture
def site():
    """A server on this machine; ``site.address`` is where."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.site = Site()
    server.site.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield server.site
    server.site.done.set()
    server.shutdown()
    server.server_close()
    thread.join()
