"""The reference as a gateway serves it: to anybody, each page as HTML and as Markdown, once made and asked for again."""

import re
from pathlib import PurePosixPath

import pytest

from services.gateway.reference.files import addresses
from tests.support.services.gateway import RunningGateway, gateway

__all__ = ["gateway"]

KINDS = {"": "html", ".md": "markdown", ".css": "css", ".txt": "plain"}


def test_every_address_is_served_without_a_key(gateway: RunningGateway) -> None:
    for address in addresses():
        answer = gateway.call("GET", address, key=None)
        assert answer.status_code == 200, address
        kind = KINDS[PurePosixPath(address).suffix]
        assert answer.headers["Content-Type"] == f"text/{kind}; charset=utf-8", address
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; style-src 'self';")
        assert "script-src" not in policy
        assert "unsafe" not in policy
        assert answer.headers["Cache-Control"] == "max-age=3600"
        head = gateway.call("HEAD", address, key=None)
        assert (head.status_code, head.content) == (200, b"")
        assert gateway.call("POST", address, key=None).status_code == 405


def test_what_a_reader_has_is_not_sent_again_and_what_is_sent_is_compressed(gateway: RunningGateway) -> None:
    for address in ("/reference", "/reference/submissions.md", "/llms.txt"):
        plain = gateway.call("GET", address, key=None, headers={"Accept-Encoding": "identity"})
        tag = plain.headers["ETag"]
        again = gateway.call("GET", address, key=None, headers={"If-None-Match": tag})
        assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", tag)
        other = gateway.call("GET", address, key=None, headers={"If-None-Match": 'W/"another"'})
        assert (other.status_code, other.content) == (200, plain.content)
        packed = gateway.call("GET", address, key=None, headers={"Accept-Encoding": "gzip"})
        assert packed.headers["Content-Encoding"] == "gzip"
        assert packed.content == plain.content
        assert int(packed.headers["Content-Length"]) < len(plain.content) / 1.5
        for answer in (again, packed):
            assert "accept-encoding" in answer.headers["Vary"].lower()


@pytest.mark.parametrize("path", ["/reference/nothing", "/reference/nothing.md", "/reference/users/1", "/llms.txt/x"])
def test_what_is_not_there_is_a_404(gateway: RunningGateway, path: str) -> None:
    assert gateway.call("GET", path).status_code == 404


def test_llms_txt_leads_to_pages_of_this_installation(gateway: RunningGateway) -> None:
    listed = re.findall(r"^- \[[^\]]+\]\((\S+)\):", gateway.call("GET", "/llms.txt", key=None).text, re.MULTILINE)
    assert len(listed) > 10
    base_url = (
        gateway.call("GET", "/reference.md", key=None)
        .text.partition("The address of the API is `")[2]
        .partition("/api`")[0]
    )
    for address in listed:
        assert address.startswith(base_url)
        assert gateway.call("GET", address.removeprefix(base_url), key=None).status_code == 200


def test_the_reader_for_trying_and_the_reference_lead_to_each_other(gateway: RunningGateway) -> None:
    assert 'href="reference"' in gateway.call("GET", "/docs", key=None).text
    assert 'href="docs"' in gateway.call("GET", "/reference", key=None).text
    assert 'href="../docs"' in gateway.call("GET", "/reference/users", key=None).text
