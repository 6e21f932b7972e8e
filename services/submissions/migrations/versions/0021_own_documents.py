"""Which documents submissions brought along: what is made of them goes with the last one."""

import sqlalchemy as sa
from alembic import op

from contracts.runtime.data.database import BigId

revision = "0021"
down_revision = "0020"

_POSTGRESQL = """
INSERT INTO own_documents (sha256, submission_id)
SELECT DISTINCT document -> part ->> 'sha256', submission_id
FROM snapshots, jsonb_array_elements(documents) AS document, unnest(ARRAY['file', 'original']) AS part
WHERE document -> part ->> 'key' LIKE 'submissions/%'
"""
_SQLITE = """
INSERT INTO own_documents (sha256, submission_id)
SELECT DISTINCT json_extract(document.value, '$.' || part.value || '.sha256'), submission_id
FROM snapshots, json_each(documents) AS document, json_each('["file", "original"]') AS part
WHERE json_extract(document.value, '$.' || part.value || '.key') LIKE 'submissions/%'
"""


def upgrade() -> None:
    op.create_table(
        "own_documents",
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("submission_id", BigId, nullable=False),
        sa.PrimaryKeyConstraint("sha256", "submission_id", name="pk_own_documents"),
        sa.ForeignKeyConstraint(
            ["submission_id"], ["submissions.id"], name="fk_own_documents_submission_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_own_documents_submission_id", "own_documents", ["submission_id"])
    op.execute(sa.text(_POSTGRESQL if op.get_context().dialect.name == "postgresql" else _SQLITE))


def downgrade() -> None:
    op.drop_table("own_documents")
