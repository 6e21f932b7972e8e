"""What must hold whatever was done to the suite: I1 to I13, one function each. A violation is a line that says what and where.

They look at the outside (the API, what receivers and mail servers got, what the poller saw), and where the databases can be
read also at what is left in them.
"""

import base64
import collections
import hashlib
import hmac
import re
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import requests

from contracts.evidence.audit_chain import START, next_hash
from contracts.types import SubmissionEvent
from tests.chaos.harness.load import Agreement, GivenUp, Hooks, Journal, Load
from tests.chaos.harness.world import World
from tests.support.material.outcomes import pdf_signatures, pdf_text

WAITED = "did not answer in time"
"""What a call says that finds the bus away and waits for as long as it may, instead of being refused."""
MOST_MEMORY = 512 * 1024 * 1024
MOST_LOG = 100 * 1024 * 1024
TRANSITIONS = ("complete_form", "decline_form", "complete_submission", "create_submission")
VERIFIED = 12
"""Sealed files that are verified by us and by poppler; of all the others the digests are compared."""


@dataclass
class Evidence:
    """All that is known when everything has settled."""

    world: World
    load: Load
    hooks: Hooks
    journal: Journal
    submissions: dict[int, dict[str, Any]] = field(default_factory=dict)
    trails: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    by_address: dict[str, list[int]] = field(default_factory=dict)
    """Ids of submissions by the buyer's e-mail address, from the whole list."""
    unsettled: list[str] = field(default_factory=list)
    away: list[tuple[float, float, frozenset[str]]] = field(default_factory=list)
    """When what was away: from, to (monotonic), and the parts."""
    unexplained: list[str] = field(default_factory=list)
    """What the faults themselves noticed."""
    logs: Path | None = None

    @property
    def agreements(self) -> list[Agreement]:
        return self.journal.agreements

    @property
    def finished(self) -> list[Agreement]:
        """Those whose submission must be completed."""
        return [each for each in self.agreements if {"Seller", "Buyer"} <= {*each.accepted} and each.plan == "complete"]

    def polled(self, kind: str) -> list[dict[str, Any]]:
        return self.journal.polled[kind]


Violations = Iterator[str]
INVARIANTS: dict[str, Callable[[Evidence], Violations]] = {}


def invariant(name: str) -> Callable[[Callable[[Evidence], Violations]], Callable[[Evidence], Violations]]:
    def register(function: Callable[[Evidence], Violations]) -> Callable[[Evidence], Violations]:
        INVARIANTS[name] = function
        return function

    return register


def gathered(evidence: Evidence) -> None:
    """Ask the API for the last state of everything."""
    client, after = evidence.load.client, 0
    while True:
        page = client.ask("GET", "/api/submissions", what="list", params={"limit": 100, "after": after})
        for each in page["data"]:
            for submitter in each["submitters"]:
                if submitter["role"] == "Buyer":
                    evidence.by_address.setdefault(submitter["email"], []).append(each["id"])
        if not page["data"]:
            break
        after = page["data"][-1]["id"]
    for agreement in evidence.agreements:
        if agreement.submission_id is not None:
            path = f"/api/submissions/{agreement.submission_id}"
            try:
                evidence.submissions[agreement.submission_id] = client.ask("GET", path, what="get")
                trail = client.ask("GET", f"{path}/events", what="trail", params={"limit": 100})
                evidence.trails[agreement.submission_id] = trail["data"]
            except GivenUp:
                continue


@invariant("I1 durability")
def durable(evidence: Evidence) -> Violations:
    """What was answered with success is there: the submission, its values, the file that was uploaded."""
    for agreement in evidence.agreements:
        if agreement.submission_id is None:
            continue
        submission = evidence.submissions.get(agreement.submission_id)
        if submission is None:
            yield f"submission {agreement.submission_id} was created and is not there"
            continue
        submitters = {each["role"]: each for each in submission["submitters"]}
        for role, submitter_id in agreement.submitters.items():
            found = submitters.get(role, {})
            if found.get("id") != submitter_id or found.get("email") != agreement.address(role):
                yield f"submission {agreement.submission_id}: the {role} is {found.get('id')} {found.get('email')}"
        for role in ("Seller", "Buyer"):
            if role not in agreement.accepted:
                continue
            found = submitters.get(role, {})
            if agreement.plan == "decline" and role == "Buyer":
                if found.get("status") != "declined":
                    yield f"submission {agreement.submission_id}: the Buyer declined and is {found.get('status')}"
                continue
            if found.get("status") != "completed":
                yield f"submission {agreement.submission_id}: the {role} completed and is {found.get('status')}"
            values = found.get("values", {})
            for name, value in agreement.values(role).items():
                if values.get(name) != value:
                    yield f"submission {agreement.submission_id}: {name} is {values.get(name)!r}, {value!r} was accepted"
        if agreement.uploaded is not None:
            template_id, digest = agreement.uploaded
            template = evidence.load.client.ask("GET", f"/api/templates/{template_id}", what="template")
            if evidence.load.file_digest(template["documents"][0]["url"]) != digest:
                yield f"template {template_id}: its file is another one than was uploaded"


