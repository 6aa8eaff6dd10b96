"""Hostile input at the door of the arena commands: names that command a terminal, outputs, numbers without sense."""

import json

import pytest


def votes(path, names=("x", "y", "z"), n=18):
    rows = []
    for place in range(n):
        a, b = names[place % 3], names[(place + 1) % 3]
        who = {"id": f"v{place}", "sample": f"s{place % 6}", "annotator": "u", "model_a": a, "model_b": b}
        rows.append({**who, "quality": "ab"[place % 2], "plausibility": "ab"[place // 2 % 2]})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_names_do_not_command_the_terminal(cli, tmp_path):
    names = ("red \x1b[31m", "title \x1b]0;owned\x07", "c1 \x9b31m turned \u202egpj.exe")
    path = votes(tmp_path / "v.jsonl", names)
    for command in (["rate", "--resamples", "20"], ["agree", "--resamples", "20"], ["next"], ["power"]):
        done = cli("arena", *command, "--votes", path)
        assert done.code == 0, done
        assert not set("\x1b\x07\x9b\u202e") & set(done.out + done.err)
    done = cli("arena", "rate", "--votes", path, "--resamples", "20")
    assert "red [31m" in done.out
    refused = cli("arena", "power", "--votes", path, "--a", "\x1b[31m", "--b", names[1])
    assert refused.code == 2
    assert "\x1b" not in refused.err


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("model,elo_overall,score_overall\n" + "".join(f"s{n},{n * n},{n}\n" for n in range(5)))
    return path


def test_a_report_never_takes_the_place_of_what_is_read(cli, tmp_path, table):
    given = votes(tmp_path / "v.jsonl")
    listed = tmp_path / "v.json"
    listed.write_text(json.dumps([json.loads(line) for line in given.read_text().splitlines()]))
    (tmp_path / "link.json").symlink_to(listed)
    before = listed.read_bytes(), table.read_bytes()
    for command in (
        ["rate", "--votes", listed, "--out", listed],
        ["rate", "--votes", listed, "--out", "link.json"],
        ["rate", "--votes", "link.json", "--out", f"../{tmp_path.name}/v.json"],
        ["agree", "--votes", listed, "--out", listed],
        ["correlate", "--ratings", table, "--scores", table, "--out", table],
        ["correlate", "--votes", listed, "--scores", table, "--out", listed],
        ["report", "run", "--votes", listed, "--out", listed],
        ["report", "run", "--ratings", table, "--out", table],
    ):
        done = cli(*(() if command[0] == "report" else ("arena",)), *command)
        assert done.code == 2, done
        assert "which is read" in done.err
    assert (listed.read_bytes(), table.read_bytes()) == before


def test_what_cannot_be_written_is_refused_before_anything_is_read(cli, tmp_path):
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "folder.html").mkdir()
    for more, expected in (
        (["--out", "report"], "use one of .html, .json, .csv, .tex"),
        (["--out", "report.pdf"], "use one of .html, .json, .csv, .tex"),
        (["--out", "folder.html"], "it is a folder"),
        (["--plots", "file"], "it is a file"),
    ):
        done = cli("arena", "rate", "--votes", "not there.csv", *more)
        assert (done.code, done.out) == (2, "")
        assert expected in done.err
        assert "Traceback" not in done.err


def test_numbers_without_sense_are_refused_in_a_line(cli, tmp_path):
    given = votes(tmp_path / "v.jsonl")
    for more in (
        ["rate", "--method", "elo", "--k", "1e300"],
        ["rate", "--pair-floor", "9" * 400],
        ["rate", "--resamples", str(10**13)],
        ["rate", "--method", "elo", "--permutations", str(10**13)],
        ["agree", "--resamples", str(10**13)],
        ["next", "--count", str(10**13)],
    ):
        done = cli("arena", *more, "--votes", given)
        assert (done.code, done.out) == (2, ""), more
        assert "rror: " in done.err
        assert "Traceback" not in done.err


def test_no_memory_is_a_message(monkeypatch, cli, tmp_path):
    def full(*_, **__):
        raise MemoryError("Unable to allocate 37 TiB")

    monkeypatch.setattr("api.services.arena.rate", full)
    done = cli("arena", "rate", "--votes", votes(tmp_path / "v.jsonl"))
    assert done.code == 2
    assert done.err.startswith("error: there is not enough memory (Unable to allocate 37 TiB)")
