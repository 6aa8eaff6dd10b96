"""Downloads from a real server on this machine: whole, resumed, refused, retried, without room."""

import hashlib
import json
import os
import random
import resource
import shutil
import threading

import pytest

from gen_eval.records import InputError
from gen_eval.weights import fetching
from gen_eval.weights.fetching import Download, FetchError, download

CONTENT = random.Random(0).randbytes(300_000)
OTHER = random.Random(1).randbytes(300_000)
SHA = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch):
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest.fixture
def target(tmp_path):
    return tmp_path / "weights" / "own" / "a.bin"


@pytest.fixture
def fetch(site, target):
    """Fetch `/a.bin`; the digest is known unless told otherwise."""
    site.files["/a.bin"] = CONTENT

    def run(known=SHA, **kwargs):
        accepts = (lambda digest: digest == known) if known else (lambda _digest: None)
        options = {name: kwargs.pop(name) for name in ("progress", "attempts") if name in kwargs}
        wanted = Download(kwargs.pop("url", f"{site.address}/a.bin"), target, accepts=accepts, wanted=known, **kwargs)
        return download(wanted, pause=0.01, **options)

    return run


def only(target):
    """The names beside the lock, which stays."""
    return {path.name for path in target.parent.iterdir() if not path.name.endswith(".lock")}


def test_a_file_is_fetched_whole_and_progress_is_told(fetch, target):
    told = []
    assert fetch(progress=lambda done, total: told.append((done, total))) == SHA
    assert target.read_bytes() == CONTENT
    assert only(target) == {"a.bin"}
    assert told[0] == (0, len(CONTENT))
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_what_is_there_is_not_asked_for(fetch, target, site):
    target.parent.mkdir(parents=True)
    target.write_bytes(b"here")
    assert fetch() is None
    assert site.asked == []


def test_a_cut_line_is_taken_up_where_it_broke(fetch, target, site):
    site.cuts = [100_000, 50_000, 1]
    assert fetch() == SHA
    assert target.read_bytes() == CONTENT
    ranges = [headers.get("Range") for _, headers in site.asked]
    assert ranges == [None, "bytes=100000-", "bytes=150000-", "bytes=150001-"]
    assert all(headers.get("If-Range") == '"one"' for _, headers in site.asked[1:])


def test_a_later_call_goes_on_where_an_earlier_one_gave_up(fetch, target, site):
    site.cuts = [100_000, 0, 0]
    with pytest.raises(FetchError, match=r"in 2 tries .*; 100000 bytes are kept, the same command goes on"):
        fetch(attempts=2)
    assert only(target) == {"a.bin.part", "a.bin.part.json"}
    site.cuts = []
    assert fetch() == SHA
    assert site.asked[-1][1]["Range"] == "bytes=100000-"
    assert only(target) == {"a.bin"}


def test_a_file_that_changed_meanwhile_is_begun_again(fetch, target, site):
    site.cuts = [100_000, 0]
    with pytest.raises(FetchError):
        fetch(attempts=1)
    site.cuts, site.files["/a.bin"], site.tags["/a.bin"] = [], OTHER, '"two"'
    assert fetch(known=None) == hashlib.sha256(OTHER).hexdigest()
    assert target.read_bytes() == OTHER


@pytest.mark.parametrize("tag", [None, 'W/"weak"'])
def test_without_a_name_for_the_version_a_download_begins_again(fetch, target, site, tag):
    site.tagged, site.tags["/a.bin"] = tag is not None, tag
    site.cuts = [100_000]
    assert fetch() == SHA
    assert [headers.get("Range") for _, headers in site.asked] == [None, None]
    assert target.read_bytes() == CONTENT


def test_a_server_without_ranges_begins_again(fetch, target, site):
    site.ranges, site.cuts = False, [100_000]
    assert fetch() == SHA
    assert target.read_bytes() == CONTENT


def test_a_part_that_is_too_long_is_thrown_away(fetch, target, site):
    site.cuts = [100_000, 0]
    with pytest.raises(FetchError):
        fetch(attempts=1)
    site.cuts = []
    with (target.parent / "a.bin.part").open("ab") as part:
        part.write(bytes(400_000))
    assert fetch() == SHA
    assert target.read_bytes() == CONTENT


@pytest.mark.parametrize("damage", ["note", "part"])
def test_a_damaged_part_or_note_costs_time_only(fetch, target, site, damage):
    site.cuts = [100_000, 0]
    with pytest.raises(FetchError):
        fetch(attempts=1)
    site.cuts = []
    if damage == "note":
        (target.parent / "a.bin.part.json").write_text("{")
        assert fetch() == SHA
    else:
        (target.parent / "a.bin.part").write_bytes(bytes(100_000))
        with pytest.raises(FetchError, match="thrown away"):  # noticed by the digest
            fetch()
        assert fetch() == SHA
    assert target.read_bytes() == CONTENT


def test_a_wrong_digest_is_named_with_both_and_nothing_stays(fetch, target):
    with pytest.raises(FetchError) as raised:
        fetch(known="a" * 64)
    assert SHA in str(raised.value)
    assert "a" * 64 in str(raised.value)
    assert not raised.value.elsewhere
    assert only(target) == set()


