"""The tables of the results store, for SQLite and PostgreSQL alike."""

from __future__ import annotations

from sqlalchemy import JSON, Column, Float, ForeignKey, Integer, MetaData, String, Table, Text

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_name)s",
    }
)

runs = Table(
    "runs",
    metadata,
    Column("id", String(64), primary_key=True, comment="digest of the manifest"),
    Column("manifest", Text, nullable=False, comment="canonical JSON"),
)

scores = Table(
    "scores",
    metadata,
    Column("run", String(64), ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("model", Text, primary_key=True),
    Column("sample", Text, primary_key=True),
    Column("member", Text, primary_key=True, comment="seed or caption"),
    Column("metric", Text, primary_key=True),
    Column("protocol", Text, primary_key=True),
    Column("value", Float(53), nullable=True, comment="empty exactly when status is not ok"),
    Column("status", String(16), nullable=False),
    Column("reason", String(40), nullable=True),
    Column("flags", JSON, nullable=False),
    Column("values", JSON, nullable=False),
    Column("detail", JSON, nullable=False),
    Column("version", Integer, nullable=False, comment="version of the metric"),
    Column("parameters", String(64), nullable=False, comment="digest of the protocol's parameters"),
    Column("weights", String(64), nullable=True, comment="digest of the weights that were used"),
    Column("inputs", String(64), nullable=False, comment="digest of everything the value was computed from"),
    Column("curve", String(64), nullable=True, comment="digest of the parquet file with per-frame values"),
    Column("frames", JSON, nullable=False, comment="pictures by role"),
)

answers = Table(
    "answers",
    metadata,
    Column("run", String(64), ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("model", Text, primary_key=True, comment="system that is evaluated"),
    Column("sample", Text, primary_key=True),
    Column("member", Text, primary_key=True),
    Column("question", Text, primary_key=True),
    Column("condition", Text, primary_key=True, comment="empty, or what was changed"),
    Column("asked", String(64), nullable=False, comment="digest of the request and of what answered"),
    Column("reply", Text, nullable=True, comment="raw text"),
    Column("reason", String(40), nullable=True),
    Column("message", Text, nullable=False),
    Column("finish_reason", Text, nullable=True),
    Column("shown", JSON, nullable=False),
    Column("chances", JSON, nullable=True),
    Column("usage", JSON, nullable=False, comment="tokens by kind"),
    Column("answered_by", Text, nullable=True),
    Column("attempts", Integer, nullable=False),
    Column("seconds", Float(53), nullable=False, comment="volatile"),
    Column("cost", Float(53), nullable=True),
    Column("raw", JSON, nullable=False, comment="the backend's answer"),
)