@invariant("I2 once")
def once(evidence: Evidence) -> Violations:
    """One completion of each party, one ``submission.completed``, one set of documents: whatever came twice."""
    for submission_id, lines in evidence.trails.items():
        counts = collections.Counter((line["event_type"], line.get("submitter_id")) for line in lines)
        for (kind, submitter), count in counts.items():
            if kind in TRANSITIONS and count > 1:
                yield f"submission {submission_id}: {kind} of {submitter} is {count} times in the trail"
        ended = [kind for (kind, _) in counts if kind in ("complete_submission", "decline_form")]
        if len(ended) > 1:
            yield f"submission {submission_id} ended as {ended}"
    for kind, events in evidence.journal.polled.items():
        ids = collections.Counter(event["id"] for event in events)
        yield from (f"{kind} {event_id} was polled {count} times" for event_id, count in ids.items() if count > 1)
        subjects = collections.Counter(event["data"]["id"] for event in events)
        yield from (f"{kind} about {subject} is {count} events" for subject, count in subjects.items() if count > 1)
    digests: dict[str, int] = {}
    for agreement in evidence.finished:
        submission = evidence.submissions.get(agreement.submission_id or 0, {})
        documents = submission.get("documents") or []
        if submission.get("status") == "completed" and len(documents) != 1:
            yield f"submission {agreement.submission_id} has {len(documents)} documents"
        for document in documents:
            if document.get("sha256") in digests:
                yield f"submissions {digests[document['sha256']]} and {agreement.submission_id} have the same sealed file"
            digests[document["sha256"]] = agreement.submission_id or 0


@invariant("I3 progress")
def progress(evidence: Evidence) -> Violations:
    """With everything up again, nothing is left undone."""
    yield from evidence.unsettled
    for agreement in evidence.agreements:
        if agreement.given_up is not None:
            yield f"agreement {agreement.number} ({agreement.submission_id}) could not go on: {agreement.given_up}"
    for agreement in evidence.finished:
        submission = evidence.submissions.get(agreement.submission_id or 0)
        if submission is not None and submission["status"] != "completed":
            yield (
                f"submission {agreement.submission_id}: all have signed, and it is {submission['status']}"
                f" (sealing {submission.get('sealing_status')})"
            )


@invariant("I4 at least once out")
def told(evidence: Evidence) -> Violations:
    """Every event reaches the poller and both webhooks, with one id and the same bytes and a right signature; every mail is
    there, and a second copy has the same Message-ID."""
    yield from _told_by_polling(evidence)
    for path, webhook in evidence.load.webhooks.items():
        yield from _told_by_webhook(evidence, path, webhook)
    yield from _told_by_mail(evidence)


def _expected(evidence: Evidence) -> Iterator[tuple[str, str, Any]]:
    """Kind, key in the event's data, and its value, for every event that must have been told."""
    for agreement in evidence.agreements:
        if agreement.submission_id is None or agreement.given_up is not None:
            continue
        yield "submission.created", "id", agreement.submission_id
        for role in ("Seller", "Buyer"):
            if role in agreement.accepted:
                declined = agreement.plan == "decline" and role == "Buyer"
                yield "form.declined" if declined else "form.completed", "id", agreement.submitters[role]
        if agreement.plan == "complete" and {"Seller", "Buyer"} <= {*agreement.accepted}:
            yield "submission.completed", "id", agreement.submission_id
        if agreement.plan == "decline" and "Buyer" in agreement.accepted:
            yield "submission.declined", "id", agreement.submission_id


def _told_by_polling(evidence: Evidence) -> Violations:
    for kind, key, value in _expected(evidence):
        if not any(event["data"][key] == value for event in evidence.polled(kind)):
            yield f"{kind} about {value} was never polled"
    for kind in ("submission.created", "submission.completed", "submission.declined"):
        for event in evidence.polled(kind):
            yield from _about_the_right_one(evidence, kind, event["data"])


