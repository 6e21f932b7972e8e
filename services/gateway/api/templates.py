"""Templates (specification 4.2)."""

from typing import Any

from contracts.errors import invalid
from contracts.fields import trying
from contracts.fields.value_schema import DIALECT, Schema, template_schema
from contracts.rpc import Rpc
from contracts.rpc import templates as rpc
from contracts.types import Template
from services.gateway.api import submissions as of_submissions
from services.gateway.api.requests import files
from services.gateway.api.requests.bodies import external_id, filters, pick
from services.gateway.api.requests.context import GatewayContext
from services.gateway.api.requests.intake import documents_of, fields_of, html_documents_of, place_of_html
from services.gateway.http.exchange import Exchange

_CERTSIGN = "certsign_sign_enabled"
_BREAKING = "refuse_breaking"


_DETECTION = ("detect_fields", "min_confidence")


async def search(context: GatewayContext, exchange: Exchange) -> Any:
    return await context.ask(rpc.LIST, exchange, **filters(exchange))


async def get(context: GatewayContext, exchange: Exchange) -> Any:
    return await context.ask(rpc.GET, exchange, id=exchange.arguments["id"])


async def detected_fields(context: GatewayContext, exchange: Exchange) -> Any:
    return await context.ask(rpc.DETECT, exchange, id=exchange.arguments["id"])


async def schema(context: GatewayContext, exchange: Exchange) -> Any:
    arguments = exchange.arguments
    template = await context.ask(rpc.GET, exchange, id=arguments["id"])
    values_schema = await context.in_thread(_schema, template)
    role = arguments.get("role")
    if role is not None:
        if role not in values_schema["properties"]:
            raise invalid("role must be one of the template's roles", "role", "must be one of the template's roles")
        values_schema = {"title": role, **values_schema["properties"][role]}
    return {"$schema": DIALECT, "title": template["name"], **values_schema}


def _schema(answer: dict[str, Any]) -> Schema:
    template = Template.model_validate(answer)
    return template_schema(template.submitters, template.fields)


async def evaluate(context: GatewayContext, exchange: Exchange) -> Any:
    body = exchange.body
    template = await context.ask(rpc.GET, exchange, id=exchange.arguments["id"])
    return await context.in_thread(_evaluated, template, body)


def _evaluated(answer: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    template = Template.model_validate(answer)
    definition = trying.Definition(
        parties=template.submitters,
        fields=template.fields,
        documents={item.attachment_uuid: item.name for item in template.document_schema},
        conditions={item.attachment_uuid: item.conditions for item in template.document_schema if item.conditions},
    )
    cases = body.get("cases")
    if cases is None:
        outcomes = trying.run_cases(definition, [body], [""])
    else:
        outcomes = trying.run_cases(definition, cases, [f"cases[{number}]." for number in range(len(cases))])
    return {"passed": not any(case["mismatches"] for case in outcomes), "cases": outcomes}


async def create_from_pdf(context: GatewayContext, exchange: Exchange) -> Any:
    body = exchange.body
    options = pick(body, *rpc.NewTemplateOptions.model_fields, "flatten", "remove_tags", _BREAKING)
    common = {**options, **external_id(body), **pick(exchange.arguments, *_DETECTION)}
    async with files.uploads(context, adopted=not exchange.dry_run) as uploads:
        return await context.ask(_create(exchange), exchange, documents=await documents_of(uploads, body), **common)


async def create_from_docx(context: GatewayContext, exchange: Exchange) -> Any:
    body = exchange.body
    options = pick(body, *rpc.NewTemplateOptions.model_fields, "remove_tags", _BREAKING)
    common = {**options, **external_id(body), **pick(exchange.arguments, *_DETECTION), "docx": True}
    async with files.uploads(context, adopted=not exchange.dry_run) as uploads:
        return await context.ask(_create(exchange), exchange, documents=await documents_of(uploads, body), **common)


async def create_from_html(context: GatewayContext, exchange: Exchange) -> Any:
    body = exchange.body
    options = pick(body, *rpc.NewTemplateOptions.model_fields, _BREAKING)
    common = {**options, **external_id(body), **pick(exchange.arguments, *_DETECTION)}
    with place_of_html(body):
        return await context.ask(_create(exchange), exchange, html_documents=html_documents_of(body), **common)


def _create(exchange: Exchange) -> Rpc[Any, Any]:
    return rpc.TRY_CREATE if exchange.dry_run else rpc.CREATE


async def merge(context: GatewayContext, exchange: Exchange) -> Any:
    body = exchange.body
    chosen = {**pick(body, *rpc.MergeOptions.model_fields), **external_id(body)}
    return await context.ask(rpc.TRY_MERGE if exchange.dry_run else rpc.MERGE, exchange, **chosen)


async def change_documents(context: GatewayContext, exchange: Exchange) -> Any:
    body = exchange.body
    entries = body.get("documents") or []
    call = rpc.TRY_CHANGE_DOCUMENTS if exchange.dry_run else rpc.CHANGE_DOCUMENTS
    async with files.uploads(context, adopted=not exchange.dry_run) as uploads:
        texts = {i: entry["file"] for i, entry in enumerate(entries) if entry.get("file") and not entry.get("remove")}
        stored = await uploads.add({f"documents[{i}].file": text for i, text in texts.items()})
        uploaded = dict(zip(texts, stored, strict=True))
        changes = [
            {**pick(entry, *rpc.DocumentChange.model_fields), "file": uploaded.get(i)}
            for i, entry in enumerate(entries)
        ]
        return await context.ask(
            call, exchange, id=exchange.arguments["id"], documents=changes, **pick(body, "merge", _BREAKING)
        )


async def update(context: GatewayContext, exchange: Exchange) -> Any:
    body = exchange.body
    if (body.get("preferences") or {}).get(_CERTSIGN) and (await context.account_and_providers())[1].certsign is None:
        raise invalid("certsign is not configured", f"preferences.{_CERTSIGN}", "is not configured")
    changes = pick(body, *rpc.TemplateChange.model_fields, _BREAKING)
    if "fields" in body:
        changes["fields"] = fields_of(body["fields"])
    if "schema" in body:
        changes["document_schema"] = [entry for entry in body["schema"] if entry.get("conditions") is not None]
    return await context.ask(rpc.UPDATE, exchange, id=exchange.arguments["id"], **external_id(body), **changes)


async def remove(context: GatewayContext, exchange: Exchange) -> Any:
    return await context.ask(
        rpc.REMOVE, exchange, id=exchange.arguments["id"], permanently=of_submissions.permanently(exchange)
    )


async def clone(context: GatewayContext, exchange: Exchange) -> Any:
    body = exchange.body or {}
    chosen = pick(body, *rpc.TemplateOptions.model_fields)
    if body.get("documents"):
        chosen["document_names"] = [document.get("name") for document in body["documents"]]
    call = rpc.TRY_CLONE if exchange.dry_run else rpc.CLONE
    return await context.ask(call, exchange, id=exchange.arguments["id"], **external_id(body), **chosen)


async def create_submission(context: GatewayContext, exchange: Exchange) -> Any:
    created = await of_submissions.created(context, exchange, exchange.arguments["id"])
    return of_submissions.created_submitters(exchange, created)


async def submissions(context: GatewayContext, exchange: Exchange) -> Any:
    exchange.arguments["template_id"] = exchange.arguments.pop("id")
    await context.ask(rpc.GET, exchange, id=exchange.arguments["template_id"])
    return await of_submissions.search(context, exchange)
