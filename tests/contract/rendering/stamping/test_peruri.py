"""The adapter to Peruri before a server that says what real ones were seen to say, and the issuer that stands in for it."""

import hashlib
import json
import subprocess
import sys
import threading
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import requests

from contracts.providers import DutystampSettings
from deploy.providers.stamp_issuer import PASSWORD, USER, StampIssuer, picture
from services.rendering.providers import breaker
from services.rendering.providers.duty_stamps.dutystamp import Box, KnownSerial, Serial
from services.rendering.providers.duty_stamps.peruri import Peruri
from services.rendering.providers.failures import ProviderFailed
from tests.support.files.pdf_files import A4, document, line
from tests.support.rendering.providers.stamp_orders import HERE, issuer, stamp_keys

__all__ = ["issuer", "stamp_keys"]

PNG = b64encode(picture("SN1")).decode()
BOX = Box(1, 100, 100, 172, 172)


class Server:
    """Answers each path with what it is told, the login always well."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.asked: list[tuple[str, dict[str, Any]]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer({})

            def do_POST(self) -> None:
                self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def _answer(self, body: dict[str, Any]) -> None:
                path = self.path.partition("?")[0]
                server.asked.append((self.path, body))
                answer = server.answers.get(path, (404, "nothing here"))
                if path == "/api/users/login":
                    answer = server.answers.get(path, {"statusCode": "00", "token": "secret-token"})
                status, content = answer if isinstance(answer, tuple) else (200, answer)
                data = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                """Nobody reads it."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    breaker.breaker_of(made.url).succeeded()
    yield made
    made.server.shutdown()
    made.server.server_close()


def adapter(server: Server | StampIssuer, folder: Path | None = None, **more: Any) -> Peruri:
    settings = {
        "backend_url": server.url,
        "stamp_url": f"{server.url}/",
        "adapter_url": server.url,
        "adapter_folder": str(folder) if folder else None,
        "user": USER,
        "password": PASSWORD,
        **more,
    }
    return Peruri(DutystampSettings.model_validate(settings), HERE, folders=folder, file_seconds=0.3)


@pytest.mark.parametrize(
    "result",
    [
        {"sn": "SN1", "image": PNG},
        {"sn": "SN1", "Image": f"data:image/png;base64,{PNG}"},
        {"sn": "SN1", "filenameQR": "a.png"},
    ],
)
def test_a_purchase_in_each_of_its_spellings(server: Server, result: dict[str, Any]) -> None:
    server.answers = {
        "/chanel/stampv2": {"statusCode": "00", "result": result},
        "/snqr/qrimage": {"statusCode": "00", "result": {"image": PNG}},
    }
    bought = adapter(server, identity={"namejidentitas": "KTP", "noidentitas": "1"}).reserve("our-name.pdf", "4b")
    assert (bought.number, bought.picture) == ("SN1", picture("SN1"))
    _, sent = next(call for call in server.asked if call[0] == "/chanel/stampv2")
    assert (sent["namafile"], sent["namadoc"], sent["noidentitas"]) == ("our-name.pdf", "4b", "1")
    assert (sent["isUpload"], sent["snOnly"]) == (False, False)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ((200, b"<html>"), "no_answer"),
        ((502, b""), "no_answer"),
        ({"statusCode": "00", "result": {}}, "no_answer"),
        ({"statusCode": "00", "result": None}, "no_answer"),
        ({"statusCode": "00", "result": {"sn": "SN1", "image": "no picture"}}, "no_answer"),
        ({"statusCode": "09", "message": "saldo tidak cukup"}, "no_stamps_left"),
        ({"statusCode": "09", "message": "nilaidoc wajib"}, "refused"),
        ({"statusCode": "01", "message": "token"}, "token_refused"),
        ((400, b"bad"), "refused"),
        ((429, b""), "busy"),
    ],
)
def test_whether_a_purchase_came_about_is_known_or_said_not_to_be(server: Server, answer: Any, code: str) -> None:
    """Whatever is not surely a refusal may have cost money."""
    server.answers = {"/chanel/stampv2": answer}
    with pytest.raises(ProviderFailed) as failed:
        adapter(server).reserve("our-name.pdf", "4b")
    assert failed.value.code == code
    assert "secret-token" not in failed.value.message
    assert PASSWORD not in failed.value.message


def test_a_login_that_fails_buys_nothing(server: Server) -> None:
    server.answers = {"/api/users/login": (500, b"")}
    with pytest.raises(ProviderFailed) as failed:
        adapter(server).reserve("our-name.pdf", "4b")
    assert failed.value.code == "unavailable"
    server.answers = {"/api/users/login": {"statusCode": "03", "message": f"{PASSWORD} is wrong"}}
    with pytest.raises(ProviderFailed) as failed:
        adapter(server).reserve("our-name.pdf", "4b")
    assert (failed.value.code, failed.value.retryable) == ("login_refused", False)
    assert failed.value.message == "The provider does not accept the login: *** is wrong"


