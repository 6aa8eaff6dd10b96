"""Answers of models."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table."""
    key = ("run", "model", "sample", "member", "question", "condition")
    op.create_table(
        "answers",
        sa.Column("run", sa.String(64), nullable=False),
        sa.Column("model", sa.Text, nullable=False, comment="system that is evaluated"),
        sa.Column("sample", sa.Text, nullable=False),
        sa.Column("member", sa.Text, nullable=False),
        sa.Column("question", sa.Text, nullable=False),
        sa.Column("condition", sa.Text, nullable=False, comment="empty, or what was changed"),
        sa.Column("asked", sa.String(64), nullable=False, comment="digest of the request and of what answered"),
        sa.Column("reply", sa.Text, nullable=True, comment="raw text"),
        sa.Column("reason", sa.String(40), nullable=True),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("finish_reason", sa.Text, nullable=True),
        sa.Column("shown", sa.JSON, nullable=False),
        sa.Column("chances", sa.JSON, nullable=True),
        sa.Column("usage", sa.JSON, nullable=False, comment="tokens by kind"),
        sa.Column("answered_by", sa.Text, nullable=True),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("seconds", sa.Float(53), nullable=False, comment="volatile"),
        sa.Column("cost", sa.Float(53), nullable=True),
        sa.Column("raw", sa.JSON, nullable=False, comment="the backend's answer"),
        sa.PrimaryKeyConstraint(*key, name="pk_answers"),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name="fk_answers_run", ondelete="CASCADE"),
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("answers")
