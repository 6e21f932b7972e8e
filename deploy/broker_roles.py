"""What RabbitMQ is to know where each service has a user of its own: exchanges, queues, and what each user may do.

    python -m deploy.broker_roles record
    python -m deploy.broker_roles print [--vhost NAME] [--retry-seconds 1,5,30] [--cluster]

``record`` writes what the code says into ``definitions.json`` in ``deploy/kubernetes/components/broker-and-database``, which a
broker imports whenever it starts, and into ``contracts/rpc/callers.json`` who calls whom; a test compares. ``print`` writes the
definitions for another virtual host, or another EVENT_RETRY_SECONDS, to standard output, as ``rabbitmqctl import_definitions``
takes them; ``--cluster`` has the queues of calls replicated, too, so that a cluster of several nodes can lose one
(``deploy/RUNBOOK.md``, "A broker of several nodes"). Neither holds users: those have passwords (``deploy/make_secrets.py``).

A service's user may declare nothing but queues of one connection, and write to no exchange by which a message reaches another
service's queue, except that of the calls.
"""

import argparse
import ast
import importlib
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import ModuleType
from typing import Any

from contracts import events
from contracts.rpc import Rpc, operating
from contracts.rpc import events as told
from contracts.rpc.callers import CALLERS as RECORDED
from contracts.rpc.callers import broker_user
from contracts.rpc.health import PING
from contracts.runtime.bus import declare, topology
from contracts.runtime.bus.marks import calls_of, subscriptions_of
from contracts.runtime.settings import ServiceSettings
from deploy.make_secrets import OPERATOR
from deploy.services import DEFINITIONS, ROOT, SERVICES

CALLERS = ROOT / "contracts/rpc/callers.json"
UUID = "[0-9a-f-]{36}"
NOTHING = "^$"
LONGEST = 1024
"""RabbitMQ 4.3 takes no longer pattern, and does not start with one in its definitions."""
OF_ALL = (PING, operating.LOOK_AROUND, operating.ACT_ON_WORK, operating.READ_PARKED, operating.ACT_ON_PARKED)
"""Calls of every service that the gateway makes to all of them; of others, a service asks those whose events it takes."""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m deploy.broker_roles")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("record")
    printed = commands.add_parser("print")
    printed.add_argument("--vhost", default="/")
    printed.add_argument("--retry-seconds", default=default_ladder())
    printed.add_argument("--cluster", action="store_true", help="queues of calls are quorum queues")
    chosen = parser.parse_args(arguments)
    if chosen.command == "record":
        CALLERS.write_text(as_text(callers()))
        DEFINITIONS.write_text(as_text(definitions(asking=callers())))
    else:
        print(as_text(definitions(chosen.vhost, chosen.retry_seconds, chosen.cluster)), end="")
    return 0