@pytest.mark.parametrize("more", [1, 1000])
def test_fewer_bytes_than_announced_are_an_error(fetch, target, site, more):
    site.length = len(CONTENT) + more
    with pytest.raises(FetchError, match="could not be fetched in 3 tries"):
        fetch(attempts=3)
    assert not target.exists()


def test_a_length_that_is_not_stated_is_refused(fetch, target, site):
    site.length = site.UNSTATED
    with pytest.raises(FetchError, match="without its length"):
        fetch()
    assert not target.exists()


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_an_answer_that_will_not_change_is_not_asked_for_again(fetch, site, status):
    site.answers = [status] * 3
    with pytest.raises(FetchError, match=f"the server answered {status}") as raised:
        fetch()
    assert len(site.asked) == 1
    assert raised.value.elsewhere


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_an_answer_that_says_later_is_asked_for_again(fetch, site, status):
    site.answers = [status, status]
    assert fetch() == SHA
    assert len(site.asked) == 3


def test_tries_are_bounded(fetch, site):
    site.answers = [500] * 99
    with pytest.raises(FetchError, match=r"in 4 tries \(the server answered 500\)"):
        fetch(attempts=4)
    assert len(site.asked) == 4


def test_nobody_there(target):
    with pytest.raises(FetchError, match="in 2 tries"):
        download(Download("http://127.0.0.1:1/a.bin", target), attempts=2, pause=0.01)


def test_a_redirection_on_the_same_host_is_followed(fetch, site):
    site.moved["/b.bin"] = "/a.bin"
    assert fetch(url=f"{site.address}/b.bin") == SHA


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ("https://elsewhere.example/a", "the scheme changes"),
        ("file:///etc/passwd", "only https"),
        ("ftp://127.0.0.1/a", "only https"),
        ("http://elsewhere.example/a", "only https"),
        ("http://localhost:1/a", "a private address"),
        ("http://169.254.169.254/latest", "only https"),
    ],
)
def test_a_redirection_elsewhere_is_not_followed(fetch, target, site, to, said):
    site.moved["/b.bin"] = to
    with pytest.raises(FetchError, match=said):
        fetch(url=f"{site.address}/b.bin")
    assert len(site.asked) == 1
    assert not target.exists()


@pytest.mark.parametrize("host", ["10.0.0.1", "192.168.1.1", "127.0.0.1", "[::1]", "169.254.169.254", "localhost"])
def test_a_public_origin_does_not_lead_to_private_addresses(host):
    with pytest.raises(FetchError, match="a private address"):
        fetching._check_address(f"https://{host}/a", origin="https://1.1.1.1/a")
    fetching._check_address(f"https://{host}/b", origin=f"https://{host}/a")


def test_a_circle_of_redirections_ends(fetch, site):
    site.moved["/b.bin"] = "/b.bin"
    with pytest.raises(FetchError, match="redirected more than"):
        fetch(url=f"{site.address}/b.bin")


@pytest.mark.parametrize("url", ["http://files.example/a", "ftp://files.example/a", "file:///etc/passwd", "a.bin"])
def test_only_https_is_fetched_from(target, url):
    with pytest.raises(InputError, match="only https"):
        download(Download(url, target))


def test_a_disk_that_is_full_beforehand_is_said_with_what_is_needed(fetch, target, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: shutil._ntuple_diskusage(10, 5, 5))
    with pytest.raises(FetchError, match=r"no room for a\.bin .*about 300000 more bytes are needed") as raised:
        fetch()
    assert not raised.value.elsewhere
    assert not target.exists()


def test_a_disk_that_fills_up_keeps_the_part(fetch, target, site):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (120_000, hard))
    try:
        with pytest.raises(FetchError, match=r"120000 bytes are kept, about 180000 more bytes are needed"):
            fetch()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert fetch() == SHA
    assert site.asked[-1][1]["Range"] == "bytes=120000-"
    assert target.read_bytes() == CONTENT


def test_an_interrupted_download_goes_on(fetch, target, site):
    def interrupt(done, _total):
        if done:
            raise KeyboardInterrupt

    site.cuts = [200_000]
    with pytest.raises(KeyboardInterrupt):
        fetch(progress=interrupt)
    here = (target.parent / "a.bin.part").stat().st_size
    assert 0 < here <= 200_000
    assert json.loads((target.parent / "a.bin.part.json").read_text())["size"] == len(CONTENT)
    assert fetch() == SHA
    assert site.asked[-1][1]["Range"] == f"bytes={here}-"


def test_two_that_want_one_file_take_turns(fetch, target, site):
    found = []
    threads = [threading.Thread(target=lambda: found.append(fetch())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    assert found.count(SHA) == 1
    assert found.count(None) == 2
    assert len(site.asked) == 1
    assert target.read_bytes() == CONTENT


def test_a_stream_of_unknown_length_is_taken_whole(fetch, target, site):
    site.length = site.CHUNKED
    assert fetch() == SHA
    assert target.read_bytes() == CONTENT


def test_a_stream_that_does_not_end_is_stopped(fetch, target, site):
    site.length = site.CHUNKED
    with pytest.raises(FetchError, match="sends more than the 200000 bytes"):
        fetch(size=100_000)
    assert not target.exists()
    assert (target.parent / "a.bin.part").stat().st_size <= 200_000
