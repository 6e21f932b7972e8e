"""The address that the audit trail names cannot be made up by whoever sends a header."""

import pytest

from services.gateway.http.client_address import client_address, is_local, networks

TRUSTED = networks("10.0.0.0/8, ::1/128")


@pytest.mark.parametrize(
    ("peer", "forwarded_for", "expected"),
    [
        ("203.0.113.9", "", "203.0.113.9"),
        ("203.0.113.9", "1.2.3.4", "203.0.113.9"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "203.0.113.9", "203.0.113.9"),
        ("10.0.0.1", "1.2.3.4, 203.0.113.9", "203.0.113.9"),
        ("10.0.0.1", "203.0.113.9, 10.0.0.2", "203.0.113.9"),
        ("10.0.0.1", "203.0.113.9:4711", "203.0.113.9"),
        ("::1", "[2001:db8::7]:4711", "2001:db8::7"),
        ("10.0.0.1", "unknown", "10.0.0.1"),
        ("10.0.0.1", "<script>, 10.0.0.2", "10.0.0.2"),
        ("::ffff:10.0.0.1", "203.0.113.9", "203.0.113.9"),
        (None, "203.0.113.9", None),
        ("", "203.0.113.9", None),
    ],
)
def test_the_nearest_address_that_is_no_trusted_proxy(peer: str, forwarded_for: str, expected: str) -> None:
    assert client_address(peer, forwarded_for, TRUSTED) == expected


def test_no_proxy_is_trusted_unless_said() -> None:
    assert client_address("10.0.0.1", "203.0.113.9", networks("")) == "10.0.0.1"


def test_a_setting_that_is_no_network_stops_the_start() -> None:
    with pytest.raises(ValueError, match="not-a-network"):
        networks("10.0.0.0/8, not-a-network")


@pytest.mark.parametrize(
    ("address", "local"), [("127.0.0.1", True), ("192.168.1.7", True), ("8.8.8.8", False), (None, False)]
)
def test_local_addresses(address: str | None, local: bool) -> None:
    assert is_local(address) is local