def as_text(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def default_ladder() -> str:
    return str(ServiceSettings.model_fields["event_retry_seconds"].default)


@cache
def callers() -> dict[str, list[str]]:
    """The services that ask for each call that is served, by its routing key."""
    calls = {service: set(calls_in_code(service)) | set(_calls_of_walks(service)) for service in SERVICES}
    for service, own_calls in calls.items():
        own_calls |= {PING[other].service + ".ping" for other in {call.partition(".")[0] for call in own_calls}}
        own_calls -= {call for call in own_calls if call.startswith(f"{service}.")}
    served = [f"{service}.{rpc.method}" for service in SERVICES for rpc in _served(service)]
    return {
        call: sorted(service for service, own_calls in calls.items() if call in own_calls) for call in sorted(served)
    }


def definitions(
    vhost: str = "/",
    retry_seconds: str | None = None,
    cluster: bool = False,
    asking: Mapping[str, Sequence[str]] = RECORDED,
) -> dict[str, Any]:
    """The definitions, as RabbitMQ imports them, without users. ``cluster``: for one of several nodes. ``asking``: who asks for
    each call; what is recorded, by which services answer, and a suite need not read all code to start."""
    ladder = tuple(float(step) for step in (retry_seconds or default_ladder()).split(","))
    plans = [plan for service in SERVICES for plan in _plans(service, ladder)]
    if cluster:
        plans = [topology.replicated(plan) for plan in plans]
    everything = {"user": OPERATOR, "vhost": vhost, "configure": ".*", "write": ".*", "read": ".*"}
    permissions = [
        {"user": broker_user(service), "vhost": vhost, **_permissions(service, asking)} for service in SERVICES
    ]
    return {
        "vhosts": [{"name": vhost}],
        "permissions": [everything, *permissions],
        "topic_permissions": [
            {"user": broker_user(service), "vhost": vhost, "exchange": exchange, "write": write, "read": read}
            for service in SERVICES
            for exchange, (write, read) in _topics(service, asking).items()
        ],
        "exchanges": [
            {
                "name": name,
                "vhost": vhost,
                "type": "topic",
                "durable": True,
                "auto_delete": False,
                "internal": False,
                "arguments": {},
            }
            for name in sorted(_exchanges(plans))
        ],
        "queues": [
            {"name": plan.name, "vhost": vhost, "durable": True, "auto_delete": False, "arguments": plan.arguments}
            for plan in plans
        ],
        "bindings": [
            {
                "source": exchange,
                "vhost": vhost,
                "destination": plan.name,
                "destination_type": "queue",
                "routing_key": key,
                "arguments": {},
            }
            for plan in plans
            for exchange, key in plan.bindings
        ],
    }


def _permissions(service: str, asking: Mapping[str, Sequence[str]]) -> dict[str, str]:
    own_queues = f"({'|'.join(topology.EXCLUSIVE)})\\.{broker_user(service)}\\.{UUID}"
    exchanges = [topology.RPC_EXCHANGE, topology.HINT_EXCHANGE, topology.own_exchange(service)]
    # Where it reads nothing, RabbitMQ 4.3 does not even tell it whether the queue is there.
    queues = [f"evt-.+--{service}(\\.parked)?", f"{service}\\.retry-.+s"] if _subscriptions(service) else []
    if _served(service):
        queues.append(topology.rpc_queue(service).name)
    to_events = [topology.event_exchange(service)] if _stated(service) else []
    # Who asks a service looks first whether anybody serves its queue, which RabbitMQ 4.3 tells only who has some right to it.
    # The least is to write: to bind it, here with keys that are the user's own. Publishing goes by exchanges alone.
    queues_asked = [topology.rpc_queue(owner).name for owner in SERVICES if _calls_to(owner, service, asking)]
    return {
        "configure": _one_of(own_queues),
        "write": _one_of(*map(re.escape, exchanges + to_events), own_queues, *queues_asked),
        "read": _one_of(*map(re.escape, exchanges), *queues, own_queues),
    }


def _topics(service: str, asking: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, str]]:
    """Routing keys that the service may publish with, and bind its queues with, by topic exchange. The broker lets pass what
    it is told nothing about."""
    user = broker_user(service)
    calls = [pattern for owner in SERVICES if (pattern := _calls_to(owner, service, asking))]
    replies = [f"reply\\.[^.]+\\.{UUID}"] if _served(service) else []
    own_keys = f"(echo|check)\\.{user}\\.{UUID}"
    moved = [f"(retry\\.[^-]+s\\.)?evt-.+--{service}(\\.parked)?"] if _subscriptions(service) else []
    topics = {
        topology.RPC_EXCHANGE: (_one_of(*calls, *replies), _one_of(f"reply\\.{user}\\.{UUID}")),
        topology.HINT_EXCHANGE: (_one_of(service), _one_of(service)),
        topology.own_exchange(service): (_one_of(*moved, own_keys), _one_of(own_keys)),
    }
    if stated := _stated(service):
        topics[topology.event_exchange(service)] = (_one_of(*map(re.escape, stated)), NOTHING)
    return topics


