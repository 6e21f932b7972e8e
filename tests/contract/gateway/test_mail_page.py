"""The page of mails that were not sent, on the gateway's process as it runs: who says which name gets to see it."""

import socket
from collections.abc import Iterator

import pytest

from deploy.rabbitmq import PrivateBroker
from tests.support.services.gateway import RunningGateway, answering, gateway

__all__ = ["gateway"]


@pytest.fixture(scope="module", autouse=True)
def mails(broker: PrivateBroker) -> Iterator[None]:
    with answering(broker.amqp_url, "notifications") as services:
        none = {"data": [], "pagination": {"count": 0}}
        services.answers = {"notifications.list": none, "notifications.list_phone_messages": none}
        yield


def status(running: RunningGateway, *headers: str) -> int:
    with socket.create_connection(("127.0.0.1", running.port), timeout=60) as connection:
        head = "\r\n".join(["GET /dev/mail HTTP/1.1", *headers, "Connection: close", "", ""])
        connection.sendall(head.encode())
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    return int(answer.split()[1])


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "[::1]"])
def test_the_machine_s_own_names(gateway: RunningGateway, name: str) -> None:
    assert status(gateway, f"Host: {name}") == status(gateway, f"Host: {name}:{gateway.port}") == 200


@pytest.mark.parametrize(
    "headers",
    [
        [],
        ["Host: rebound.example.com"],
        ["Host: localhost.example.com"],
        ["Host: 192.168.0.2"],
        ["Host: localhost", "Host: rebound.example.com"],
        ["Host: localhost", "X-Forwarded-For: 127.0.0.1"],
        ["Host: localhost", "Forwarded: for=127.0.0.1"],
    ],
    ids=", ".join,
)
def test_any_other_name_and_what_comes_through_a_proxy(gateway: RunningGateway, headers: list[str]) -> None:
    assert status(gateway, *headers) == 403
