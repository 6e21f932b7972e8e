"""What an API key that is limited to folders reaches, as a condition of queries."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from contracts.formats.folders import SEPARATOR


def within(name: Any, folders: Sequence[str] | None) -> sa.ColumnElement[bool]:
    """Return the condition that a column has the name of one of ``folders``, or of a folder in one of them; None: of any.

    As ``contracts.formats.folders.is_within``: LIKE would not do, for which SQLite takes small letters for large ones.
    """
    if folders is None:
        return sa.true()
    beginnings = [folder + SEPARATOR for folder in folders]
    inside = [sa.func.substr(name, 1, len(beginning)) == beginning for beginning in beginnings]
    return sa.or_(sa.false(), name.in_(folders), *inside)