def _calls_to(owner: str, service: str, asking: Mapping[str, Sequence[str]]) -> str | None:
    """Return a pattern for the routing keys of what the service asks the owner for: those, or all but the others where that is
    shorter. The owner answers nobody (``rpc.callers``) who asks for what it does not know."""
    methods_asked: list[str] = []
    other_methods: list[str] = []
    for call, services in asking.items():
        if call.partition(".")[0] == owner:
            (methods_asked if service in services else other_methods).append(re.escape(call.removeprefix(f"{owner}.")))
    if not methods_asked:
        return None
    named, all_but = (
        f"({'|'.join(methods_asked)})",
        f"(?!({'|'.join(other_methods)})$)[^.]+" if other_methods else "[^.]+",
    )
    return f"{owner}\\.{min(named, all_but, key=len)}"


def _one_of(*patterns: str) -> str:
    return f"^({'|'.join(patterns)})$" if patterns else NOTHING


def _exchanges(plans: list[topology.QueuePlan]) -> set[str]:
    bound = {exchange for plan in plans for exchange, _ in plan.bindings}
    own_exchanges = {topology.own_exchange(service) for service in SERVICES}
    stated = {topology.event_exchange(event.source) for event in _events()}
    return {topology.RPC_EXCHANGE, topology.HINT_EXCHANGE} | bound | own_exchanges | stated


def _plans(service: str, ladder: tuple[float, ...]) -> list[topology.QueuePlan]:
    service_class = declare.service_class(service)
    return [] if service_class is None else declare.plans(service_class, service, ladder)


def _served(service: str) -> list[Rpc[Any, Any]]:
    service_class = declare.service_class(service)
    return [] if service_class is None else list(calls_of(service_class).values())


def _subscriptions(service: str) -> list[events.Event]:
    service_class = declare.service_class(service)
    return [] if service_class is None else list(subscriptions_of(service_class).values())


def _stated(service: str) -> list[str]:
    """The kinds of events that the service states."""
    return [event.type for event in _events() if event.source == service]


def _events() -> list[events.Event]:
    """All of them; tests register others."""
    return [event for event in vars(events).values() if isinstance(event, events.Event)]


def _calls_of_walks(service: str) -> Iterator[str]:
    """Yield what the background process asks the owners of the events that the service takes (``runtime.catching_up``)."""
    for event in _subscriptions(service):
        for questions in (told.EVENTS_TOLD, told.EVENTS_BY_ID):
            if event.source in questions:
                yield f"{event.source}.{questions[event.source].method}"


def calls_in_code(service: str) -> Iterator[str]:
    """The calls that the service's code names, its own among them, by their routing keys."""
    sources = {event.source for event in _subscriptions(service)}
    for file in (ROOT / "services" / service).rglob("*.py"):
        for named in _named(ast.parse(file.read_text())):
            if isinstance(named, Rpc):
                yield f"{named.service}.{named.method}"
            elif isinstance(named, dict):
                owners = SERVICES if named in OF_ALL else sources
                for owner, rpc in named.items():
                    if isinstance(rpc, Rpc) and owner in owners and not (named in OF_ALL and service in named):
                        yield f"{owner}.{rpc.method}"


def _named(tree: ast.Module) -> Iterator[object]:
    """Yield what of ``contracts.rpc`` a module's code names."""
    imported: dict[str, object] = {}
    attributes: list[ast.Attribute] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("contracts"):
            for alias in node.names:
                imported[alias.asname or alias.name] = _imported(str(node.module), alias.name)
        elif isinstance(node, ast.Attribute):
            attributes.append(node)
    yield from (named for named in imported.values() if not isinstance(named, ModuleType))
    for attribute in attributes:
        if (named := _of(attribute, imported)) is not None:
            yield named


def _of(node: ast.expr, imported: Mapping[str, object]) -> object:
    """Return what ``a.b.c`` stands for, where ``a`` was imported; else None."""
    if isinstance(node, ast.Name):
        return imported.get(node.id)
    if isinstance(node, ast.Attribute):
        return getattr(_of(node.value, imported), node.attr, None)
    return None


def _imported(module: str, name: str) -> object:
    attribute = getattr(importlib.import_module(module), name, None)
    return importlib.import_module(f"{module}.{name}") if attribute is None else attribute


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
