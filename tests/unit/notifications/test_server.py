"""SMTP_URL names a mail server, or is refused: a mistyped setting must not send passwords in the open."""

import re

import pytest

from services.notifications.channels.server import Server


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("smtp://mail.example.com", Server("mail.example.com", 587)),
        (" smtp://mail.example.com:25 ", Server("mail.example.com", 25)),
        ("smtps://mail.example.com", Server("mail.example.com", 465, "implicit")),
        ("smtps://mail.example.com?starttls=never", Server("mail.example.com", 465, "implicit")),
        ("smtp://mail.example.com?starttls=required", Server("mail.example.com", 587, "required")),
        ("smtp://mail.example.com?starttls=required&starttls=never", Server("mail.example.com", 587, "never")),
        ("smtp://mail.example.com?verify=never", Server("mail.example.com", 587, verify=False)),
        ("smtp://ana%40x:p%3Aw@mail.example.com", Server("mail.example.com", 587, user="ana@x", password="p:w")),
        ("smtp://ana@mail.example.com", Server("mail.example.com", 587, user="ana")),
    ],
)
def test_a_server_is_what_its_url_says(url: str, server: Server) -> None:
    assert Server.from_url(url) == server


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("mail.example.com:25", "must be smtp://host:port or smtps://host:port"),
        ("http://mail.example.com", "must be smtp://host:port or smtps://host:port"),
        ("smtp://", "must be smtp://host:port or smtps://host:port"),
        ("smtp://mail.example.com?tls=1&Verify=never", "knows starttls and verify, not Verify, tls"),
        ("smtp://mail.example.com?starttls=", "starttls must be never or required"),
        ("smtp://mail.example.com?starttls=always", "starttls must be never or required"),
        ("smtp://mail.example.com?verify=", "verify must be never, or left out"),
        ("smtps://mail.example.com?verify=no", "verify must be never, or left out"),
    ],
)
def test_a_url_that_says_something_else_is_refused(url: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(reason)}$"):
        Server.from_url(url)
