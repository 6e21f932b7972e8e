"""Batches: a file of rows, each of which becomes a submission (docs/bulk.md)."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import orjson

from contracts.errors import ServiceError, invalid
from contracts.rpc import templates
from contracts.rpc.submissions import api as submissions_rpc
from contracts.rpc.submissions import batches as rpc
from contracts.rpc.submissions.batches import BatchRowDraft, RowProblem
from contracts.types import Account, Template
from services.gateway.accounts.providers import Providers
from services.gateway.api.requests import files, repeats
from services.gateway.api.requests.batches import uploads
from services.gateway.api.requests.batches.columns import Roles
from services.gateway.api.requests.batches.results import results_csv
from services.gateway.api.requests.batches.rows import MOST_TOLD, Row, Rows, RowSchemas, read_rows
from services.gateway.api.requests.batches.uploads import Upload
from services.gateway.api.requests.context import GatewayContext, actor
from services.gateway.api.submissions import draft, wishes
from services.gateway.http.exchange import Download, Exchange
from services.gateway.http.openapi import specification
from services.gateway.http.openapi.schemas import BodySchema
from services.gateway.settings import Settings

_PORTION, _PORTION_BYTES = 200, 2_000_000
"""Rows that are planned in one call, and how large they are together."""

_TRIED, _TRIED_WITH_VARIABLES, _TRIED_SUBMITTERS = 100, 10, 1_000
"""Rows that a dry run tries as a dry run of ``POST /submissions`` does: what a call can take."""


@dataclass
class _Batch:
    """What was sent, as far as it was understood. ``drafts`` are the rows that the service is asked about."""

    settings: rpc.BatchSettings
    rate: int | None
    rows: Rows
    drafts: list[BatchRowDraft] = field(default_factory=list)


async def create(context: GatewayContext, exchange: Exchange) -> Any:
    assert exchange.request is not None
    upload = await uploads.received(exchange.request, context.settings.max_batch_size)
    if exchange.dry_run:
        return await _dry_run(context, exchange, upload)
    file = hashlib.sha256(upload.rows).hexdigest()
    content = [dict(exchange.arguments), upload.settings, upload.kind, file]
    caller = repeats.of_caller(exchange)
    return await repeats.once(context, exchange, caller, content, lambda: _created(context, exchange, upload))


async def search(context: GatewayContext, exchange: Exchange) -> Any:
    return await context.ask(rpc.LIST, exchange, **exchange.arguments)


async def get(context: GatewayContext, exchange: Exchange) -> Any:
    return await context.ask(rpc.GET, exchange, **exchange.arguments)


async def rows(context: GatewayContext, exchange: Exchange) -> Any:
    return await context.ask(rpc.LIST_ROWS, exchange, **exchange.arguments)


async def results(context: GatewayContext, exchange: Exchange) -> Download:
    number, rows = exchange.arguments["id"], []
    after: int | None = None
    while True:
        page = await context.ask(rpc.LIST_ROWS, exchange, id=number, include="submitters", limit=100, after=after)
        rows += page["data"]
        if (after := page["pagination"]["next"]) is None:
            break
    data = await context.in_thread(results_csv, rows)
    return Download("text/csv; charset=utf-8", f"batch-{number}.csv", len(data), iter([data]))


async def cancel(context: GatewayContext, exchange: Exchange) -> Any:
    return await context.ask(rpc.CANCEL, exchange, **exchange.arguments)


async def retry(context: GatewayContext, exchange: Exchange) -> Any:
    return await context.ask(rpc.RETRY, exchange, **exchange.arguments)


async def _created(context: GatewayContext, exchange: Exchange, upload: Upload) -> Any:
    batch, configured = await _understood(context, exchange, upload)
    await _check(context, exchange, batch, configured)
    batch.rows.refuse()
    data = await context.in_thread(_written, batch.drafts)
    async with files.uploads(context, adopted=True) as stored:
        return await context.ask(
            rpc.CREATE,
            exchange,
            settings=batch.settings,
            rows=await stored.add_bytes(data, "application/x-ndjson"),
            rate=batch.rate,
            warnings=batch.rows.warnings[:MOST_TOLD],
        )


async def _dry_run(context: GatewayContext, exchange: Exchange, upload: Upload) -> dict[str, Any]:
    """Tell what would become of the file, with all that is wrong with it. Its first rows are tried as a dry run of
    ``POST /submissions`` tries them."""
    batch, configured = await _understood(context, exchange, upload)
    await _check(context, exchange, batch, configured)
    count = await _try(context, exchange, batch)
    problems = batch.rows.first_problems()
    return {
        "dry_run": True,
        "accepted": not problems,
        "rows": len(batch.rows.read),
        "tried": count,
        "problems": problems,
        "warnings": [warning.model_dump() for warning in batch.rows.warnings[:MOST_TOLD]],
    }


async def _understood(context: GatewayContext, exchange: Exchange, upload: Upload) -> tuple[_Batch, Providers]:
    """Read the settings and the rows. Raises ServiceError for settings that do not hold, and for a file that cannot be read."""
    of_settings, schemas = _schemas(context.settings)
    settings = _settings(exchange, upload, of_settings)
    template_id = settings["template_id"]
    template = Template.model_validate(await context.ask(templates.GET, exchange, id=template_id))
    account, configured = await context.account_and_providers()
    common = draft({**settings, "submitters": []}, account)
    del common["submitters"]
    common |= _wishes(context, exchange, settings, configured, "settings.")
    read = await context.in_thread(read_rows, upload.rows, upload.kind, Roles.of(template), template_id, schemas)
    of_all = rpc.BatchSettings(template_id=template_id, account=account, submission=_plain(common))
    return _Batch(of_all, settings.get("rate"), read), configured


async def _check(context: GatewayContext, exchange: Exchange, batch: _Batch, configured: Providers) -> None:
    """Have all rows planned, and note what is wrong with them, and what is ignored."""
    await context.in_thread(_write_drafts, context, exchange, batch, configured)
    by_number = {row.number: row for row in batch.rows.read}
    for portion in _portions(batch.drafts):
        answer = await context.ask(rpc.CHECK_ROWS, exchange, settings=batch.settings, rows=portion, rate=batch.rate)
        for kind, noted in (("problems", batch.rows.problems), ("warnings", batch.rows.warnings)):
            noted += [by_number[fault["row"]].problem(fault["field"], fault["reason"]) for fault in answer[kind]]


async def _try(context: GatewayContext, exchange: Exchange, batch: _Batch) -> int:
    """Try the first rows as they would be made: characters without a font, pictures to be fetched, places of stamps. Returns
    how many."""
    chosen = _first(batch)
    if not chosen:
        return 0
    settings = batch.settings
    whole = {**settings.submission, "account": settings.account, "template_id": settings.template_id}
    requests = [{**whole, **row_draft.submission, "request_id": "", "actor": actor(exchange)} for row_draft in chosen]
    keys_of_rows = [list(row_draft.submission) for row_draft in chosen]
    answer = await context.ask(submissions_rpc.TRY_MANY, exchange, submissions=requests, own=keys_of_rows)
    by_number = {row.number: row for row in batch.rows.read}
    for problem in answer["problems"]:
        start, _, place = problem["field"].partition("].")
        if place and start.startswith("submissions["):
            number = chosen[int(start.removeprefix("submissions["))].row
            batch.rows.problems.append(by_number[number].problem(place, problem["reason"]))
        else:
            field_ = f"settings.{problem['field']}"
            batch.rows.problems.append(RowProblem(row=0, field=field_, reason=problem["reason"]))
    return len(chosen)


def _first(batch: _Batch) -> list[BatchRowDraft]:
    """Choose the rows that a dry run tries whole, of those with which nothing is wrong."""
    numbers = {row.number for row in batch.rows.fine()}
    without_fault = [row_draft for row_draft in batch.drafts if row_draft.row in numbers]
    varied = "variables" in batch.settings.submission or any(
        "variables" in row_draft.submission for row_draft in without_fault
    )
    chosen: list[BatchRowDraft] = []
    submitters = 0
    for row_draft in without_fault[: _TRIED_WITH_VARIABLES if varied else _TRIED]:
        submitters += len(row_draft.submission["submitters"])
        if submitters > _TRIED_SUBMITTERS:
            break
        chosen.append(row_draft)
    return chosen


def _settings(exchange: Exchange, upload: Upload, schema: BodySchema) -> dict[str, Any]:
    """Return what holds for all rows. Raises ServiceError; ``template_id`` and ``rate`` may be in the query instead."""
    settings = dict(upload.settings)
    for name in ("template_id", "rate"):
        if (value := exchange.arguments.get(name)) is not None:
            if name in settings:
                raise invalid(
                    f"{name} must not be in both the query and settings",
                    name,
                    "must not be in both the query and settings",
                )
            settings[name] = value
    if "template_id" not in settings:
        raise invalid("template_id is required", "template_id", "is required")
    exchange.ignored = [f"settings.{place}" for place in schema.ignored(settings)]
    with uploads.of_settings():
        return schema.accept(settings)


def _write_drafts(context: GatewayContext, exchange: Exchange, batch: _Batch, configured: Providers) -> None:
    for row in batch.rows.fine():
        try:
            batch.drafts.append(_draft(context, exchange, row, batch.settings.account, configured))
        except ServiceError as refused:
            batch.rows.fault(row, refused)


def _draft(
    context: GatewayContext, exchange: Exchange, row: Row, account: Account, configured: Providers
) -> BatchRowDraft:
    of_row = draft(row.body, account)
    if "certsign" in row.body or "dutystamp" in row.body:
        wishes_of_row = _wishes(context, exchange, row.body, configured, "")
        of_row |= {name: wish for name, wish in wishes_of_row.items() if name in row.body}
    return BatchRowDraft(row=row.number, external_id=row.external_id, submission=_plain(of_row))


def _wishes(
    context: GatewayContext, exchange: Exchange, body: dict[str, Any], configured: Providers, path: str
) -> dict[str, Any]:
    """As ``submissions.wishes``; in a dry run refusals are raised, too: they are told with those of the other rows."""
    wishes_of_row = wishes(context, configured, exchange, body, path)
    if (refused := exchange.refused) is not None:
        exchange.refused = None
        raise refused
    return wishes_of_row


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values as JSON has them."""
    plain: dict[str, Any] = BatchRowDraft(row=0, submission=values).model_dump(mode="json")["submission"]
    return plain


def _portions(drafts: Sequence[BatchRowDraft]) -> Iterator[list[BatchRowDraft]]:
    portion: list[BatchRowDraft] = []
    size = 0
    for row_draft in drafts:
        length = len(orjson.dumps(row_draft.submission))
        if portion and (len(portion) == _PORTION or size + length > _PORTION_BYTES):
            yield portion
            portion, size = [], 0
        portion.append(row_draft)
        size += length
    if portion:
        yield portion


def _written(drafts: Sequence[BatchRowDraft]) -> bytes:
    return b"".join(orjson.dumps(row_draft.model_dump(mode="json")) + b"\n" for row_draft in drafts)


@lru_cache(maxsize=4)
def _schemas(settings: Settings) -> tuple[BodySchema, RowSchemas]:
    """Return the schema of the settings, and those of rows."""
    of_row = specification.schema("BatchRowInput", settings)
    of_submitter = specification.schema("NewSubmitter", settings)
    return BodySchema(specification.schema("BatchSettings", settings)), RowSchemas(
        BodySchema(of_row), of_row, of_submitter
    )
