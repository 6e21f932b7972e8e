"""The command line of ``countersign listen``, ``send`` and ``evidence``: what is asked for, and whose key goes where."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from requests import PreparedRequest

from deploy.command.main import main
from deploy.command.remote import forwarding, listen, options, progress, send
from deploy.command.remote.installation import Installation, Misused, Refused, Unreachable, origin_of, plain
from deploy.services import ROOT

CANARY = "c4n4ry-key-of-somebody"


@pytest.fixture(autouse=True)
def _nothing_is_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in (options.URL, options.KEY, options.KEY_FILE):
        monkeypatch.delenv(name, raising=False)


# --- where, and with which key


@pytest.mark.parametrize(
    ("named", "origin"),
    [
        ("https://sign.example.com", "https://sign.example.com"),
        ("https://sign.example.com/", "https://sign.example.com"),
        (" https://sign.example.com/api/ ", "https://sign.example.com"),
        ("https://example.com/sign/api", "https://example.com/sign"),
        ("sign.example.com", "https://sign.example.com"),
        ("sign.example.com:8443/api", "https://sign.example.com:8443"),
        ("localhost:8000", "http://localhost:8000"),
        ("127.0.0.1", "http://127.0.0.1"),
        ("http://[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_an_installation_is_named_as_one_likes(named: str, origin: str) -> None:
    assert origin_of(named) == origin


@pytest.mark.parametrize(
    "named",
    [
        "",
        "https://",
        "ftp://a.example",
        "https://ann:pw@a.example",
        "https://a:70000",
        "https://a.example?x=1",
        "http://[",
    ],
)
def test_what_is_no_address_is_refused(named: str) -> None:
    with pytest.raises(Misused):
        origin_of(named)


def key_of(*arguments: str, **environment: str) -> str:
    chosen = options.parser("listen", "").parse_args(["--url", "localhost:1", *arguments])
    request = PreparedRequest()
    request.prepare(
        method="GET", url="http://localhost:1", auth=options.installation_of(chosen, environment)._session.auth
    )
    assert list(request.headers) == ["X-Auth-Token"]
    return str(request.headers["X-Auth-Token"])


def test_the_command_line_comes_before_the_environment(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("  in-a-file\n")
    both = {options.KEY: "in-the-environment", options.KEY_FILE: "nothing"}
    assert key_of("--key-file", "key", **both) == "in-a-file"
    assert key_of("--key", "on-the-line", **both) == "on-the-line"
    assert key_of(**both) == "in-the-environment"
    assert key_of(**{options.KEY_FILE: "key"}) == "in-a-file"
    chosen = options.parser("listen", "").parse_args(["--key", "x"])
    assert (
        options.installation_of(chosen, {options.URL: "https://sign.example.com/api"}).url == "https://sign.example.com"
    )


def test_a_key_that_cannot_be_one_is_not_repeated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "key").write_text(f"{CANARY}\n{CANARY}\n")
    (tmp_path / "bytes").write_bytes(b"\xff" + CANARY.encode())
    for arguments, said in (
        (["--key-file", "key"], "characters that no key has"),
        (["--key-file", "bytes"], "it is no text"),
        (["--key-file", "nothing"], "No such file"),
        (["--key", f"{CANARY} ä"], "characters that no key has"),
        (["--key", ""], "name a file with the API key"),
        ([], "name a file with the API key"),
    ):
        assert main(["evidence", "1", "--url", "localhost:1", *arguments]) == options.MISUSED
        told = capsys.readouterr()
        assert (said in told.err, CANARY in told.err + told.out) == (True, False), told
    assert main(["evidence", "1", "--key", CANARY]) == options.MISUSED
    assert "name the installation with --url or COUNTERSIGN_URL" in capsys.readouterr().err


def test_a_key_that_travels_open_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    chosen = options.parser("listen", "").parse_args(["--url", "http://sign.example.com", "--key", CANARY])
    options.installation_of(chosen, {})
    told = capsys.readouterr().err
    assert "is not encrypted" in told
    assert CANARY not in told


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["listen"], "the following arguments are required: --forward"),
        (["listen", "--forward", "ftp://x"], "--forward must be a URL"),
        (["listen", "--forward", "http://ann:pw@localhost/hook"], "--forward must be a URL"),
        (["listen", "--forward", "localhost:1/a b"], "--forward must be a URL"),
        (["listen", "--forward", "localhost:1", "--replay", "yesterday"], "FROM is a sequence"),
        (["listen", "--forward", "localhost:1", "--secret", "whsec_%"], "a signing secret is base64"),
        (["listen", "--forward", "localhost:1", "--header", "webhook-id: 1"], "is set by the listener itself"),
        (["listen", "--key", "a", "--key-file", "b"], "not allowed with argument"),
        (["evidence"], "the following arguments are required: ID"),
        (["evidence", "x"], "invalid int value: 'x'"),
        (["evidence", "1", "--root", "nothing.pem"], "there is no file nothing.pem"),
        (["send"], "the following arguments are required: FILE|ID"),
        (["send", "1"], "name with --to who signs"),
        (["send", "1", "--to", "Ann"], "--to is 'NAME <MAIL>'"),
        (["send", "1", "--to", "Ann <ann@example.com> x"], "--to is 'NAME <MAIL>'"),
        (["send", "1", "--field", "a=b", "--to", "ann@example.com"], "--field stands before the --to"),
        (["send", "1", "--to", "ann@example.com", "--field", "ab"], "--field is NAME=VALUE"),
        (
            ["send", "1", "--to", "ann@example.com", "--values", "nothing.json"],
            "nothing.json cannot be read: No such file",
        ),
        (["send", "1", "--to", "ann@example.com", "--dry-run", "--wait"], "--dry-run sends nothing"),
        (["send", "lease.odt", "--to", "ann@example.com"], "neither the id of a template nor a file named"),
        (["send", "lease.pdf", "--to", "ann@example.com"], "No such file"),
        (["send", "1", "--to", "ann@example.com", "-o", "nowhere"], "there is no folder nowhere"),
    ],
)
def test_what_makes_no_sense_is_a_sentence_and_status_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(options.URL, "localhost:1")
    monkeypatch.setenv(options.KEY, CANARY)
    try:
        status = main(arguments)
    except SystemExit as end:
        status = int(end.code or 0)
    told = capsys.readouterr()
    assert (status, said in told.err, told.out, CANARY in told.err) == (2, True, "", False), told.err


def test_an_installation_that_is_not_there_is_status_4(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evidence", "1", "--url", "http://127.0.0.1:1", "--key", CANARY]) == options.AWAY
    told = capsys.readouterr().err
    assert "http://127.0.0.1:1 cannot be reached" in told
    assert main(["evidence", "1", "--url", "http://127.0.0.1:1", "--key", CANARY, "--json"]) == options.AWAY
    assert "cannot be reached" in json.loads(capsys.readouterr().err)["error"]
    assert CANARY not in told


def test_a_refusal_names_the_fields(capsys: pytest.CaptureFixture[str]) -> None:
    details = [
        {"field": "submitters[0].email", "reason": "is invalid"},
        {"field": "kinds[0]", "reason": "No."},
        {"field": "request", "reason": "x"},
        {"reason": "x"},
    ]
    refused = Refused(422, "No.", "invalid", details)
    assert options.tell(refused, as_json=False) == options.REFUSED
    assert capsys.readouterr().err == "countersign: No.\n  submitters[0].email: is invalid\n  kinds[0]\n"
    assert options.tell(refused, as_json=True) == options.REFUSED
    assert json.loads(capsys.readouterr().err) == {"error": "No.", "status": 422, "code": "invalid", "details": details}
    assert options.tell(Unreachable("away\x1b[31m\n", 3), as_json=False) == options.AWAY
    assert capsys.readouterr().err == "countersign: away?[31m\n"
    assert plain("a\n\tb\x1b\u202e") == "a b??"


# --- what is sent


def request(*arguments: str) -> tuple[str, dict[str, Any]]:
    return send.request_of(send._parser().parse_args(list(arguments)))


def test_options_are_about_the_person_before_them(tmp_path: Path) -> None:
    (tmp_path / "values.json").write_text('{"Price": 12.5, "Terms": ["a", "b"]}')
    (tmp_path / "more.json").write_text('{"name": "Old", "preferences": {"keep_days": 30}}')
    kind, body = request(
        *("7", "--to", '"Ann Ray" <ann@example.com>', "--role", "Seller", "--field", "Place=Oslo=N"),
        *("--to", "bob@example.com", "--values", "values.json", "--field", "Price=13", "--name", "Lease"),
        *("--subject", "Please", "--order", "random", "--no-email", "--request", "more.json"),
    )
    ann = {"email": "ann@example.com", "name": "Ann Ray", "role": "Seller", "values": {"Place": "Oslo=N"}}
    bob = {"email": "bob@example.com", "values": {"Price": "13", "Terms": ["a", "b"]}}
    assert kind == "template"
    assert body == {
        "template_id": 7,
        "submitters": [ann, bob],
        "name": "Lease",
        "order": "random",
        "message": {"subject": "Please"},
        "send_email": False,
        "preferences": {"keep_days": 30},
    }


@pytest.mark.parametrize(("name", "kind"), [("a lease.pdf", "pdf"), ("a lease.DOCX", "docx")])
def test_a_document_is_sent_as_what_it_is_called(tmp_path: Path, name: str, kind: str) -> None:
    (tmp_path / name).write_bytes(b"\x00\xff")
    found, body = request(name, "--to", "ann@example.com")
    assert (found, body["documents"]) == (kind, [{"name": "a lease", "file": "AP8="}])


def test_a_page_is_sent_as_text(tmp_path: Path) -> None:
    (tmp_path / "page.htm").write_text("<p>Zoë</p>", encoding="utf-8")
    assert request("page.htm", "--to", "a@b.c")[1]["documents"] == [{"name": "page", "html": "<p>Zoë</p>"}]
    (tmp_path / "page.htm").write_bytes(b"\xff")
    with pytest.raises(Misused, match="is not in UTF-8"):
        request("page.htm", "--to", "a@b.c")


@pytest.mark.parametrize(("content", "said"), [("[]", "no object"), ("{", "no JSON"), ("[" * 100_000, "no JSON")])
def test_values_that_are_none(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "values.json").write_text(content)
    with pytest.raises(Misused, match=said):
        send.json_object(Path("values.json"))


def test_a_document_s_name_leads_nowhere_else() -> None:
    assert send.file_name("../../etc/passwd.pdf") == "etc-passwd"
    assert send.file_name("Mietvertrag für Zoë.pdf") == "Mietvertrag-für-Zoë"
    assert send.file_name("...") == "document"
    assert send.file_name("/") == "document"
    assert len(send.file_name("a" * 300)) == 80


def test_the_answer_is_a_submission_or_its_submitters() -> None:
    assert send.submission_of({"id": 3, "status": "pending"}) == {"id": 3, "status": "pending"}
    people = [{"id": 7, "submission_id": 3}]
    assert send.submission_of(people) == {"id": 3, "name": None, "status": "pending", "submitters": people}


# --- what is kept


def test_what_was_taken_is_kept_for_the_next_start(tmp_path: Path) -> None:
    path = progress.default_path("http://a", "http://b", os.environ)
    assert path.parent == tmp_path / "state" / "countersign"
    with progress.hold(path, "http://a", "http://b") as kept:
        assert kept.cursor is None
        kept.keep(7)
        kept.keep(9)
        secret = kept.signing_secret
        with pytest.raises(Misused, match="another listener is at work"), progress.hold(path, "http://a", "http://b"):
            pass
    with progress.hold(path, "http://a", "http://b") as kept:
        assert (kept.cursor, kept.signing_secret) == (9, secret)
    assert {each.stat().st_mode & 0o777 for each in path.parent.iterdir()} == {0o600}
    assert path.parent.stat().st_mode & 0o777 == 0o700
    for others in (("http://x", "http://b"), ("http://a", "http://x")):
        assert progress.default_path(*others, os.environ) != path
        with pytest.raises(Misused, match="is of a listener from http://a to http://b"), progress.hold(path, *others):
            pass
    path.write_text(path.read_text()[:-5])
    with pytest.raises(Misused, match="is not what a listener keeps"), progress.hold(path, "http://a", "http://b"):
        pass


def test_a_listener_of_a_wish_begins_where_it_was_told() -> None:
    class Feed(listen.Feed):
        def end(self) -> int:
            return 100

        def cursor_before(self, moment: object) -> int:
            return 50

    def cursor(kept: int | None, *, replay: str | None = None) -> int:
        installation = Installation("localhost", "key")
        told = progress.Progress(Path("x"), "http://a", "http://b", "whsec_AAAA", kept)
        listener = listen.Listener(
            Feed(installation, None), told, "whsec_AAAA", {}, listen.Log(as_json=True), listen.Ending()
        )
        begin = forwarding.beginning(replay, listen._now()) if replay else None
        return listener._cursor(replay=replay is not None, begin=begin)

    assert cursor(None) == 100
    assert cursor(7) == 7
    assert cursor(0) == 0
    assert cursor(7, replay="now") == 100
    assert cursor(7, replay="5") == 4
    assert cursor(None, replay="0") == 0
    assert cursor(7, replay="2h") == 50


# --- alone


def test_they_run_without_the_services_packages(tmp_path: Path) -> None:
    """With requests and what it needs, as ``pipx install .`` has it; and what needs more says so."""
    packages = tmp_path / "packages"
    packages.mkdir()
    for name in ("requests", "urllib3", "idna", "certifi", "charset_normalizer"):
        module = Path(str(sys.modules[name].__file__)).parent if name in sys.modules else None
        assert module is not None, name
        (packages / name).symlink_to(module)
    (packages / "countersign-7.8.9.dist-info").mkdir()
    (packages / "countersign-7.8.9.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: countersign\nVersion: 7.8.9\n"
    )
    (tmp_path / "file.pdf").write_bytes(b"%PDF-1.7\n")
    (tmp_path / "evidence.zip").write_bytes(b"PK")
    program = f"import sys; sys.path[:0] = {[str(ROOT), str(packages)]!r}; from deploy.command.main import main; sys.exit(main())"

    def run(*arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", program, *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    away = ["--url", "http://127.0.0.1:1", "--key", CANARY]
    assert run("--version") == (0, "countersign 7.8.9\n")
    for status, said, arguments in (
        (options.AWAY, "cannot be reached", ["send", "1", "--to", "ann@example.com", "--dry-run", *away]),
        (options.AWAY, "cannot be reached", ["evidence", "1", *away]),
        (options.MISUSED, "--forward must be a URL", ["listen", "--forward", "ftp://x", *away]),
        (options.MISUSED, "this is not a ZIP file", ["verify", "evidence.zip"]),
        (options.MISUSED, "it was installed without its services", ["verify", "file.pdf"]),
        (options.MISUSED, "it was installed without its services", ["doctor"]),
    ):
        ended, told = run(*arguments)
        assert (ended, said in told, "Traceback" in told) == (status, True, False), told


def test_an_option_is_not_abbreviated() -> None:
    """A script that says ``--k`` must not begin to mean another option with the next version."""
    with pytest.raises(SystemExit):
        options.parser("send", "").parse_args(["--ur", "x"])
    assert isinstance(options.parser("send", ""), argparse.ArgumentParser)
