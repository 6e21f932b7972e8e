"""A RabbitMQ cluster of three nodes on loopback, and a load balancer in front of them that knows which of them take connections.

The nodes are set up as RabbitMQ's own operator for Kubernetes does it: they find each other when they start for the first
time, they pause when they are the minority, and the last one to join imports the definitions, so that every quorum queue has
a replica on each node.
"""

import asyncio
import contextlib
import itertools
import re
import secrets
import socket
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from deploy.rabbitmq import USER, PrivateBroker, free_port
from tests.support.servers.tcp_proxy import TcpProxy

SIZE = 3

_QUEUES = """lists:flatten([io_lib:format("~s=~s/~s=~b;", [element(4, amqqueue:get_name(Queue)), Leader, Type, Replicas]) ||
    Queue <- rabbit_amqqueue:list(<<"VHOST">>),
    {Leader, Type, Replicas} <- [case amqqueue:get_type(Queue) of
        rabbit_quorum_queue ->
            {_, Node} = amqqueue:get_pid(Queue),
            Nodes = maps:get(nodes, amqqueue:get_type_state(Queue)),
            {Node, quorum, if is_map(Nodes) -> map_size(Nodes); true -> length(Nodes) end};
        _ -> {node(amqqueue:get_pid(Queue)), classic, 1}
    end]]).
"""


@dataclass(frozen=True)
class Queue:
    """``leader`` is the node that takes its messages; of a classic queue, which has one replica, where it is."""

    leader: str
    kind: str
    replicas: int


class Node(PrivateBroker):
    """One of the nodes."""

    seldom = ""  # it has to notice soon that another one is gone

    def __init__(
        self, folder: Path, number: int, password: str, definitions: Sequence[Mapping[str, Any]], epmd_port: int
    ) -> None:
        super().__init__(folder / f"node-{number}", password, definitions)
        self._number = number
        self._epmd_port = epmd_port

    @property
    def node_name(self) -> str:
        return _node_name(self._number)

    @property
    def up(self) -> bool:
        """Whether it was started, and not stopped or killed since."""
        return self._process is not None

    def stop_name_server(self) -> None:
        """End Erlang's name server, which all nodes share. It refuses until it has noticed that none of them runs."""
        with contextlib.suppress(ConnectionRefusedError):
            while True:
                socket.create_connection(("127.0.0.1", self._epmd_port)).close()
                self._stop_epmd()
                time.sleep(0.1)

    def _further_configuration(self) -> list[str]:
        return [
            "cluster_formation.peer_discovery_backend = classic_config",
            *(  # those that are there when this one starts for the first time; for others it would wait
                f"cluster_formation.classic_config.nodes.{number} = {_node_name(number)}"
                for number in range(1, self._number + 1)
            ),
            f"cluster_formation.target_cluster_size_hint = {SIZE}",
            "cluster_partition_handling = pause_minority",
            "queue_leader_locator = balanced",
        ]


class BrokerCluster:
    """``amqp_url`` and ``url_of`` are addresses of the load balancer, which stays where it is whatever is killed."""

    def __init__(self, folder: Path, password: str, definitions: Sequence[Mapping[str, Any]]) -> None:
        self._password = password
        epmd_port, cookie = free_port(), secrets.token_hex(20)
        self.nodes = [Node(folder.resolve(), number, password, definitions, epmd_port) for number in range(1, SIZE + 1)]
        for node in self.nodes:
            node.folder.mkdir(parents=True)
            (node.folder / ".erlang.cookie").write_text(cookie)
            (node.folder / ".erlang.cookie").chmod(0o400)
        self._front = _LoadBalancer(self.nodes)

    def start(self) -> None:
        """Start one node after the other and wait until each takes connections; BrokerFailed otherwise. Started all at once, the
        first that is ready would import the definitions while others cannot have replicas yet, and their part would fail."""
        for node in self.nodes:
            node.start()

    def stop(self) -> None:
        """Kill what runs of it, with Erlang's name server: its data is of no use afterwards."""
        for node in self.nodes:
            if node.up:
                node.kill()
        self.nodes[0].stop_name_server()
        self._front.close()

    @property
    def amqp_url(self) -> str:
        return self.url_of(USER, self._password)

    def url_of(self, user: str, password: str) -> str:
        """The AMQP URL of a user."""
        return f"amqp://{user}:{quote(password, safe='')}@127.0.0.1:{self._front.port}/%2F"

    def queues(self, vhost: str = "/") -> dict[str, Queue]:
        """The queues by name, as a node that is up sees them."""
        node = next(node for node in self.nodes if node.up)
        found = re.findall(r'([^";]+)=([^"/;]+)/(\w+)=(\d+);', node.evaluate(_QUEUES.replace("VHOST", vhost)))
        return {name: Queue(leader, kind, int(replicas)) for name, leader, kind, replicas in found}

    def most_leading(self, prefix: str, vhost: str = "/") -> Node:
        """The node that is up and leads most of the queues of this prefix."""
        leading = Counter(queue.leader for name, queue in self.queues(vhost).items() if name.startswith(prefix))
        return max((node for node in self.nodes if node.up), key=lambda node: leading[node.node_name])


class _LoadBalancer(TcpProxy):
    """Gives each connection to the next node that takes it."""

    def __init__(self, nodes: Sequence[PrivateBroker]) -> None:
        self._nodes = nodes
        self._turns = itertools.count()
        super().__init__(0)

    async def _reach(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        first = next(self._turns)
        for step in range(len(self._nodes)):
            node = self._nodes[(first + step) % len(self._nodes)]
            try:
                return await asyncio.open_connection("127.0.0.1", node.port)
            except OSError:
                continue
        raise ConnectionRefusedError("no node takes connections")


def _node_name(number: int) -> str:
    return f"node-{number}@localhost"
