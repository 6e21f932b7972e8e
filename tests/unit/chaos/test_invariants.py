"""The invariants of chaos notice what they are for: sound evidence passes, and each spoiled piece of it is named."""

import base64
import dataclasses
import hashlib
import hmac
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from contracts.evidence.audit_chain import START, next_hash
from tests.chaos.harness import invariants
from tests.chaos.harness.invariants import INVARIANTS, Evidence
from tests.chaos.harness.load import Agreement, Call, Journal
from tests.support.servers.receiver import Received

SECRET = b"0123456789abcdef0123456789abcdef"
WEBHOOK = {"signing_secret": "whsec_" + base64.b64encode(SECRET).decode()}
BEGUN = datetime(2026, 3, 4, 12, tzinfo=UTC)


def agreement(number: int) -> Agreement:
    return Agreement(
        number=number,
        token="t",
        preserved=True,
        plan="complete",
        submission_id=number,
        submitters={"Seller": 10 * number, "Buyer": 10 * number + 1},
        accepted=["created", "Seller", "Buyer"],
    )


def submission(of: Agreement) -> dict[str, Any]:
    return {
        "id": of.submission_id,
        "status": "completed",
        "sealing_status": "sealed",
        "documents": [{"name": "agreement", "url": "http://x/file/a", "sha256": f"digest {of.number}"}],
        "audit_log_url": "http://x/file/b",
        "submitters": [
            {
                "id": of.submitters[role],
                "role": role,
                "email": of.address(role),
                "status": "completed",
                "values": of.values(role),
            }
            for role in ("Seller", "Buyer")
        ],
    }


def trail(of: Agreement) -> list[dict[str, Any]]:
    seller, buyer = of.submitters["Seller"], of.submitters["Buyer"]
    kinds = [
        ("create_submission", None),
        ("invite_party", seller),
        ("complete_form", seller),
        ("invite_party", buyer),
        ("complete_form", buyer),
        ("complete_submission", None),
    ]
    lines: list[Any] = []
    before = START
    for number, (kind, submitter) in enumerate(kinds):
        at = BEGUN + timedelta(seconds=number)
        before = next_hash(before, submitter_id=submitter, event_type=kind, occurred_at=at, data={})
        lines.append(
            {
                "id": number + 1,
                "submitter_id": submitter,
                "event_type": kind,
                "event_timestamp": at.isoformat(),
                "data": {},
            }
            | {"hash": before}
        )
    return lines


def events(of: Agreement) -> list[dict[str, Any]]:
    def event(kind: str, data: dict[str, Any]) -> dict[str, Any]:
        return {"id": f"{kind} {data['id']}", "event_type": kind, "timestamp": BEGUN.isoformat(), "data": data}

    signed = [
        event("form.completed", {"id": each, "submission_id": of.submission_id}) for each in of.submitters.values()
    ]
    whole = submission(of)
    return [event("submission.created", whole), *signed, event("submission.completed", whole)]


def request(path: str, event: dict[str, Any]) -> Received:
    body = json.dumps(event).encode()
    name = f"{path} {event['id']}"
    signature = base64.b64encode(hmac.digest(SECRET, f"{name}.1.".encode() + body, "sha256")).decode()
    return Received(
        path,
        {"webhook-id": name, "webhook-timestamp": "1", "webhook-signature": f"v1,{signature}", "x-chaos": "t"},
        body,
    )


def mail(kind: str, address: str) -> tuple[str, EmailMessage]:
    message = EmailMessage()
    message["Message-ID"] = f"<{kind}.{address}>"
    message["Subject"] = kind
    return address, message


class Hooks:
    """What two webhooks got, all of it taken."""

    def __init__(self, requests: list[Received]) -> None:
        self.receiver = SimpleNamespace(requests=requests)

    def taken(self, path: str) -> list[Received]:
        return [each for each in self.receiver.requests if each.path == path]


def sound(folder: Path) -> Evidence:
    """Two agreements that went well."""
    both = [agreement(1), agreement(2)]
    journal = Journal()
    journal.agreements = both
    for each in both:
        for event in events(each):
            journal.polled[event["event_type"]].append(event)
    journal.calls = [Call(1.0, 0.1, "POST", "/api/submissions", "create", 503, True)]
    journal.reads = [Call(5.0, 0.1, "GET", "/api/user", "read user", 200, False)]
    requests = [request(path, event) for path in ("/steady", "/flaky") for each in both for event in events(each)]
    mails = [
        mail(kind, each.address(role)) for each in both for role in ("Seller", "Buyer") for kind in ("ask", "copy")
    ]
    (folder / "gateway.log").write_text("nothing to see\n")
    world = SimpleNamespace(
        mails=SimpleNamespace(received=mails),
        memory=lambda: {"gateway": 100},
        logs=folder,
        secrets={"key": "a-secret-of-twenty-letters"},
        gateways=["http://a", "http://b"],
        providers=None,
    )
    load = SimpleNamespace(webhooks={"/steady": WEBHOOK, "/flaky": WEBHOOK}, token="t", client=Client())
    return Evidence(
        world,  # type: ignore[arg-type]
        load,  # type: ignore[arg-type]
        Hooks(requests),  # type: ignore[arg-type]
        journal,
        submissions={each.number: submission(each) for each in both},
        trails={each.number: trail(each) for each in both},
        by_address={each.address("Buyer"): [each.number] for each in both},
        away=[(4.0, 6.0, frozenset({"broker"}))],
    )