def test_nobody_there_is_not_the_same_as_no_answer(server: Server) -> None:
    server.server.shutdown()
    server.server.server_close()
    with pytest.raises(ProviderFailed) as failed:
        adapter(server).reserve("our-name.pdf", "4b")
    assert failed.value.code == "unreachable"


@pytest.mark.parametrize(
    "answer",
    [
        {"statusCode": "00", "result": {"total": 2, "data": [{"sn": "SN1", "status": "STAMP", "file": "a.pdf"}]}},
        {"statusCode": "00", "result": {"data": [{"status": "STAMP"}]}},
        {"statusCode": "00", "result": {}},
        {"statusCode": "00"},
        (500, b""),
        (200, b"[]"),
    ],
)
def test_a_list_that_is_not_whole_says_nothing_about_what_is_not_in_it(server: Server, answer: Any) -> None:
    server.answers = {
        "/api/chanel/stamp/ext": {"statusCode": "00", "result": {"total": 0, "data": []}},
        f"/chanel/sale/stamp/ext/{USER.replace('@', '%40')}": answer,
    }
    with pytest.raises(ProviderFailed) as failed:
        adapter(server).find("our-name.pdf")
    assert failed.value.retryable


def test_a_stamp_is_found_by_the_very_name_in_either_list(server: Server) -> None:
    def entry(number: str, file: str, status: str = "NOTSTAMP") -> dict[str, str]:
        return {"serialnumber": number, "status": status, "file": file}

    def answer(*entries: dict[str, str]) -> dict[str, Any]:
        return {"statusCode": "00", "result": {"total": len(entries), "data": list(entries)}}

    every = f"/chanel/sale/stamp/ext/{USER.replace('@', '%40')}"
    server.answers = {
        "/api/chanel/stamp/ext": answer(entry("SN0", "our-name.pdf.pdf")),
        every: answer(entry("SN0", "our-name.pdf.pdf")),
        "/snqr/qrimage": {"statusCode": "00", "result": PNG},
    }
    assert adapter(server).find("our-name.pdf") is None
    server.answers[every] = answer(entry("SN2", "other.pdf"), entry("SN1", "our-name.pdf", "STAMP"))
    found = adapter(server).find("our-name.pdf")
    assert found is not None
    assert (found.number, found.picture) == ("SN1", picture("SN1"))
    assert adapter(server).listed() == [
        KnownSerial("SN2", "other.pdf", used=False),
        KnownSerial("SN1", "our-name.pdf", used=True),
    ]


@pytest.mark.parametrize(
    ("code", "ours", "retryable"),
    [
        ("70", "revocation", True),
        ("83", "file_refused", False),
        ("92", "adapter_fault", True),
        ("97", "not_signed", True),
        ("55", "refused", False),
    ],
)
def test_codes_of_the_adapter_in_words(server: Server, tmp_path: Path, code: str, ours: str, retryable: bool) -> None:
    path = "/adapter/pdfsigning/rest/docSigningZ"
    server.answers = {path: {"status": "False", "errorCode": code, "errorMessage": "whatever"}}
    with pytest.raises(ProviderFailed) as failed:
        adapter(server, tmp_path).place(Serial("SN1", picture("SN1")), b"%PDF", BOX, again=False)
    assert (failed.value.code, failed.value.retryable) == (ours, retryable)
    assert failed.value.message.startswith("Stamp SN1: ")
    assert f"(code {code}: whatever)" in failed.value.message


def test_the_adapter_is_told_its_own_paths_and_where_the_stamp_goes(server: Server, tmp_path: Path) -> None:
    path = "/adapter/pdfsigning/rest/docSigningZ"
    server.answers = {path: {"status": "True", "errorCode": "00", "errorMessage": "-"}}
    stamping = adapter(server, tmp_path, adapter_mount="/sharefolder/")
    for again in (False, True):
        with pytest.raises(ProviderFailed) as failed:
            stamping.place(Serial("../../SN 1", picture("SN1")), b"%PDF", BOX, again=again)
        assert failed.value.code == "no_answer"
    name = hashlib.sha256(b"../../SN 1").hexdigest()
    first, second = (body for url, body in server.asked if url == path)
    assert (first["src"], first["dest"]) == (f"/sharefolder/UNSIGNED/{name}.pdf", f"/sharefolder/SIGNED/{name}.pdf")
    assert first["spesimenPath"] == f"/sharefolder/STAMP/{name}.png"
    assert (first["refToken"], first["certificatelevel"]) == ("../../SN 1", "NOT_CERTIFIED")
    assert [first[key] for key in ("visSignaturePage", "visLLX", "visLLY", "visURX", "visURY")] == [
        1,
        100,
        100,
        172,
        172,
    ]
    assert "retryFlag" not in first
    assert second["retryFlag"] == "1"
    assert (tmp_path / "UNSIGNED" / f"{name}.pdf").read_bytes() == b"%PDF"


