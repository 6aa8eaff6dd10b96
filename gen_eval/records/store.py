"""The results store: rows of runs in SQLite or PostgreSQL, written so that writing twice is writing once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, Self, TypeVar

from sqlalchemy import Connection, Engine, Table, create_engine, delete, event, func, inspect, null, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from gen_eval.records.answer import Answer
from gen_eval.records.errors import InputError
from gen_eval.records.model import Score
from gen_eval.records.reasons import Flag, Reason, Status
from gen_eval.records.tables import answers, runs, scores

SCHEMA_REVISION = "0002"
_BATCH = 500

Kept = TypeVar("Kept")


def _engine(url: str) -> Engine:
    """An engine for ``url``; ``postgresql://`` is taken as psycopg 3."""
    try:
        parsed = make_url(url)
        if parsed.drivername in {"postgresql", "postgres"}:
            parsed = parsed.set(drivername="postgresql+psycopg")
        engine = create_engine(parsed)
    except ImportError as error:
        raise InputError(
            f"the store {_shown(url)} needs a driver ({error}): pip install 'gen-eval[postgres]'"
        ) from None
    except SQLAlchemyError:
        expected = "sqlite:////path/to/file or postgresql://user@host/database"
        raise InputError(
            f"the store {_shown(url)} cannot be opened: it is no database URL; expected {expected}"
        ) from None
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _prepare_sqlite)
    elif engine.dialect.name != "postgresql":
        raise InputError(f"the store must be sqlite:///… or postgresql://…, not {engine.dialect.name}")
    return engine


def _shown(url: str) -> str:
    try:
        return make_url(url).render_as_string(hide_password=True)
    except SQLAlchemyError:
        return "(not a URL)"


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA busy_timeout = 30000")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute("PRAGMA synchronous = NORMAL")
    cursor.close()