class Client:
    """Stands for the API where an invariant asks it: keys, files, verification."""

    def once(self, _method: str, path: str, **_more: Any) -> Any:
        return SimpleNamespace(status_code=200, content=path.encode())

    def ask(self, _method: str, path: str, *_body: Any, **_more: Any) -> Any:
        return {"id": 5, "api_key": path, "checksum_status": "valid"}


OFFLINE = [name for name in INVARIANTS if name.partition(" ")[0] not in ("I8", "I11")]


@pytest.mark.parametrize("name", OFFLINE)
def test_sound_evidence_passes(tmp_path: Path, name: str) -> None:
    assert list(INVARIANTS[name](sound(tmp_path))) == []


def lost(evidence: Evidence) -> None:
    del evidence.submissions[2]


def other_value(evidence: Evidence) -> None:
    evidence.submissions[1]["submitters"][1]["values"]["Full name"] = "Somebody else"


def completed_twice(evidence: Evidence) -> None:
    evidence.trails[1].append(evidence.trails[1][2])


def told_twice(evidence: Evidence) -> None:
    event = evidence.journal.polled["submission.completed"][0]
    evidence.journal.polled["submission.completed"].append({**event, "id": "another"})


def same_file(evidence: Evidence) -> None:
    evidence.submissions[2]["documents"][0]["sha256"] = "digest 1"


def stuck(evidence: Evidence) -> None:
    evidence.submissions[1] |= {"status": "pending", "sealing_status": "sealing"}


def not_polled(evidence: Evidence) -> None:
    evidence.journal.polled["form.completed"].pop()


def not_delivered(evidence: Evidence) -> None:
    evidence.hooks.receiver.requests.pop()


def somebody_else_s(evidence: Evidence) -> None:
    evidence.journal.polled["submission.completed"][0]["data"] = {**submission(agreement(2)), "id": 1}


def other_bytes(evidence: Evidence) -> None:
    first = evidence.hooks.receiver.requests[0]
    evidence.hooks.receiver.requests.append(dataclasses.replace(first, body=first.body + b" "))


def badly_signed(evidence: Evidence) -> None:
    evidence.hooks.receiver.requests[0].headers["webhook-signature"] = "v1,AAAA"


def mail_missing(evidence: Evidence) -> None:
    assert evidence.world.mails is not None
    evidence.world.mails.received.pop()


def mail_under_another_id(evidence: Evidence) -> None:
    assert evidence.world.mails is not None
    evidence.world.mails.received.append(mail("copy again", agreement(1).address("Buyer")))


def invited_too_early(evidence: Evidence) -> None:
    lines = evidence.trails[1]
    lines[2], lines[3] = lines[3], lines[2]


def heard_in_another_order(evidence: Evidence) -> None:
    evidence.hooks.receiver.requests[:4] = reversed(evidence.hooks.receiver.requests[:4])


def created_twice(evidence: Evidence) -> None:
    evidence.by_address[agreement(1).address("Buyer")].append(7)


def taken_back(evidence: Evidence) -> None:
    evidence.journal.seen_statuses += [(1.0, 1, "completed"), (2.0, 1, "pending")]


def odd_answer(evidence: Evidence) -> None:
    evidence.journal.calls.append(Call(1.0, 0.1, "POST", "/s/x/complete", "complete", 500, False, "Internal error"))


def no_retry_after(evidence: Evidence) -> None:
    evidence.journal.calls.append(Call(1.0, 0.1, "POST", "/s/x/complete", "complete", 503, False))


def forged(evidence: Evidence) -> None:
    evidence.trails[1][2]["data"] = {"ip": "10.0.0.1"}


def back_in_time(evidence: Evidence) -> None:
    lines, before = evidence.trails[1], START
    lines[3]["event_timestamp"] = (BEGUN - timedelta(hours=1)).isoformat()
    for line in lines:
        at = datetime.fromisoformat(line["event_timestamp"])
        before = line["hash"] = next_hash(
            before, submitter_id=line["submitter_id"], event_type=line["event_type"], occurred_at=at, data={}
        )


def grown(evidence: Evidence) -> None:
    evidence.world.memory = lambda: {"gateway": 2**30}  # type: ignore[method-assign]


