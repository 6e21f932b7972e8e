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
    changed = {key: changes[key] for key in PICTURES if key in changes}
    changed = {key: url for key, url in changed.items() if not url or url != getattr(account, key)}
    results: dict[str, Any] = {PICTURES[key]: None for key in changed}
    urls = {key: url for key, url in changed.items() if url}
    if not urls:
        return results
    async with files.uploads(context, adopted=False) as uploads:
        stored, prepared = await uploads.add(urls), []
        for key, file in zip(urls, stored, strict=True):
            picture = await _prepared(context, exchange, key, file)
            adopted = await context.in_thread(context.blobs.adopt, picture, PREFIX)
            results[PICTURES[key]] = adopted.model_dump(mode="json")
            prepared.append(picture)
        await uploads.forget(*prepared)
    return results


async def _prepared(context: GatewayContext, exchange: Exchange, key: str, file: BlobRef) -> BlobRef:
    try:
        picture = await context.ask(rendering.PREPARE_IMAGE, exchange, file=file, type=FieldType.STAMP)
    except ServiceError as error:
        if error.code != "invalid":
            raise
        raise invalid(f"{key}: {error.message}", key, error.message) from error
    return BlobRef.model_validate(picture)
