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