def test_a_file_that_is_there_already_is_taken_only_when_it_was_asked_for_before(
    server: Server, tmp_path: Path
) -> None:
    source, target = b"%PDF-1.7 sealed", tmp_path / "SIGNED" / "SN1.pdf"
    target.parent.mkdir()
    stamping, serial = adapter(server, tmp_path), Serial("SN1", picture("SN1"))
    target.write_bytes(source + b" stamp %%EOF\n")
    assert stamping.place(serial, source, BOX, again=True) == source + b" stamp %%EOF\n"
    assert not target.exists()
    assert server.asked == []
    target.write_bytes(source + b" half of a stam")
    with pytest.raises(ProviderFailed):
        stamping.place(serial, source, BOX, again=True)
    target.write_bytes(source + b" old %%EOF\n")
    with pytest.raises(ProviderFailed):
        stamping.place(serial, source, BOX, again=False)
    assert not target.exists()


# --- the issuer


def test_the_house_says_what_it_sells(issuer: StampIssuer) -> None:
    offer = adapter(issuer).describe()
    assert offer.categories == {"2": "Surat berharga", "3": "Surat pernyataan", "4b": "Faktur"}
    assert offer.binds == "serial"
    assert offer.price is not None
    assert offer.price.amount == 10_000
    assert adapter(issuer).balance() == 1000


def test_the_house_refuses_a_serial_for_another_file_and_a_second_time_without_a_flag(
    issuer: StampIssuer, tmp_path: Path
) -> None:
    own = adapter(issuer, issuer.shared)
    serial = own.reserve("one.pdf", "4b")
    first, other = document(line("one"), media=A4), document(line("two"), media=A4)
    assert own.place(serial, first, BOX, again=False).startswith(first)
    with pytest.raises(ProviderFailed, match="used already"):
        own.place(serial, first, BOX, again=False)
    with pytest.raises(ProviderFailed, match="another one than the serial number was used for"):
        own.place(serial, other, BOX, again=True)
    assert own.place(serial, first, BOX, again=True).startswith(first)
    assert own.is_used(serial.number)
    with pytest.raises(ProviderFailed, match="only an unused serial"):
        own.reassign(serial, "two.pdf", "4b")


def test_the_house_goes_on_with_its_books(issuer: StampIssuer, tmp_path: Path) -> None:
    bought = adapter(issuer).reserve("one.pdf", "4b")
    issuer.stop()
    again = StampIssuer(tmp_path / "issuer", key_type="ec-p256").start()
    try:
        assert again.root == issuer.root
        own = adapter(again)
        assert own.listed() == [KnownSerial(bought.number, "one.pdf", used=False)]
        assert own.reserve("two.pdf", "4b").number == "CS00001002"
        assert own.balance() == 998
    finally:
        again.stop()


def test_the_house_shows_its_books_and_is_told_to_fail(issuer: StampIssuer) -> None:
    bought = adapter(issuer).reserve("<one>.pdf", "4b")
    page = requests.get(issuer.url, timeout=120)
    assert "text/html" in page.headers["Content-Type"]
    assert bought.number in page.text
    assert "&lt;one&gt;.pdf" in page.text
    told = requests.post(
        f"{issuer.url}/control", json={"faults": {"error_500": {"times": 1}}, "quota": 3}, timeout=120
    ).json()
    assert told["faults"]["error_500"]["times"] == 1
    with pytest.raises(ProviderFailed):
        adapter(issuer).balance()
    assert adapter(issuer).balance() == 3
    refused = requests.post(f"{issuer.url}/control", json={"faults": {"fire": {}}}, timeout=120).json()
    assert "fire: there is no such fault" in refused["error"]
    elsewhere = requests.post(f"{issuer.url}/control", json={}, headers={"Host": "attacker.example"}, timeout=120)
    assert elsewhere.status_code == 421
    assert requests.post(issuer.url, data=b"[]", timeout=120).status_code == 400


def test_the_house_is_started_by_hand(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "deploy.providers.stamp_issuer", "--folder", str(tmp_path), "--port", "0"]
    with subprocess.Popen([*command, "--faults", "error_500:1"], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert "dutystamp.json" in process.stdout.readline()
            written = tmp_path / "dutystamp.json"
            assert written.stat().st_mode & 0o077 == 0
            settings = DutystampSettings.model_validate_json(written.read_text())
            with pytest.raises(ProviderFailed, match="answered 500"):
                Peruri(settings, HERE, folders=tmp_path).describe()
        finally:
            process.kill()
