"""Templates (specification 4.2)."""

from typing import Any

from contracts.errors import ServiceError
from contracts.rpc import templates as rpc
from services.gateway import files
from services.gateway.api import submissions as of_submissions
from services.gateway.api.bodies import external_id, filters, given
from services.gateway.context import GatewayContext
from services.gateway.exchange import Exchange

_HTML = ("html", "html_header", "html_footer", "size", "name")


async def search(context: GatewayContext, exchange: Exchange) -> Any:
    return await context.ask(rpc.LIST, exchange, **filters(exchange))


async def get(context: GatewayContext, exchange: Exchange) -> Any:
    return await context.ask(rpc.GET, exchange, id=exchange.arguments["id"])


async def create_from_pdf(context: GatewayContext, exchange: Exchange) -> Any:
    body = exchange.body
    common = {**given(body, "name", "folder_name", "shared_link", "flatten", "remove_tags"), **external_id(body)}
    async with files.uploads(context, adopted=True) as uploads:
        stored = await uploads.add({f"documents[{i}].file": entry["file"] for i, entry in enumerate(body["documents"])})
        documents = [
            {"name": entry["name"], "file": file, "fields": _fields(entry.get("fields"))}
            for entry, file in zip(body["documents"], stored, strict=True)
        ]
        return await context.ask(rpc.CREATE, exchange, documents=documents, **common)


async def create_from_html(context: GatewayContext, exchange: Exchange) -> Any:
    body = exchange.body
    pages = body.get("documents") or [body]
    documents = [{**given(body, "html_header", "html_footer", "size"), **given(page, *_HTML)} for page in pages]
    common = given(body, "name", "folder_name", "shared_link")
    try:
        return await context.ask(rpc.CREATE, exchange, html_documents=documents, **external_id(body), **common)
    except ServiceError as error:
        raise error if "documents" in body else _without_place(error) from error


async def update(context: GatewayContext, exchange: Exchange) -> Any:
    body = exchange.body
    changes = given(body, "name", "folder_name", "roles", "submitters", "archived", "shared_link")
    if "fields" in body:
        changes["fields"] = _fields(body["fields"])
    return await context.ask(rpc.UPDATE, exchange, id=exchange.arguments["id"], **external_id(body), **changes)


async def remove(context: GatewayContext, exchange: Exchange) -> Any:
    return await context.ask(
        rpc.REMOVE, exchange, id=exchange.arguments["id"], permanently=of_submissions.permanently(exchange)
    )


async def clone(context: GatewayContext, exchange: Exchange) -> Any:
    body = exchange.body or {}
    chosen = given(body, "name", "folder_name")
    return await context.ask(rpc.CLONE, exchange, id=exchange.arguments["id"], **external_id(body), **chosen)


async def create_submission(context: GatewayContext, exchange: Exchange) -> Any:
    created = await of_submissions.created(context, exchange, exchange.arguments["id"])
    return created["submitters"]


async def submissions(context: GatewayContext, exchange: Exchange) -> Any:
    exchange.arguments["template_id"] = exchange.arguments.pop("id")
    await context.ask(rpc.GET, exchange, id=exchange.arguments["template_id"])
    return await of_submissions.search(context, exchange)


def _without_place(error: ServiceError) -> ServiceError:
    """The service counts documents; the caller gave one, with its keys at the top of the body."""
    place = "documents[0]."
    details = [{**detail, "field": str(detail.get("field", "")).removeprefix(place)} for detail in error.details]
    return ServiceError(error.code, error.message.removeprefix(place), details)


def _fields(fields: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    """Options may come as objects, as the peer stores them."""
    return [
        {**field, "options": [option["value"] if isinstance(option, dict) else option for option in field["options"]]}
        if field.get("options")
        else field
        for field in fields or []
    ]
