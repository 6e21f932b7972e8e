"""Submissions (specification 4.3)."""

import base64
import json
from collections.abc import Sequence
from typing import Any

from contracts.errors import ServiceError, invalid
from contracts.evidence.statements import SIGNATURE
from contracts.rpc.rendering import SIGN_EVIDENCE, SignEvidence
from contracts.rpc.submissions import api as rpc
from contracts.rpc.submissions import erasures
from contracts.types import Account
from services.gateway.accounts import providers
from services.gateway.accounts.providers import Providers
from services.gateway.api.requests import bulk, files
from services.gateway.api.requests.bodies import external_id, filters, overrides, pick
from services.gateway.api.requests.context import GatewayContext, actor
from services.gateway.api.requests.intake import documents_of, html_documents_of, place_of_html
from services.gateway.evidence import archive
from services.gateway.evidence.archive import Archive
from services.gateway.formats import parse_moment
from services.gateway.http.exchange import Download, Exchange

_SOMEBODY = "somebody@example.com"
"""An address in the place of those that were refused, so that a dry run finds what else is wrong."""


async def search(context: GatewayContext, exchange: Exchange) -> Any:
    return await context.ask(rpc.LIST, exchange, **filters(exchange))


async def get(context: GatewayContext, exchange: Exchange) -> Any:
    return await context.ask(rpc.GET, exchange, **exchange.arguments)


async def create(context: GatewayContext, exchange: Exchange) -> Any:
    return created_submitters(exchange, await created(context, exchange, exchange.body["template_id"]))


async def init(context: GatewayContext, exchange: Exchange) -> Any:
    return await created(context, exchange, exchange.body["template_id"])


async def emails(context: GatewayContext, exchange: Exchange) -> Any:
    """One submission for each address, on the template's first role."""
    return created_submitters(exchange, await _by_email(context, exchange, exchange.body["template_id"]))


async def created(context: GatewayContext, exchange: Exchange, template_id: int) -> Any:
    """The submission that the body describes, made from this template; or what it would be. Of several submissions only their
    submitters are told."""
    mode = bulk.mode_of(exchange.body)
    if mode == "emails":
        return await _by_email(context, exchange, template_id)
    if mode == "submissions":
        return await _one_by_one(context, exchange, template_id)
    call = rpc.TRY_CREATE if exchange.dry_run else rpc.CREATE
    return await context.ask(call, exchange, template_id=template_id, **await draft_of(context, exchange))


async def _by_email(context: GatewayContext, exchange: Exchange, template_id: int) -> Any:
    try:
        addresses = bulk.addresses(exchange.body)
    except ServiceError as error:
        exchange.refuse(error)
        addresses = [_SOMEBODY]
    common = await draft_of(context, exchange, submitters=[])
    drafts = [{**common, "submitters": [{"email": email}]} for email in addresses]
    return await _create_many(context, exchange, template_id, drafts)


async def _one_by_one(context: GatewayContext, exchange: Exchange, template_id: int) -> Any:
    bodies, own_keys = bulk.entries(exchange.body, template_id)
    account, configured = await context.account_and_providers()
    drafts = []
    for index, body in enumerate(bodies):
        path = f"submissions[{index}]." if "dutystamp" in own_keys[index] else ""
        provider_wishes = wishes(context, configured, exchange, body, path)
        drafts.append({"account": account, **provider_wishes, **draft(body, account)})
    return await _create_many(context, exchange, template_id, drafts, own=own_keys)


async def _create_many(
    context: GatewayContext, exchange: Exchange, template_id: int, drafts: Sequence[dict[str, Any]], **more: Any
) -> Any:
    """All of them, or what they would be. One alone is answered as such."""
    common = {"template_id": template_id, "request_id": "", "actor": actor(exchange)}
    call = rpc.TRY_MANY if exchange.dry_run else rpc.CREATE_MANY
    answer = await context.ask(
        call, exchange, submissions=[{**common, **submission_draft} for submission_draft in drafts], **more
    )
    if exchange.dry_run:
        return answer
    created = answer["data"]
    if len(created) == 1:
        return created[0]
    return {"submitters": [submitter for submission in created for submitter in submission["submitters"]]}


