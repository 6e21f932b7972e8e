"""The account's logo and stamp: fetched when they are set, checked, encoded anew and kept."""

from typing import Any

from contracts.blobs import BlobRef
from contracts.errors import ServiceError, invalid
from contracts.rpc import rendering
from contracts.types import Account, FieldType
from services.gateway.accounts.account_pictures import PICTURES, PREFIX
from services.gateway.api.requests import files
from services.gateway.api.requests.context import GatewayContext
from services.gateway.http.exchange import Exchange


async def pictures(
    context: GatewayContext, exchange: Exchange, changes: dict[str, Any], account: Account
) -> dict[str, Any]:
    """Fetch the pictures whose addresses are in ``changes``: None where one is cleared. An address that is set already is not
    fetched again."""
    asked = {key: changes[key] for key in PICTURES if key in changes}
    asked = {key: url for key, url in asked.items() if not url or url != getattr(account, key)}
    found: dict[str, Any] = {PICTURES[key]: None for key in asked}
    wanted = {key: url for key, url in asked.items() if url}
    if not wanted:
        return found
    async with files.uploads(context, adopted=False) as uploads:
        stored, drawn = await uploads.add(wanted), []
        for key, file in zip(wanted, stored, strict=True):
            made = await _prepared(context, exchange, key, file)
            kept = await context.in_thread(context.blobs.adopt, made, PREFIX)
            found[PICTURES[key]] = kept.model_dump(mode="json")
            drawn.append(made)
        await uploads.forget(*drawn)
    return found


async def _prepared(context: GatewayContext, exchange: Exchange, key: str, file: BlobRef) -> BlobRef:
    try:
        made = await context.ask(rendering.PREPARE_IMAGE, exchange, file=file, type=FieldType.STAMP)
    except ServiceError as error:
        if error.code != "invalid":
            raise
        raise invalid(f"{key}: {error.message}", key, error.message) from error
    return BlobRef.model_validate(made)
