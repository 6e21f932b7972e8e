"""What the columns of a table mean: keys of a ``POST /submissions``, of its signers, and values of their fields.

    email                       of the one signer of each row, who has the template's first role
    Tenant.email                of the signer with the role Tenant
    values.Rent                 the value of the field Rent, whichever role has it
    Tenant.values.Rent          the same where several roles have such a field
    external_id                 of the row; a signer without one of their own has it, too
    submission.expire_at        of the submission

What may stand after the role is what the interface says of a submitter, after ``submission.`` what it says of a submission,
down to what is one text, number or truth value.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from contracts.fields.labels import labels
from contracts.rpc.submissions.batches import RowProblem
from contracts.types import FieldDefinition, FieldType, Template

Schema = dict[str, Any]

SUBMISSION = "submission"
EXTERNAL_ID = "external_id"
_VALUES = "values"
_ACTS_AS = "acts_as"
_LONGEST = 200
"""Characters of a name that are repeated in an answer."""
_ONE_VALUE = frozenset({"string", "integer", "number", "boolean"})


@dataclass(frozen=True)
class Roles:
    """The roles of a template, in order, and what their fields are called."""

    names: list[str]
    fields: dict[str, list[tuple[str, FieldDefinition]]]

    @classmethod
    def of(cls, template: Template) -> "Roles":
        names = labels(template.fields)
        fields_by_role: dict[str, list[tuple[str, FieldDefinition]]] = {role.name: [] for role in template.submitters}
        by_uuid = {role.uuid: role.name for role in template.submitters}
        for field in template.fields:
            if (role := by_uuid.get(field.submitter_uuid)) is not None:
                fields_by_role[role].append((names[field.uuid], field))
        return cls(list(fields_by_role), fields_by_role)

    def field_of_name(self, role: str, key: str) -> FieldDefinition | None:
        """Return the field of the role that is called so, whatever the case where none is called exactly so."""
        fields = self.fields.get(role, [])
        exact = (field for name, field in fields if name == key)
        alike = (field for name, field in fields if name.strip().lower() == key.strip().lower())
        return next(exact, None) or next(alike, None)


@dataclass(frozen=True)
class Column:
    """A column that is understood. ``role`` None: of the submission, or of the row; "": of the one signer. ``options`` are
    those of a field that takes several."""

    name: str
    role: str | None
    path: tuple[str, ...]
    options: frozenset[str] | None = None


@dataclass(frozen=True)
class RowBody:
    """A row as the body of a ``POST /submissions``. ``places`` says of each of its submitters what their columns begin with."""

    body: dict[str, Any]
    external_id: str | None
    places: list[str]


@dataclass(frozen=True)
class Columns:
    """The columns of a table, None for one without a name."""

    columns: list[Column | None]
    roles: list[str]

    def row(self, cells: Sequence[str]) -> RowBody:
        """Return the row as a body: what is blank is not said. A signer is there when one of their cells is not blank."""
        parties: dict[str, dict[str, Any]] = {}
        body: dict[str, Any] = {}
        external_id: str | None = None
        for column, cell in zip(self.columns, cells, strict=False):
            text = cell.strip()
            if column is None or not text:
                continue
            if column.role is None and column.path == (EXTERNAL_ID,):
                external_id = text
                continue
            target = body if column.role is None else parties.setdefault(column.role, {})
            _put(target, column.path, _value(column, cell, text))
        order = [role for role in ("", *self.roles) if role in parties]
        body["submitters"] = [{**({"role": role} if role else {}), **parties[role]} for role in order]
        if external_id is not None:
            for submitter in body["submitters"]:
                submitter.setdefault(EXTERNAL_ID, external_id)
        return RowBody(body, external_id, [f"{role}." if role else "" for role in order])

    def beyond(self, cells: Sequence[str]) -> bool:
        """Tell whether a row has something where no column has a name."""
        width = len(self.columns)
        unnamed = [cell for column, cell in zip(self.columns, cells, strict=False) if column is None]
        return any(cell.strip() for cell in [*unnamed, *cells[width:]])


def understood(
    header: Sequence[str], header_row: int, roles: Roles, submission: Schema, submitter: Schema
) -> tuple[Columns, list[RowProblem]]:
    """Return what the columns mean, and what is wrong with their names. ``submission`` and ``submitter`` are the schemas of
    what is sent, without references."""
    meanings = _Meanings(header, roles, submission, submitter)
    columns: list[Column | None] = []
    problems: list[RowProblem] = []
    seen: dict[tuple[str | None, tuple[str, ...]], str] = {}
    for name in header:
        column, reason = meanings.column(name) if name else (None, None)
        if column is not None:
            meaning = (column.role, column.path)
            if (before := seen.get(meaning)) is not None:
                reason = "must not appear twice" if before == name else f"is the same as {before[:_LONGEST]}"
            seen[meaning] = name
        if reason is not None:
            problems.append(RowProblem(row=header_row, field=name[:_LONGEST], reason=reason))
        columns.append(column)
    return Columns(columns, meanings.roles), problems


def column_of(place: str, places: Sequence[str]) -> str:
    """Return the column that ``submitters[1].email`` is of, or ``expire_at``; ``places`` are those of the row."""
    for index, prefix in enumerate(places):
        if place.startswith(start := f"submitters[{index}]"):
            return f"{prefix}{place.removeprefix(start).lstrip('.')}".rstrip(".")
    return place if place.startswith("submitters") or not place else f"{SUBMISSION}.{place}"


class _Meanings:
    """What columns there can be, for this template and this header."""

    def __init__(self, header: Sequence[str], roles: Roles, submission: Schema, submitter: Schema) -> None:
        self._roles, self._submission, self._submitter = roles, submission, submitter
        self.roles = [*roles.names, *self._observers(header)]
        self._by_role = any(self._role(name) is not None for name in header)

    def column(self, name: str) -> tuple[Column | None, str | None]:
        """Return the column, or the reason why there is none."""
        head, _, rest = name.partition(".")
        if head.lower() == SUBMISSION and rest:
            return self._of_submission(name, rest)
        if (role_and_rest := self._role(name)) is not None:
            return self._of_role(name, *role_and_rest)
        if name.lower() == EXTERNAL_ID:
            return Column(name, None, (EXTERNAL_ID,)), None
        if head.lower() == _VALUES and rest:
            return self._of_a_field(name, rest)
        if self._by_role:
            if self._path(self._submitter, name) is not None:
                return None, f"must name its role: write {self.roles[0]}.{name[:_LONGEST]}"
            return None, self._unknown()
        return self._of_role(name, "", name)

    def _observers(self, header: Sequence[str]) -> list[str]:
        """Roles that no document knows: of whoever approves or reads."""
        template_roles = {role.lower() for role in self._roles.names}
        ends = [name[: -len(_ACTS_AS) - 1] for name in header if name.lower().endswith(f".{_ACTS_AS}")]
        return list(
            dict.fromkeys(role for role in ends if role.lower() not in template_roles and role.lower() != SUBMISSION)
        )

    def _role(self, name: str) -> tuple[str, str] | None:
        """The role that the name begins with, the longest, and what comes after it."""
        lower = name.lower()
        fitting = [role for role in self.roles if lower.startswith(f"{role.lower()}.")]
        longest = max(fitting, key=len, default=None)
        return None if longest is None else (longest, name[len(longest) + 1 :])

    def _of_submission(self, name: str, rest: str) -> tuple[Column | None, str | None]:
        path = self._path(self._submission, rest)
        if path is None or path[0] == "submitters":
            return None, "is not a key of a submission that a column can hold"
        return Column(name, None, path), None

    def _of_role(self, name: str, role: str, rest: str) -> tuple[Column | None, str | None]:
        path = self._path(self._submitter, rest)
        if path is None or path[0] in ("role", "uuid"):
            return None, self._unknown()
        if path[0] != _VALUES:
            return Column(name, role, path), None
        return self._of_field(name, role, path[1])

    def _of_a_field(self, name: str, key: str) -> tuple[Column | None, str | None]:
        """``values.Rent``: of whichever role has such a field. Where no column names a role, there is one signer only."""
        if not self._by_role:
            return self._of_field(name, "", key)
        having = [role for role in self._roles.names if self._roles.field_of_name(role, key) is not None]
        if len(having) > 1:
            written = " or ".join(f"{role}.{name[:_LONGEST]}" for role in having)
            return None, f"must name its role: write {written}"
        if not having:
            return None, "is not a field of the template"
        return self._of_field(name, having[0], key)

    def _of_field(self, name: str, role: str, key: str) -> tuple[Column | None, str | None]:
        owner = role or next(iter(self._roles.names), "")
        if (field := self._roles.field_of_name(owner, key)) is None:
            return None, f"is not a field of the role {owner}"
        options = frozenset(field.options or ()) if field.type is FieldType.MULTIPLE else None
        return Column(name, role, (_VALUES, key), options), None

    def _path(self, schema: Schema, text: str) -> tuple[str, ...] | None:
        """The keys that the text names within the schema, down to one value; None when there is no such place."""
        properties = schema.get("properties", {})
        head, dot, rest = text.partition(".")
        key = next((key for key in properties if key.lower() == head.strip().lower()), None)
        if key is None:
            return None
        below = _joined(properties[key])
        if not dot:
            return (key,) if below.get("type") in _ONE_VALUE else None
        if below.get("type") != "object" or not rest.strip():
            return None
        if "properties" in below:
            path = self._path(below, rest)
            return None if path is None else (key, *path)
        return (key, rest) if below.get("additionalProperties") else None

    def _unknown(self) -> str:
        roles = ", ".join(f"“{role}”" for role in self.roles)
        return (
            "must be one of external_id, email, name, phone, values.<field> and the other keys of a submitter, each with "
            f"<role>. before it where there are several roles ({roles}), or submission.<key>"
        )


def _joined(schema: Schema) -> Schema:
    """``allOf`` of one is how a schema says more about another."""
    match schema.get("allOf"):
        case [dict(only)]:
            return {**only, **{key: value for key, value in schema.items() if key != "allOf"}}
    return schema


def _value(column: Column, cell: str, text: str) -> Any:
    """The value of a cell: as it stands for a field, without blanks around it for a key. Of a field that takes several the
    options are in lines of their own, or separated by semicolons."""
    if column.options is not None:
        return [text] if text in column.options else list(_split(text))
    return cell if column.path[0] == _VALUES else text


def _split(text: str) -> Iterator[str]:
    return (part.strip() for part in text.replace("\n", ";").split(";") if part.strip())


def _put(target: dict[str, Any], path: Iterable[str], value: Any) -> None:
    *above, last = path
    for key in above:
        target = target.setdefault(key, {})
    target[last] = value
