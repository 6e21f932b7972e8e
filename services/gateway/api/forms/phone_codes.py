"""One-time codes to phones (specification 4.10, peer facts 6.5): no API key, the submitter's slug is the authorisation."""

import hashlib
from typing import Any

from contracts.rpc.submissions.signing import codes as rpc
from services.gateway.api.forms.attachments import visitor
from services.gateway.api.requests import repeats
from services.gateway.api.requests.context import GatewayContext
from services.gateway.http.exchange import Exchange


async def send(context: GatewayContext, exchange: Exchange) -> Any:
    assert exchange.request is not None
    slug, phone = exchange.body["submitter_slug"].strip(), exchange.body.get("phone")
    visit = {"slug": slug, **visitor(context, exchange.request)}

    async def ask() -> Any:
        webhook = await context.in_thread(context.phone_otp_webhook)
        more = {"phone": phone} if phone else {}
        await context.ask(rpc.SEND_CODE, exchange, **visit, **more, phone_otp_webhook=webhook)
        return {"status": "ok"}

    content = [hashlib.sha256((phone or "").encode()).hexdigest()]
    return await repeats.once(context, exchange, repeats.of_slug(slug), content, ask)
