"""A view of the signing form that another page than ours reports (peer facts 1.1); the slug is the authorisation."""

from typing import Any

from contracts.rpc.submissions.signing import form as rpc
from services.gateway.api.forms.attachments import visitor
from services.gateway.api.requests import repeats
from services.gateway.api.requests.context import GatewayContext
from services.gateway.http.exchange import Exchange


async def create(context: GatewayContext, exchange: Exchange) -> Any:
    assert exchange.request is not None
    visit = {"slug": exchange.body["submitter_slug"].strip(), **visitor(context, exchange.request)}

    async def view() -> Any:
        await context.ask(rpc.VIEW_FORM, exchange, **visit)
        return {}

    return await repeats.once(context, exchange, repeats.of_slug(visit["slug"]), [], view)
