"""The gateway, put together: Connexion for the API, Flask for the pages, and what both need."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import orjson

from contracts.errors import ServiceError
from contracts.rpc.health import Pong
from contracts.rpc.operating import Standing
from contracts.runtime import garbage, process
from contracts.runtime.bus.client import RpcClient
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.http.outbound import Outbound
from contracts.runtime.monitoring import liveness, observe
from contracts.runtime.monitoring.lateness import IDLE_TICK_SECONDS, TICK_SECONDS, Lateness
from contracts.runtime.operations import operating
from services.gateway.accounts import commands, operators, queries
from services.gateway.accounts.api_keys import keys
from services.gateway.accounts.auth import Authenticator, security_map
from services.gateway.accounts.direct import DirectReads
from services.gateway.agents.endpoint import Endpoint
from services.gateway.agents.operations import Operations
from services.gateway.agents.sending import Sending, pace
from services.gateway.api.public import Docs, Health, Metrics, OpenApi, Readiness, Reference
from services.gateway.api.requests.context import GatewayContext
from services.gateway.api.requests.dispatch import Dispatch
from services.gateway.http import errors
from services.gateway.http.answers import deprecation
from services.gateway.http.client_address import networks
from services.gateway.http.connexion_import import (
    ConnexionMiddleware,
    ExceptionMiddleware,
    RequestValidationMiddleware,
    Resolver,
    ResponseValidationMiddleware,
    RoutingMiddleware,
    SecurityMiddleware,
)
from services.gateway.http.edge import API, Application, Edge
from services.gateway.http.openapi import specification, version_31
from services.gateway.http.openapi.specification import Operation
from services.gateway.http.openapi.validation import NoUriParser, validator_map
from services.gateway.http.server import Server, server
from services.gateway.http.wsgi import Pages
from services.gateway.identity.provider import IdentityProvider
from services.gateway.pages.answering.context import Holders
from services.gateway.pages.app import create_pages, serves
from services.gateway.prepared.sending import Prepared
from services.gateway.reference import guides
from services.gateway.reference.files import address_of, addresses
from services.gateway.rights import Scope
from services.gateway.settings import Settings

log = observe.logger(__name__)

_TICKS_AFTER_A_REQUEST = 100
"""So often, after a request began, it is measured how late the event loop is; those that begin meanwhile have it go on."""


def serve(settings: Settings) -> int:
    """Serve HTTP until SIGTERM, then finish what is under way."""
    application, context = build_app(settings)
    _ensure_first_admin(context)
    health = liveness.start(settings.health_host, settings.health_port, lambda: _problems(context))
    http = server(application, settings)
    http.on_shutdown = context.streams.end
    log.info("gateway.started", host=settings.host, port=settings.port)
    garbage.keep_all()
    # Each call goes from the event loop's thread to the bus's and back. With Python's 5 ms one waits so long for the other on a
    # busy machine: twice the requests per second with this, measured side by side.
    sys.setswitchinterval(0.0005)
    with asyncio.Runner(loop_factory=http.config.get_loop_factory()) as runner:
        runner.run(_run(http))
    if health is not None:
        health.close()
    context.close()
    log.info("gateway.stopped")
    return 0


def build_app(settings: Settings) -> tuple[Edge, GatewayContext]:
    """The ASGI application and what its handlers work with. Opens the connection to the bus."""
    threads = ThreadPoolExecutor(settings.work_threads, thread_name_prefix="work")
    database = Database(settings.database_url, pool_size=settings.database_pool_size)
    context = GatewayContext(
        settings=settings,
        database=database,
        direct=DirectReads(database) if database.sqlite else None,
        blobs=BlobStore.from_url(settings.blob_url),
        bus=RpcClient(settings.amqp_url, name="gateway", loads=orjson.loads),
        keys=keys.KeyRing(settings.key_encryption_secret.get_secret_value()),
        outbound=Outbound.configured(settings),
        threads=threads,
        fetching=ThreadPoolExecutor(settings.fetch_threads, thread_name_prefix="fetch"),
    )
    authenticator = Authenticator(database, context.keys, threads, context.direct)
    prepared = Prepared(database, context.keys, context.bus.call)
    pages = create_pages(
        settings,
        context.bus,
        context.blobs,
        authenticator.reads_files,
        phone_otp_webhook=context.phone_otp_webhook,
        account=context.account_now,
        certsign_wish=context.certsign_wish,
        trust_anchors=context.trust_anchors,
        user=lambda user_id: database.read(queries.active_actor, user_id),
        user_with=lambda email: database.read(queries.active_actor_with, email),
        identity_provider=_identity_provider(settings, context.outbound),
        holders=Holders(prepared, authenticator.caller_now, authenticator.caller_again),
        operators=operators.Operators(database, context.keys),
        standing=partial(_standing, database),
    )
    interface, interface_31 = (
        OpenApi(context, partial(_published, published, settings))
        for published in (specification.published, version_31.published)
    )
    api, methods, operations = _api(context, authenticator)
    work = Sending(context, Operations(api, operations), prepared, pace())
    endpoints: dict[str, Application] = {
        "/healthz": Health(),
        "/readyz": Readiness(context),
        "/openapi.json": interface,
        "/api/openapi.json": interface,
        "/openapi-3.1.json": interface_31,
        "/api/openapi-3.1.json": interface_31,
        "/docs": Docs(),
        **dict.fromkeys(addresses(), Reference(settings)),
    }
    if not settings.health_port:
        endpoints["/metrics"] = Metrics()
    edge = Edge(
        settings,
        endpoints=endpoints,
        pages=Pages(pages, settings.page_threads),
        is_page=serves,
        api=api,
        methods=methods,
        agents=Endpoint(work, authenticator, networks(settings.trusted_proxies)),
        routes={operation.id: API + operation.path for operation in operations},
        deprecated=deprecation.headers_of(operations, lambda operation: settings.base_url + address_of(operation)),
    )
    return edge, context


def _published(document: Callable[[Settings], dict[str, Any]], settings: Settings) -> dict[str, Any]:
    """A document of the interface as it is served: with links to the guides."""
    linked: dict[str, Any] = guides.linked(document(settings), settings.base_url)
    return linked


def _standing(database: Database) -> Standing:
    problems = process.problems_of(database, "gateway")
    return operating.standing("gateway", database, Pong(ready=not problems, problems=problems))


def _identity_provider(settings: Settings, outbound: Outbound) -> IdentityProvider | None:
    provider_settings = settings.identity_provider
    if provider_settings is None:
        return None
    return IdentityProvider(provider_settings, outbound, settings.link_secret.get_secret_value(), settings.base_url)


def _api(
    context: GatewayContext, authenticator: Authenticator
) -> tuple[ConnexionMiddleware, Callable[[str], list[str]], list[Operation]]:
    """Connexion's layers around our dispatch: routing, key and role, request and response validation, errors; which methods
    a path has; and the operations."""
    document = specification.document(context.settings)
    operations = list(specification.operations(document))
    api = ConnexionMiddleware(
        Dispatch(context, [operation.id for operation in operations], frozenset(_administering(operations))),
        import_name=__name__,
        middlewares=[
            ExceptionMiddleware,
            RoutingMiddleware,
            SecurityMiddleware,
            RequestValidationMiddleware,
            ResponseValidationMiddleware,
        ],
    )
    api.add_api(
        document,
        base_path=API,
        resolver=Resolver(lambda _operation: _unused),
        validate_responses=True,
        validator_map=validator_map(context.threads),
        uri_parser_class=NoUriParser,
        security_map=security_map(
            authenticator,
            {operation.id: operation.roles for operation in operations},
            {operation.id: operation.scopes for operation in operations},
            {operation.id: operation.mode for operation in operations},
            frozenset(operation.id for operation in operations if operation.by_folder),
            networks(context.settings.trusted_proxies),
        ),
    )
    methods = specification.methods_of(operations, API)
    errors.add_handlers(api, methods)
    return api, methods, operations


def _administering(operations: Iterable[specification.Operation]) -> Iterator[str]:
    """The operations that change something, and need the scope of admins."""
    for operation in operations:
        if operation.method != "get" and operation.scopes == {Scope.ADMIN}:
            yield operation.id


def _unused() -> None:
    """Connexion wants a function for each operation; ``Dispatch`` calls ours."""


async def _run(http: Server) -> None:
    async with _measured(http):
        await http.serve()


@asynccontextmanager
async def _measured(http: Server) -> AsyncIterator[None]:
    """Measures how late the event loop is while it is in use."""
    lateness = Lateness()
    watched = liveness.Watched("the event loop")
    requested = asyncio.Event()

    async def watch() -> None:
        while True:
            watched.beat()
            asked_at = time.monotonic()
            try:
                await asyncio.wait_for(requested.wait(), IDLE_TICK_SECONDS)
            except TimeoutError:
                lateness.slept(asked_at, IDLE_TICK_SECONDS)
                continue
            requested.clear()
            for _ in range(_TICKS_AFTER_A_REQUEST):
                asked_at = time.monotonic()
                await asyncio.sleep(TICK_SECONDS)
                lateness.slept(asked_at)

    http.call_on_request(requested.set)
    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()
        watched.finish()


def _ensure_first_admin(context: GatewayContext) -> None:
    settings = context.settings
    if settings.admin_email and settings.admin_api_key:
        api_key = settings.admin_api_key.get_secret_value()
        ensure = partial(commands.ensure_first_admin, other_hashes=context.keys.hashes(api_key)[1:])
        password = partial(keys.hash_password, None)
        if context.database.write(ensure, settings.admin_email, context.keys.seal(api_key), password, now()):
            log.info("gateway.first_admin")
    elif not context.database.read(queries.has_admin):
        log.warning("gateway.no_admin", hint="set ADMIN_EMAIL and ADMIN_API_KEY once")


def _problems(context: GatewayContext) -> list[str]:
    problems: list[str] = []
    try:
        context.database.ping()
    except ServiceError as error:
        problems.append(error.message)
    if not context.bus.connected:
        problems.append("not connected to the message broker")
    return problems


def application(settings: Settings | None = None) -> Any:
    """For another ASGI server than ours: ``uvicorn --factory services.gateway.app:application``."""
    return build_app(settings or Settings.from_environment())[0]
