"""Everything about one person (docs/privacy.md): each service is asked for what it holds, and the answers are put together."""

import asyncio
from typing import Any

from contracts.errors import invalid
from contracts.formats.email_address import NOT_AN_EMAIL, is_email
from contracts.rpc import notifications, webhooks
from contracts.rpc.submissions import people as rpc
from contracts.types import Pagination
from services.gateway.accounts import queries
from services.gateway.api.requests.context import GatewayContext, actor
from services.gateway.http.exchange import Exchange
from services.gateway.prepared import people
from services.gateway.prepared.sending import Prepared

LARGEST_ID = 2**63 - 1
MOST_SUBMISSIONS = 100
"""On a page. What is asked for above that is cut, as of other lists."""


async def get(context: GatewayContext, exchange: Exchange) -> Any:
    """A page, by submission; what is about none is on the first one."""
    email, after = _address(exchange), exchange.arguments.get("after") or 0
    ids = await _submissions(context, exchange, email, min(after, LARGEST_ID))
    person = await context.ask(rpc.PERSON, exchange, email=email, ids=ids)
    submissions = person["data"]
    parties = [party["submitter"]["id"] for submission in submissions for party in submission["parties"]]
    messages, deliveries, user, unsent = await asyncio.gather(
        context.ask(
            notifications.RECIPIENT,
            exchange,
            email=email,
            submission_ids=ids,
            submitter_ids=parties,
            others=not after,
            test=actor(exchange).test,
        ),
        context.ask(webhooks.TOLD_OF_PERSON, exchange, email=email, submission_ids=ids),
        context.in_thread(context.database.read, queries.user_with, email),
        _unsent(context, exchange, email, first=not after),
    )
    shown = {submission["id"] for submission in submissions}
    return {
        "email": email,
        "user": None if after else user,
        "data": [
            {**submission, "messages": _of(messages, submission["id"]), "told": _of(deliveries, submission["id"])}
            for submission in submissions
        ],
        "messages": [message for message in messages["data"] if message["submission_id"] not in shown],
        **unsent,
        "pagination": Pagination.of(ids).model_dump(mode="json"),
    }


async def remove_unsent(context: GatewayContext, exchange: Exchange) -> Any:
    """Drop what was not sent: no submission tells it, so none has to be deleted for it."""
    email = _address(exchange)
    test = actor(exchange).test
    of_batches = await context.ask(rpc.REMOVE_UNSENT, exchange, email=email)
    prepared = await context.in_thread(lambda: people.remove(_prepared(context), email, test=test))
    return {"email": email, "batch_rows": of_batches["rows"], "prepared": prepared, "batches": of_batches["batches"]}


async def _unsent(context: GatewayContext, exchange: Exchange, email: str, *, first: bool) -> dict[str, Any]:
    """Return what names the person and was not sent; on the first page only."""
    if not first:
        return {"batch_rows": [], "prepared": []}
    test = actor(exchange).test
    of_batches, prepared = await asyncio.gather(
        context.ask(rpc.UNSENT_OF_PERSON, exchange, email=email),
        context.in_thread(lambda: people.unsent(_prepared(context), email, test=test)),
    )
    return {"batch_rows": of_batches["data"], "prepared": prepared}


def _prepared(context: GatewayContext) -> Prepared:
    return Prepared(context.database, context.keys, context.bus.call)


def _address(exchange: Exchange) -> str:
    email: str = exchange.arguments["email"].strip()
    if not is_email(email):
        raise invalid(f"email {NOT_AN_EMAIL}", "email", NOT_AN_EMAIL)
    return email


async def _submissions(context: GatewayContext, exchange: Exchange, email: str, after: int) -> list[int]:
    """The next submissions that name the person, or about which they were written to."""
    limit = min(exchange.arguments.get("limit") or 10, MOST_SUBMISSIONS)
    chosen = {"email": email, "after": after, "limit": limit}
    answers = await asyncio.gather(
        context.ask(rpc.FIND_PERSON, exchange, **chosen),
        context.ask(notifications.FIND_RECIPIENT, exchange, **chosen, test=actor(exchange).test),
    )
    return sorted({number for answer in answers for number in answer["ids"]})[:limit]


def _of(answer: dict[str, Any], submission_id: int) -> list[dict[str, Any]]:
    return [entry for entry in answer["data"] if entry["submission_id"] == submission_id]