async def create_from_pdf(context: GatewayContext, exchange: Exchange) -> Any:
    body = exchange.body
    async with files.uploads(context, adopted=not exchange.dry_run) as uploads:
        return await one_off(context, exchange, documents=await documents_of(uploads, body))


async def create_from_docx(context: GatewayContext, exchange: Exchange) -> Any:
    """Answers with the submitters (specification 4.3)."""
    body = exchange.body
    async with files.uploads(context, adopted=not exchange.dry_run) as uploads:
        submission = await one_off(context, exchange, documents=await documents_of(uploads, body), docx=True)
    return created_submitters(exchange, submission)


async def create_from_html(context: GatewayContext, exchange: Exchange) -> Any:
    if (exchange.body.get("dutystamp") or {}).get("enabled"):
        reason = "cannot be true: duty stamps are for PDF and DOCX documents"
        exchange.refuse(invalid(f"dutystamp.enabled {reason}", "dutystamp.enabled", reason))
        exchange.body = {**exchange.body, "dutystamp": None}
    with place_of_html(exchange.body):
        return await one_off(context, exchange, html_documents=html_documents_of(exchange.body))


async def one_off(context: GatewayContext, exchange: Exchange, **intake: Any) -> Any:
    """The one-off submission that the body describes, made from these documents; or what it would be."""
    options = pick(exchange.body, "flatten", "remove_tags", "merge_documents", "template_ids")
    call = rpc.TRY_ONE_OFF if exchange.dry_run else rpc.CREATE_ONE_OFF
    return await context.ask(call, exchange, **intake, **options, **await draft_of(context, exchange))


async def draft_of(context: GatewayContext, exchange: Exchange, **instead: Any) -> dict[str, Any]:
    """Return the parameters that all ways of creating a submission have in common, with ``instead`` in place of what the body
    has."""
    body = {**exchange.body, **instead}
    account, configured = await context.account_and_providers()
    return {"account": account, **wishes(context, configured, exchange, body), **draft(body, account)}


def wishes(
    context: GatewayContext, configured: Providers, exchange: Exchange, body: dict[str, Any], path: str = ""
) -> dict[str, Any]:
    """Return what a new submission asks of the account's providers. ``path`` is where in the request its ``dutystamp`` is."""
    enabled = (body.get("certsign") or {}).get("enabled")
    stamps = body.get("dutystamp") or {}
    try:
        order = providers.dutystamp_order(configured.dutystamp, stamps, context.link_secret, path)
    except ServiceError as error:
        exchange.refuse(error)
        order = None
    return {
        "certsign": providers.certsign_wish(configured.certsign, enabled, context.link_secret),
        "dutystamp": order,
    }


def draft(body: dict[str, Any], account: Account) -> dict[str, Any]:
    """Return what the body says of a new submission itself. A time without a zone is of the account's."""
    more = pick(body, *rpc.SubmissionOptions.model_fields)
    if order := body.get("order") or body.get("submitters_order"):
        more["order"] = order
    if body.get("expire_at"):
        more["expire_at"] = parse_moment(body["expire_at"], account.time_zone)
    return {"submitters": [_submitter(entry) for entry in body["submitters"]], **more}


def created_submitters(exchange: Exchange, submission: dict[str, Any]) -> Any:
    """The answer of the calls that answer with submitters; a dry run is answered whole."""
    return submission if exchange.dry_run else submission["submitters"]


async def update(context: GatewayContext, exchange: Exchange) -> Any:
    changes = pick(exchange.body, "name", "archived", "expire_at", "legal_hold")
    if "archived" not in changes and "archived_at" in exchange.body:
        changes["archived"] = exchange.body["archived_at"]
    if changes.get("expire_at"):
        changes["expire_at"] = parse_moment(changes["expire_at"], (await context.account()).time_zone)
    return await context.ask(rpc.UPDATE, exchange, id=exchange.arguments["id"], **changes)


async def remove(context: GatewayContext, exchange: Exchange) -> Any:
    return await context.ask(rpc.REMOVE, exchange, id=exchange.arguments["id"], permanently=permanently(exchange))


async def events(context: GatewayContext, exchange: Exchange) -> Any:
    return await context.ask(rpc.LIST_EVENTS, exchange, **exchange.arguments)