def _about_the_right_one(evidence: Evidence, kind: str, data: dict[str, Any]) -> Violations:
    """An event that is told under one id and speaks of another agreement."""
    agreement = next((each for each in evidence.agreements if each.submission_id == data["id"]), None)
    if agreement is not None:
        emails = {each["email"] for each in data["submitters"]}
        if emails != {agreement.address("Seller"), agreement.address("Buyer")}:
            yield f"{kind} of submission {data['id']} speaks of {sorted(emails)}"


def _told_by_webhook(evidence: Evidence, path: str, webhook: dict[str, Any]) -> Violations:
    import json

    received = [each for each in list(evidence.hooks.receiver.requests) if each.path == path]
    taken = evidence.hooks.taken(path)
    bodies = [json.loads(each.body) for each in taken]
    for kind, key, value in _expected(evidence):
        ids = {
            each.message_id
            for each, body in zip(taken, bodies, strict=True)
            if body["event_type"] == kind and body["data"][key] == value
        }
        if not ids:
            yield f"{path}: {kind} about {value} was never delivered"
        if len(ids) > 1:
            yield f"{path}: {kind} about {value} was delivered under {len(ids)} ids"
    by_id: dict[str, set[bytes]] = collections.defaultdict(set)
    secret = base64.b64decode(webhook["signing_secret"].removeprefix("whsec_"))
    for each in received:
        by_id[each.message_id].add(each.body)
        signed = f"{each.message_id}.{each.headers['webhook-timestamp']}.".encode() + each.body
        wanted = "v1," + base64.b64encode(hmac.digest(secret, signed, "sha256")).decode()
        if wanted not in each.headers["webhook-signature"].split():
            yield f"{path}: {each.message_id} is not signed with this webhook's secret"
        if each.headers.get("x-chaos") != evidence.load.token:
            yield f"{path}: {each.message_id} came without the caller's own header"
    yield from (f"{path}: {name} had {len(texts)} bodies" for name, texts in by_id.items() if len(texts) > 1)


def _told_by_mail(evidence: Evidence) -> Violations:
    mails = evidence.world.mails
    if mails is None:
        return
    by_address: dict[str, list[EmailMessage]] = collections.defaultdict(list)
    for address, message in list(mails.received):
        by_address[address].append(message)
    for agreement in evidence.agreements:
        if agreement.submission_id is None or agreement.given_up is not None:
            continue
        invited = ["Seller"]
        if not agreement.preserved or ("Seller" in agreement.accepted):
            invited.append("Buyer")
        finished = agreement in evidence.finished
        for role in ("Seller", "Buyer"):
            got = by_address.get(agreement.address(role), [])
            different = {str(message["Message-ID"]) for message in got}
            wanted = (role in invited) + finished
            if len(different) != wanted:
                subjects = sorted({str(message["Subject"]) for message in got})
                yield f"{agreement.address(role)} ({agreement.submission_id}) got {len(different)} different mails, not {wanted}: {subjects}"


@invariant("I5 order")
def ordered(evidence: Evidence) -> Violations:
    """Trails are paths of the state machine: nobody is invited before their turn, nothing follows the end. Each webhook hears
    about a submission in the order in which it happened."""
    import json

    for agreement in evidence.agreements:
        lines = evidence.trails.get(agreement.submission_id or 0)
        if not lines:
            continue
        kinds = [line["event_type"] for line in lines]
        if kinds[0] != "create_submission":
            yield f"submission {agreement.submission_id}: its trail begins with {kinds[0]}"
        buyer = agreement.submitters["Buyer"]
        position = {(line["event_type"], line.get("submitter_id")): number for number, line in enumerate(lines)}
        signed = position.get(("complete_form", agreement.submitters["Seller"]))
        for kind in ("invite_party", "send_email"):
            invited = position.get((kind, buyer))
            if agreement.preserved and invited is not None and (signed is None or invited < signed):
                yield f"submission {agreement.submission_id}: {kind} of the Buyer before the Seller had signed"
        completed = position.get(("complete_submission", None))
        if completed is not None and any(
            number > completed for (kind, _), number in position.items() if kind in ("complete_form", "decline_form")
        ):
            yield f"submission {agreement.submission_id}: somebody signed after it was completed"
    order = {"submission.created": 0, "form.completed": 1, "submission.completed": 2, "submission.declined": 2}
    for path in evidence.load.webhooks:
        reached: dict[int, int] = {}
        seen: set[str] = set()
        for each in evidence.hooks.taken(path):
            if each.message_id in seen:
                continue
            seen.add(each.message_id)
            body = json.loads(each.body)
            kind, data = body["event_type"], body["data"]
            subject = data["id"] if kind.startswith("submission.") else data["submission_id"]
            if kind in order:
                if order[kind] < reached.get(subject, 0):
                    yield f"{path}: {kind} of submission {subject} came after something later"
                reached[subject] = max(reached.get(subject, 0), order[kind])