def talkative(evidence: Evidence) -> None:
    assert evidence.world.logs is not None
    (evidence.world.logs / "rendering.log").write_text("key=a-secret-of-twenty-letters")


def link_in_a_log(evidence: Evidence) -> None:
    assert evidence.world.logs is not None
    (evidence.world.logs / "rendering.log").write_text("GET /s/abcdefghijklmnopqrstuv")


def silent_without_broker(evidence: Evidence) -> None:
    evidence.journal.reads.append(Call(5.5, 0.1, "GET", "/api/user", "read user", 503, True))


def slow_without_broker(evidence: Evidence) -> None:
    said = "The service submissions did not answer in time."
    evidence.journal.reads.append(Call(5.5, 40.0, "GET", "/api/submissions", "read submissions", 503, True, said))


@pytest.mark.parametrize(
    ("name", "spoil", "said"),
    [
        ("I1", lost, "submission 2 was created and is not there"),
        ("I1", other_value, "Full name is 'Somebody else'"),
        ("I2", completed_twice, "complete_form of 10 is 2 times in the trail"),
        ("I2", told_twice, "submission.completed about 1 is 2 events"),
        ("I2", same_file, "have the same sealed file"),
        ("I3", stuck, "all have signed, and it is pending"),
        ("I4", not_polled, "form.completed about 21 was never polled"),
        ("I4", not_delivered, "/flaky: submission.completed about 2 was never delivered"),
        ("I4", somebody_else_s, "submission.completed of submission 1 speaks of"),
        ("I4", other_bytes, "had 2 bodies"),
        ("I4", badly_signed, "is not signed with this webhook's secret"),
        ("I4", mail_missing, "got 1 different mails, not 2"),
        ("I4", mail_under_another_id, "got 3 different mails, not 2"),
        ("I5", invited_too_early, "invite_party of the Buyer before the Seller had signed"),
        ("I5", heard_in_another_order, "came after something later"),
        ("I6", created_twice, "was created once, as 1, and is there as [1, 7]"),
        ("I6", taken_back, "submission 1 was completed, then pending"),
        ("I6", odd_answer, "was answered 500"),
        ("I6", no_retry_after, "503 without Retry-After"),
        ("I7", forged, "the chain breaks at complete_form"),
        ("I7", back_in_time, "is earlier than the line before it"),
        ("I9", grown, "gateway takes 1024 MB"),
        ("I10", talkative, "rendering.log has the key"),
        ("I10", link_in_a_log, "has a signer's link"),
        ("I12", silent_without_broker, "GET /api/user was answered 503"),
        ("I12", slow_without_broker, "was waited for, 40.0 s"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, name: str, spoil: Callable[[Evidence], None], said: str) -> None:
    evidence = sound(tmp_path)
    spoil(evidence)
    (check,) = [check for known, check in INVARIANTS.items() if known.startswith(f"{name} ")]
    found = list(check(evidence))
    assert any(said in each for each in found), found


def test_a_sealed_file_that_is_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The digests must be those of the files; both judges must be content; the text must be this agreement's."""
    evidence = sound(tmp_path)
    for number, each in evidence.submissions.items():
        each["documents"][0] |= {
            "url": f"http://x/file/{number}",
            "sha256": hashlib.sha256(f"/file/{number}".encode()).hexdigest(),
        }
    texts = " ".join(f"Company {each.mark} Buyer {each.mark}" for each in evidence.agreements)
    monkeypatch.setattr(invariants, "pdf_text", lambda _: texts)
    monkeypatch.setattr(invariants, "pdf_signatures", lambda _: "Signature is Valid. Total document signed")
    check = INVARIANTS["I8 signed output"]
    assert list(check(evidence)) == []
    monkeypatch.setattr(invariants, "pdf_signatures", lambda _: "Digest Mismatch")
    assert len(list(check(evidence))) == 4
    monkeypatch.setattr(invariants, "pdf_text", lambda _: "")
    assert len(list(check(evidence))) == 8
    evidence.submissions[1]["documents"][0]["sha256"] = "0"
    assert "is another one" in next(iter(check(evidence)))


@pytest.mark.parametrize(("after", "violations"), [(401, 0), (200, 2)])
def test_a_key_that_lives_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int, violations: int) -> None:
    evidence = sound(tmp_path)
    keys = iter(["user", "old", "new"])
    asked: list[str] = []

    def ask(*_: Any, **__: Any) -> Any:
        return {"id": 5, "api_key": next(keys)}

    def status(_gateway: str, key: str) -> int:
        asked.append(key)
        return after if key == "old" and asked.count("old") > 2 else 200

    monkeypatch.setattr(evidence.load.client, "ask", ask)
    monkeypatch.setattr(invariants, "_status", status)
    assert len(list(INVARIANTS["I11 old keys"](evidence))) == violations
