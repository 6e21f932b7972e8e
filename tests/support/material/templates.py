"""Material for the tests of the templates service: documents that are ready, commands, a database with its tables."""

import itertools
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from contracts.blobs import BlobRef
from contracts.errors import ServiceError
from contracts.rpc import templates as rpc
from contracts.rpc.rendering import PreparedDocument, TagField
from contracts.runtime.data import tables
from contracts.runtime.data.database import Database
from contracts.types import Actor, Notice, Page, PageSize, Role, Template
from services.templates import queries
from services.templates.commands import templates as commands
from services.templates.intake.preparing import Ready
from services.templates.links import LinkMaker
from services.templates.rules.domain import DocumentFields, Limits
from tests.support.services.migrated import migrated

ADMIN = Actor(user_id=1, role=Role.ADMIN, email="admin@example.com", name="Ana Ray", first_name="Ana", last_name="Ray")
EDITOR = Actor(user_id=2, role=Role.EDITOR, email="editor@example.com")
OTHER = Actor(user_id=3, role=Role.EDITOR, email="other@example.com")
VIEWER = Actor(user_id=4, role=Role.VIEWER, email="viewer@example.com")
NOW = datetime(2026, 3, 4, 5, 6, 7, 89_000, tzinfo=UTC)
LINKS = LinkMaker("https://sign.example.com", "for tests", 3600)
LIMITS = Limits()
BOX = {"x": 0.1, "y": 0.1, "w": 0.2, "h": 0.05}
numbers = itertools.count()


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    migrated("templates", database_url)
    database = Database(database_url)
    yield database
    database.dispose()


def blob(name: str, kind: str = "application/pdf") -> BlobRef:
    return BlobRef(key=f"rendering/{name}", sha256=f"{next(numbers):064x}", size=1000, media_type=kind)


def ready(*names: str, fields: list[rpc.FieldInput] | None = None, tags: list[TagField] | None = None) -> list[Ready]:
    found = []
    for i, name in enumerate(names or ("contract",)):
        prepared = PreparedDocument(file=blob(name), original=blob("original"), pages=[PageSize(width=612, height=792)])
        found.append(
            Ready(
                name=name,
                file=prepared.file,
                original=prepared.original,
                signed=False,
                fields=DocumentFields(
                    uuid=f"{next(numbers):08x}-0000-4000-8000-000000000000",
                    name=name,
                    path=f"documents[{i}]",
                    part="file",
                    pages=prepared.pages,
                    explicit=fields or [],
                    tag_fields=tags or [],
                ),
                report=[Notice(code="repaired", message="The file was repaired", document=name)],
            )
        )
    return found


def request_id() -> str:
    return f"request-{next(numbers)}"


def create(database: Database, actor: Actor = ADMIN, documents: list[Ready] | None = None, **more: Any) -> Template:
    command = rpc.CreateTemplate.model_validate({"request_id": request_id(), "actor": actor, **more})
    return database.write(commands.create, command, documents or ready(), LINKS, LIMITS, NOW)


def update(database: Database, template: Template, actor: Actor = ADMIN, **changes: Any) -> Template:
    body = {"request_id": request_id(), "actor": actor, "id": template.id, **changes}
    command = rpc.UpdateTemplate.model_validate(body)
    return database.write(commands.update, command, LINKS, LIMITS, NOW + timedelta(minutes=1))


def remove(database: Database, template: Template, actor: Actor = ADMIN, **more: Any) -> Any:
    command = rpc.RemoveTemplate(request_id=request_id(), actor=actor, id=template.id, **more)
    return database.write(commands.remove, command, LINKS, NOW)


def clone(database: Database, template: Template, actor: Actor = ADMIN, **more: Any) -> Template:
    command = rpc.CloneTemplate(request_id=request_id(), actor=actor, id=template.id, **more)
    return database.write(commands.clone, command, LINKS, NOW)


def get(database: Database, number: int, actor: Actor = ADMIN) -> Template:
    return database.read(queries.template, rpc.GetTemplate(actor=actor, id=number), LINKS, NOW)


def listed(database: Database, actor: Actor = ADMIN, **filters: Any) -> Page[Template]:
    return database.read(queries.templates, rpc.ListTemplates(actor=actor, **filters), LINKS, NOW)


def without_links(template: Template) -> dict[str, Any]:
    """What stays the same from one moment to the next."""
    return template.model_dump(exclude={"documents": {"__all__": {"url", "preview_image_url"}}})


def ids(page: Page[Template]) -> list[int]:
    return [one.id for one in page.data]


def events(database: Database) -> list[dict[str, Any]]:
    with database.engine.connect() as connection:
        return [
            json.loads(body) for body in connection.execute(sa.select(tables.outbox.c.body).order_by("seq")).scalars()
        ]


def refused(code: str, call: Any, *args: Any, **more: Any) -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        call(*args, **more)
    assert caught.value.code == code, caught.value.message
    return caught.value