@invariant("I6 no lies")
def truthful(evidence: Evidence) -> Violations:
    """A try without an answer happened once or not at all; no answer was taken back; every refusal says so."""
    for agreement in evidence.agreements:
        found = evidence.by_address.get(agreement.address("Buyer"), [])
        if agreement.submission_id is not None and found != [agreement.submission_id]:
            yield f"agreement {agreement.number} was created once, as {agreement.submission_id}, and is there as {found}"
        if agreement.submission_id is None and len(found) > 1:
            yield f"agreement {agreement.number} was never answered, and is there as {found}"
    last: dict[int, str] = {}
    for _, submission_id, status in sorted(evidence.journal.seen_statuses):
        if last.get(submission_id, "pending") != "pending" and status != last[submission_id]:
            yield f"submission {submission_id} was {last[submission_id]}, then {status}"
        last[submission_id] = status
    for submission_id, status in last.items():
        now = evidence.submissions.get(submission_id, {}).get("status", status)
        if status != "pending" and now != status:
            yield f"submission {submission_id} was {status} and is {now}"
    for call in (*evidence.journal.calls, *evidence.journal.reads):
        if call.status is not None and call.status not in (200, 201, 503, 507):
            yield f"{call.method} {call.path[:60]} ({call.what}) was answered {call.status}: {call.problem}"
        if call.status == 503 and not call.retry_after:
            yield f"{call.method} {call.path[:60]} ({call.what}) was answered 503 without Retry-After"


@invariant("I7 audit")
def audited(evidence: Evidence) -> Violations:
    """The hash chain can be made anew, and time does not go back in it."""
    for submission_id, lines in evidence.trails.items():
        before, hash_before = None, START
        for line in lines:
            event = SubmissionEvent.model_validate(line)
            made = next_hash(
                hash_before,
                submitter_id=event.submitter_id,
                event_type=event.event_type,
                occurred_at=event.event_timestamp,
                data=event.data,
            )
            if made != event.hash:
                yield f"submission {submission_id}: the chain breaks at {event.event_type}"
                break
            if before is not None and event.event_timestamp < before:
                yield f"submission {submission_id}: {event.event_type} is earlier than the line before it"
            before, hash_before = event.event_timestamp, event.hash