async def documents(context: GatewayContext, exchange: Exchange) -> Any:
    return await context.ask(rpc.DOCUMENTS, exchange, **exchange.arguments)


async def evidence(context: GatewayContext, exchange: Exchange) -> Download:
    """A ZIP; its files are read from the store while it is sent."""
    page = await _evidence(context, exchange, after=0)
    lines = [*page.lines]
    while len(lines) < page.line_count:
        lines += (await _evidence(context, exchange, after=len(lines))).lines
    entries, manifest = archive.members(page, lines, context.blobs)
    sealed = [document.sealed for document in page.documents]
    order = SignEvidence(manifest=manifest, audit_trail=page.audit_trail, documents=sealed)
    signed = await context.bus.call_async(SIGN_EVIDENCE, order)
    zip_file = await context.in_thread(Archive.of, [*entries, *archive.signed_members(signed, context.blobs)])
    return Download("application/zip", f"evidence-{page.id}.zip", zip_file.size, zip_file.chunks())


async def _evidence(context: GatewayContext, exchange: Exchange, *, after: int) -> rpc.Evidence:
    request = rpc.GetEvidence(actor=actor(exchange), id=exchange.arguments["id"], after=after)
    page: rpc.Evidence = await context.bus.call_async(rpc.EVIDENCE, request)
    return page


async def erasure(context: GatewayContext, exchange: Exchange) -> Any:
    return await context.ask(erasures.ERASURE, exchange, **exchange.arguments)


async def erasure_receipt(context: GatewayContext, exchange: Exchange) -> Any:
    """The receipt or its signature, byte for byte: what is canonical JSON is written again as it was."""
    number = exchange.arguments["id"]
    request = erasures.GetErasure(actor=actor(exchange), id=number)
    signed: erasures.SignedErasure = await context.bus.call_async(erasures.ERASURE_RECEIPT, request)
    if exchange.arguments.get("format") != "p7s":
        return json.loads(signed.text)
    data = base64.b64decode(signed.signature)
    return Download(SIGNATURE, f"erasure-{number}.p7s", len(data), iter([data]))


async def seal(context: GatewayContext, exchange: Exchange) -> Any:
    body = exchange.body or {}
    accepted = pick(body, "accept_differences")
    waived = (body.get("certsign") or {}).get("enabled") is False
    call = rpc.RETRY_SEAL
    return await context.ask(call, exchange, id=exchange.arguments["id"], waive_certsign=waived, **accepted)


async def send_again(context: GatewayContext, exchange: Exchange) -> Any:
    chosen = pick(exchange.body or {}, "sign_again")
    return await context.ask(rpc.SEND_CORRECTED, exchange, id=exchange.arguments["id"], **chosen)


async def certsign(context: GatewayContext, exchange: Exchange) -> Any:
    settings = (await _providers_for(context, exchange)).certsign
    if settings is None:
        raise _not_configured("certsign")
    order = providers.certsign_order(settings, context.link_secret)
    return await context.ask(rpc.RETRY_CERTSIGN, exchange, id=exchange.arguments["id"], order=order)


async def dutystamp(context: GatewayContext, exchange: Exchange) -> Any:
    settings = (await _providers_for(context, exchange)).dutystamp
    if settings is None:
        raise _not_configured("dutystamp")
    sealed, provider = providers.sealed_for_sending(settings, context.link_secret), providers.provider_name(settings)
    call = rpc.RETRY_DUTYSTAMP
    return await context.ask(call, exchange, id=exchange.arguments["id"], settings=sealed, provider=provider)


async def _providers_for(context: GatewayContext, exchange: Exchange) -> Providers:
    """The account's providers. Of a submission that the caller cannot see, not even that there are none is said."""
    await context.ask(rpc.GET, exchange, id=exchange.arguments["id"])
    return (await context.account_and_providers())[1]


def permanently(exchange: Exchange) -> bool:
    """A DELETE says it in the query or in the body."""
    return bool(exchange.arguments.get("permanently") or (exchange.body or {}).get("permanently"))


def _not_configured(feature: str) -> Exception:
    return invalid(f"{feature} is not configured", feature, "is not configured")


def _submitter(entry: dict[str, Any]) -> dict[str, Any]:
    return {**pick(entry, *rpc.NewSubmitter.model_fields), **external_id(entry), **overrides(entry)}
