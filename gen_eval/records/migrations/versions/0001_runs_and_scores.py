"""Runs and scores."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create both tables."""
    op.create_table(
        "runs",
        sa.Column("id", sa.String(64), nullable=False, comment="digest of the manifest"),
        sa.Column("manifest", sa.Text, nullable=False, comment="canonical JSON"),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
    )
    key = ("run", "model", "sample", "member", "metric", "protocol")
    op.create_table(
        "scores",
        sa.Column("run", sa.String(64), nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("sample", sa.Text, nullable=False),
        sa.Column("member", sa.Text, nullable=False, comment="seed or caption"),
        sa.Column("metric", sa.Text, nullable=False),
        sa.Column("protocol", sa.Text, nullable=False),
        sa.Column("value", sa.Float(53), nullable=True, comment="empty exactly when status is not ok"),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("reason", sa.String(40), nullable=True),
        sa.Column("flags", sa.JSON, nullable=False),
        sa.Column("values", sa.JSON, nullable=False),
        sa.Column("detail", sa.JSON, nullable=False),
        sa.Column("version", sa.Integer, nullable=False, comment="version of the metric"),
        sa.Column("parameters", sa.String(64), nullable=False, comment="digest of the protocol's parameters"),
        sa.Column("weights", sa.String(64), nullable=True, comment="digest of the weights that were used"),
        sa.Column("inputs", sa.String(64), nullable=False, comment="digest of everything the value was computed from"),
        sa.Column("curve", sa.String(64), nullable=True, comment="digest of the parquet file with per-frame values"),
        sa.Column("frames", sa.JSON, nullable=False, comment="pictures by role"),
        sa.PrimaryKeyConstraint(*key, name="pk_scores"),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name="fk_scores_run", ondelete="CASCADE"),
    )


def downgrade() -> None:
    """Drop both tables."""
    op.drop_table("scores")
    op.drop_table("runs")