@invariant("I8 signed output")
def sealed(evidence: Evidence) -> Violations:
    """Each sealed file has the digest that was told, and holds its own agreement's texts; some are verified, by us and by
    poppler, who knows nothing of us."""
    finished = evidence.finished
    step = max(1, len(finished) // VERIFIED)
    for number, agreement in enumerate(finished):
        submission = evidence.submissions.get(agreement.submission_id or 0, {})
        for document in submission.get("documents") or []:
            data = _file(evidence, document["url"])
            if data is None or hashlib.sha256(data).hexdigest() != document["sha256"]:
                yield f"submission {agreement.submission_id}: its sealed file cannot be had, or is another one"
                continue
            if number % step:
                continue
            text = pdf_text(data)
            for value in (f"Company {agreement.mark}", f"Buyer {agreement.mark}"):
                if value not in text:
                    yield f"submission {agreement.submission_id}: its sealed file does not say {value}"
            yield from _verified(evidence, agreement, data)
        if submission.get("status") == "completed" and number % step == 0:
            trail = _file(evidence, submission["audit_log_url"])
            if trail is None:
                yield f"submission {agreement.submission_id}: there is no audit trail"
            else:
                yield from _verified(evidence, agreement, trail)


@invariant("I13 providers")
def provided(evidence: Evidence) -> Violations:
    """What a provider was to sign and another one to stamp has one signature of the one, over what was authorised, and one stamp
    of the other; and nothing was signed or bought besides."""
    providers = evidence.world.providers
    if providers is None:
        return
    files = []
    for agreement in evidence.finished:
        submission = evidence.submissions.get(agreement.submission_id or 0)
        if not agreement.provided or submission is None or submission["status"] != "completed":
            continue  # I3 tells of it
        data = _file(evidence, submission["documents"][0]["url"])
        if data is None:
            yield f"submission {agreement.submission_id}: its sealed file cannot be had"
            continue
        files.append((submission, data))
    yield from providers.wrong(files)


def _file(evidence: Evidence, url: str) -> bytes | None:
    path = "/file/" + url.partition("/file/")[2]
    answer = evidence.load.client.once("GET", path, what="sealed file")
    return answer.content if answer is not None and answer.status_code == 200 else None


def _verified(evidence: Evidence, agreement: Agreement, data: bytes) -> Violations:
    body = {"file": base64.b64encode(data).decode()}
    ours = evidence.load.client.ask("POST", "/api/tools/verify", body, what="verify")
    if ours["checksum_status"] != "valid":
        yield f"submission {agreement.submission_id}: /tools/verify says {ours['checksum_status']}"
    theirs = pdf_signatures(data)
    if "Signature is Valid" not in theirs or "Total document signed" not in theirs:
        yield f"submission {agreement.submission_id}: pdfsig says {theirs[-300:]}"


@invariant("I9 bounded")
def bounded(evidence: Evidence) -> Violations:
    """Nothing has grown without limit: memory, logs, queues; and nothing died but by our hand."""
    for name, size in evidence.world.memory().items():
        if size > MOST_MEMORY:
            yield f"{name} takes {size / 2**20:.0f} MB"
    for path in _logs(evidence.world):
        if path.stat().st_size > MOST_LOG:
            yield f"{path.name} has grown to {path.stat().st_size / 2**20:.0f} MB"
    yield from evidence.unexplained


@invariant("I10 no secret in logs")
def discreet(evidence: Evidence) -> Violations:
    """Neither ours, nor the signing secrets of the webhooks, nor a signer's link."""
    secrets = {name: value for name, value in evidence.world.secrets.items() if len(value) >= 16}
    for path, webhook in evidence.load.webhooks.items():
        secrets[f"signing secret of {path}"] = webhook["signing_secret"]
    links = re.compile(rb"/s/[A-Za-z0-9_-]{16,}")
    for file in _logs(evidence.world):
        data = file.read_bytes()
        yield from (f"{file.name} has the {name}" for name, value in secrets.items() if value.encode() in data)
        if (found := links.search(data)) is not None:
            yield f"{file.name} has a signer's link: {found.group().decode()[:12]}..."


def _logs(world: World) -> list[Path]:
    return sorted(world.logs.glob("*.log")) if world.logs is not None else []


@invariant("I11 old keys")
def dead_keys(evidence: Evidence) -> Violations:
    """A key that was replaced lets nobody in, at any gateway, within a second."""
    client, world = evidence.load.client, evidence.world
    body = {
        "first_name": "Rita", "last_name": "Rotated", "email": f"rotated.{uuid.uuid4().hex}@example.com",
        "role": "viewer", "password": uuid.uuid4().hex,
    }  # fmt: skip
    user = client.ask("POST", "/api/users", body, what="user", key=str(uuid.uuid4()))
    old = client.ask("GET", f"/api/users/{user['id']}/api_key", what="key")["api_key"]
    for gateway in world.gateways:
        if _status(gateway, old) != 200:
            yield f"{gateway} does not know a new key"
    new = client.ask("POST", f"/api/users/{user['id']}/api_key", what="new key", key=str(uuid.uuid4()))["api_key"]
    rotated = time.monotonic()
    for gateway in world.gateways:
        asked = time.monotonic()
        while (status := _status(gateway, old)) == 200 and asked < rotated + 1:
            time.sleep(0.02)
            asked = time.monotonic()
        if status != 401:
            yield f"{gateway} answers {status} to a key that was replaced"
        if (status := _status(gateway, new)) != 200:
            yield f"{gateway} answers {status} to the key that replaced it"
    client.once("DELETE", f"/api/users/{user['id']}", what="user")


def _status(gateway: str, key: str) -> int:
    return requests.get(f"{gateway}/api/user", headers={"X-Auth-Token": key}, timeout=120).status_code


@invariant("I12 reads without the broker")
def readable(evidence: Evidence) -> Violations:
    """While only the broker was away, the gateway answered from its own database, and refused the rest soon."""
    for begun, ended, parts in evidence.away:
        if parts != {"broker"}:
            continue
        for call in evidence.journal.reads:
            if not begun <= call.at <= ended:
                continue
            if call.what == "read user" and call.status != 200:
                yield f"without the broker GET /api/user was answered {call.status} {call.problem}"
            if call.what == "read submissions" and WAITED in call.problem:
                yield f"without the broker GET /api/submissions was waited for, {call.seconds:.1f} s ({call.problem})"