class Store:
    """Runs and their rows.

    Use as a context manager, or call :meth:`close`. Every method that writes is one transaction.
    """

    def __init__(self, url: str) -> None:
        """Open the store at ``url``, creating or migrating its tables when needed.

        Raises:
            InputError: the address is malformed or the database does not answer.
        """
        self._shown = _shown(url)
        self._engine = _engine(url)
        try:
            with self._explained():
                self._migrate()
        except BaseException:
            self._engine.dispose()
            raise

    @classmethod
    def at(cls, path: Path) -> Self:
        """The SQLite store in the file ``path``."""
        return cls(f"sqlite:///{path}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give all connections back."""
        self._engine.dispose()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Say in a line what the database says: it is full, read-only, gone or damaged."""
        try:
            yield
        except SQLAlchemyError as error:
            said = str(error.orig if isinstance(error, DBAPIError) else error).strip()
            raise InputError(
                f"the store {self._shown} cannot be used: {said}. What was committed is kept: make room or access and "
                "run the same command again; a damaged file must be replaced by a copy or removed"
            ) from error

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Say in a line that a row holds what no gen-eval writes."""
        try:
            yield
        except (ValueError, TypeError, KeyError) as error:
            raise InputError(
                f"a row in the store {self._shown} cannot be read ({error}): it was changed or damaged; score again "
                "into another --out"
            ) from error

    @contextmanager
    def _begin(self) -> Iterator[Connection]:
        """One transaction."""
        with self._explained(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def _connect(self) -> Iterator[Connection]:
        with self._explained(), self._engine.connect() as connection:
            yield connection

    def _migrate(self) -> None:
        with self._engine.connect() as connection:
            if inspect(connection).has_table("alembic_version"):
                found = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
                if found == SCHEMA_REVISION:
                    return
                if found is not None and found > SCHEMA_REVISION:
                    raise InputError(
                        f"the store {self._shown} has the schema {found}, made by a newer gen-eval; this one knows "
                        f"{SCHEMA_REVISION}: update gen-eval"
                    )
        from gen_eval.records.migrations import upgrade

        upgrade(self._engine)

    # --- runs -------------------------------------------------------------------------------------------------

    def add_run(self, run: str, manifest: str) -> None:
        """Record that ``run`` exists; does nothing when it does."""
        with self._begin() as connection:
            statement = self._insert(runs).values(id=run, manifest=manifest).on_conflict_do_nothing()
            connection.execute(statement)

    def manifest(self, run: str) -> str | None:
        """The manifest (canonical JSON) of ``run``, ``None`` when the store does not know it."""
        with self._connect() as connection:
            return connection.execute(select(runs.c.manifest).where(runs.c.id == run)).scalar()

    def remove_run(self, run: str) -> None:
        """Forget ``run`` and all its rows."""
        with self._begin() as connection:
            connection.execute(delete(answers).where(answers.c.run == run))
            connection.execute(delete(scores).where(scores.c.run == run))
            connection.execute(delete(runs).where(runs.c.id == run))

    # --- rows -------------------------------------------------------------------------------------------------

    def write(self, run: str, rows: Iterable[Score]) -> None:
        """Write ``rows`` in one transaction; a row with the same key is replaced."""
        self._upsert(scores, [{"run": run, **_to_record(row)} for row in rows])

    def write_answers(self, run: str, found: Iterable[Answer]) -> None:
        """Write ``found`` in one transaction; an answer with the same key is replaced."""
        self._upsert(answers, [{"run": run, **_answer_record(one)} for one in found])

    def _upsert(self, table: Table, records: list[dict[str, Any]]) -> None:
        if not records:
            return
        statement = self._insert(table)
        keys = [column.name for column in table.primary_key]
        changed = {column.name: statement.excluded[column.name] for column in table.c if column.name not in keys}
        statement = statement.on_conflict_do_update(index_elements=keys, set_=changed)
        with self._begin() as connection:
            for start in range(0, len(records), _BATCH):
                connection.execute(statement, records[start : start + _BATCH])

    def rows(self, run: str) -> Iterator[Score]:
        """All rows of ``run`` in key order, a batch in memory at a time."""
        return self._ordered(scores, run, ("model", "sample", "member", "metric", "protocol"), _from_record)

    def answers(self, run: str, *, sample: str | None = None) -> Iterator[Answer]:
        """All answers of ``run``, or those of one sample, in key order, a batch in memory at a time."""
        keys = ("model", "sample", "member", "question", "condition")
        return self._ordered(answers, run, keys, _answer_from_record, sample=sample)

    def _ordered(
        self,
        table: Table,
        run: str,
        keys: tuple[str, ...],
        make: Callable[[dict[str, Any]], Kept],
        *,
        sample: str | None = None,
    ) -> Iterator[Kept]:
        """Everything of ``run`` in ``table``; what cannot be made from a record is one that cannot be read."""
        order: list[Any] = [table.c[name] for name in keys]
        # PostgreSQL sorts text by the database's locale; key order is by code point everywhere
        if self._engine.dialect.name == "postgresql":
            order = [column.collate("C") for column in order]
        statement = select(table).where(table.c.run == run).order_by(*order)
        if sample is not None:
            statement = statement.where(table.c.sample == sample)
        with self._readable(), self._connect() as connection:
            streamed = connection.execution_options(yield_per=_BATCH).execute(statement)
            for record in streamed.mappings():
                yield make(dict(record))

    def keys(self, run: str) -> Iterator[tuple[tuple[str, str, str, str, str], Reason | None]]:
        """Key and reason of every row of ``run``, in no particular order: what scheduling needs, without the rest."""
        columns = [scores.c[name] for name in ("model", "sample", "member", "metric", "protocol", "reason")]
        with self._readable(), self._connect() as connection:
            for *key, reason in connection.execute(select(*columns).where(scores.c.run == run)):
                yield tuple(key), None if reason is None else Reason(reason)

    def count(self, run: str) -> int:
        """Number of rows of ``run``."""
        with self._connect() as connection:
            return int(connection.execute(select(func.count()).where(scores.c.run == run)).scalar() or 0)

    def _insert(self, table: Any) -> Any:
        # on_conflict belongs to the dialects; both spell it alike
        return sqlite.insert(table) if self._engine.dialect.name == "sqlite" else postgresql.insert(table)


def _to_record(row: Score) -> dict[str, Any]:
    return {
        "model": row.model,
        "sample": row.sample,
        "member": row.member,
        "metric": row.metric,
        "protocol": row.protocol,
        "value": row.value,
        "status": str(row.status),
        "reason": None if row.reason is None else str(row.reason),
        "flags": [str(flag) for flag in row.flags],
        "values": dict(row.values),
        "detail": dict(row.detail),
        "version": row.version,
        "parameters": row.parameters,
        "weights": row.weights,
        "inputs": row.inputs,
        "curve": row.curve,
        "frames": dict(row.frames),
    }


def _answer_record(one: Answer) -> dict[str, Any]:
    record = {field.name: getattr(one, field.name) for field in fields(one)}
    # JSON columns take plain mappings; an unset one is NULL, not the JSON text null
    plain = {name: dict(record[name]) for name in ("shown", "usage", "raw")}
    chances = null() if one.chances is None else dict(one.chances)
    return {**record, **plain, "chances": chances, "reason": None if one.reason is None else str(one.reason)}


def _answer_from_record(record: dict[str, Any]) -> Answer:
    record.pop("run")
    record["reason"] = None if record["reason"] is None else Reason(record["reason"])
    return Answer(**record)


def _from_record(record: dict[str, Any]) -> Score:
    record.pop("run")
    record["status"] = Status(record["status"])
    record["reason"] = None if record["reason"] is None else Reason(record["reason"])
    record["flags"] = tuple(Flag(flag) for flag in record["flags"])
    return Score(**record)


__all__ = ["SCHEMA_REVISION", "Store"]
