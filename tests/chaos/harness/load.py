"""Agreements of two signers by patient clients, a receiver of webhooks, a poller, a reader; and the journal of all they did.

Nothing here judges: whatever was asked, answered or seen is kept, and ``invariants`` looks at it when all is over.
"""

import dataclasses
import hashlib
import itertools
import json
import random
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import requests

from tests.chaos.harness.world import World
from tests.support.material.agreement import agreement_pdf
from tests.support.servers.receiver import Received, Receiver, Reply

PATIENCE = 600.0
"""Seconds that a client goes on asking."""
CALL_TIMEOUT = 60.0
POLL_SECONDS = 4.0
RETRY_AFTER = 0.5
"""Seconds. A real client waits as long as ``Retry-After`` says; this one is a crowd of them."""
POLLED = (
    "submission.created",
    "form.started",
    "form.completed",
    "form.declined",
    "submission.completed",
    "submission.declined",
)
SUBSCRIBED = [*POLLED, "form.viewed", "form.sent"]


@dataclasses.dataclass(frozen=True)
class Call:
    """One try: ``status`` None when no answer came. ``at`` is monotonic, ``seconds`` how long it took."""

    at: float
    seconds: float
    method: str
    path: str
    what: str
    status: int | None
    retry_after: bool
    problem: str = ""


@dataclasses.dataclass
class Agreement:
    """What was wanted, and which steps were answered with success. No other agreement has any of its texts."""

    number: int
    token: str
    preserved: bool
    plan: str
    """``complete``, ``decline`` (the buyer does) or ``leave`` (nobody signs)."""
    submission_id: int | None = None
    submitters: dict[str, int] = dataclasses.field(default_factory=dict)
    accepted: list[str] = dataclasses.field(default_factory=list)
    """``created``, ``Seller``, ``Buyer``."""
    begun: list[str] = dataclasses.field(default_factory=list)
    given_up: str | None = None
    provided: bool = False
    """A provider signs it, and another one stamps it, once all have signed."""
    uploaded: tuple[int, str] | None = None
    """A template of its own: id, and SHA-256 of the file as it was first given back."""

    @property
    def mark(self) -> str:
        return f"{self.token}x{self.number}"

    def address(self, role: str) -> str:
        return f"{role.lower()}.{self.mark}@example.com"

    def values(self, role: str) -> dict[str, Any]:
        if role == "Seller":
            return {"Company": f"Company {self.mark}", "Start": "2026-03-04"}
        return {"Full name": f"Buyer {self.mark}", "Price": self.number + 0.5, "Terms": True}


class Journal:
    """Every call, and what readers and the poller saw. Threads add to it."""

    def __init__(self, file: Path | None = None) -> None:
        self.calls: list[Call] = []
        self.agreements: list[Agreement] = []
        self.polled: dict[str, list[dict[str, Any]]] = {kind: [] for kind in POLLED}
        self.seen_statuses: list[tuple[float, int, str]] = []
        self.reads: list[Call] = []
        self._file = file.open("a", buffering=1) if file else None
        self._lock = threading.Lock()

    def add(self, call: Call, *, read: bool = False) -> None:
        with self._lock:
            (self.reads if read else self.calls).append(call)
            if self._file and not self._file.closed:
                self._file.write(json.dumps(dataclasses.asdict(call)) + "\n")

    def close(self) -> None:
        if self._file:
            self._file.close()


class Client:
    """Asks until it is answered, at one gateway after the other, always the same request."""

    def __init__(self, world: World, journal: Journal) -> None:
        self._world = world
        self._journal = journal
        self._turns = itertools.count()
        self._session = threading.local()

    def once(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        what: str,
        key: str | None = None,
        read: bool = False,
        **more: Any,
    ) -> requests.Response | None:
        """One try, into the journal. None when there was no answer."""
        gateways = self._world.gateways
        url = gateways[next(self._turns) % len(gateways)] + path
        headers = {"Idempotency-Key": key} if key else {}
        if path.startswith("/api"):
            headers["X-Auth-Token"] = self._world.api_key
        begun = time.monotonic()
        answer, problem = None, ""
        try:
            answer = requests.request(
                method, url, json=body, headers=headers | more.pop("headers", {}), timeout=CALL_TIMEOUT, **more
            )
        except requests.RequestException as error:
            problem = type(error).__name__
        status = answer.status_code if answer is not None else None
        if answer is not None and status not in (200, 201):
            problem = answer.text[:300]
        retry = answer is not None and "Retry-After" in answer.headers
        call = Call(begun, time.monotonic() - begun, method, path, what, status, retry, problem)
        self._journal.add(call, read=read)
        return answer

    def ask(self, method: str, path: str, body: Any = None, *, what: str, key: str | None = None, **more: Any) -> Any:
        """The answer (JSON) in the end. GivenUp when it is neither success nor a plea for patience."""
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self.once(method, path, body, what=what, key=key, **more)
            if answer is not None and answer.status_code in (200, 201):
                return answer.json()
            if answer is not None and answer.status_code not in (429, 502, 503, 504, 507):
                raise GivenUp(f"{what}: {answer.status_code} {answer.text[:300]}")
            if time.monotonic() > deadline:
                raise GivenUp(f"{what}: no answer in {PATIENCE:.0f} s")
            time.sleep(RETRY_AFTER)


class GivenUp(Exception):
    """A client that would not go on."""


class Hooks:
    """The receiver of two webhooks: ``/steady`` takes everything, ``/flaky`` refuses some at first, or hangs."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.away = False
        self._lock = threading.Lock()
        self._first: set[tuple[str, str]] = set()
        self.refused: list[tuple[str, str]] = []
        """Path and message id, once for each time that it was not taken there: webhooks share the ids of events."""
        self.times: dict[int, float] = {}
        self.receiver = Receiver(self._answer)

    def taken(self, path: str) -> list[Received]:
        """What was answered with success, in order."""
        refused = list(self.refused)
        left = []
        for each in list(self.receiver.requests):
            if each.path != path:
                continue
            if (each.path, each.message_id) in refused:
                refused.remove((each.path, each.message_id))
            else:
                left.append(each)
        return left

    def _answer(self, received: Received) -> Reply:
        with self._lock:
            first = (received.path, received.message_id) not in self._first
            self._first.add((received.path, received.message_id))
        if not first:  # after a second refusal it would be sent again in five minutes only
            return 204, {}, b""
        if self.away:
            return self._refuse(received)
        if received.path == "/flaky":
            lot = int(hashlib.sha256(f"{self.seed}{received.message_id}".encode()).hexdigest(), 16) % 40
            if lot == 0:
                return self._refuse(received)
            if lot == 1:
                time.sleep(2)
        return 204, {}, b""

    def _refuse(self, received: Received) -> Reply:
        with self._lock:
            self.refused.append((received.path, received.message_id))
        return 503, {}, b"not now"

    def close(self) -> None:
        self.receiver.close()


class Load:
    """``signers`` clients make agreements one after the other until ``stop``; a poller and a reader beside them."""

    def __init__(self, world: World, journal: Journal, hooks: Hooks, *, seed: int, signers: int, pause: float) -> None:
        self.client = Client(world, journal)
        self.journal = journal
        self.world = world
        self.hooks = hooks
        self.token = f"c{seed % 100000}"
        self.webhooks: dict[str, dict[str, Any]] = {}
        self._seed = seed
        self._pause = pause
        self._numbers = itertools.count(1)
        self._stopping = threading.Event()
        self._ended = threading.Event()
        self._makers = [self._thread(self._make, f"signer {number}", number) for number in range(signers)]
        self._watchers = [self._thread(self._poll, f"poll {kind}", kind) for kind in POLLED]
        self._watchers.append(self._thread(self._read, "reader"))
        self.template_id = 0

    def prepare(self) -> None:
        """Before any fault: the webhooks and the template."""
        address = self.hooks.receiver.url.replace("127.0.0.1", self.world.receiver_host).removesuffix("/hook")
        for path in ("/steady", "/flaky"):
            body = {"url": address + path, "events": SUBSCRIBED, "secret": {"X-Chaos": self.token}}
            self.webhooks[path] = self.client.ask("POST", "/api/webhooks", body, what="webhook", key=str(uuid.uuid4()))
        self.template_id = self._template("Agreement of chaos", agreement_pdf())["id"]
        if self.world.providers is not None:
            self.client.ask("PUT", "/api/account", self.world.providers.account(), what="providers")

    def start(self) -> None:
        for thread in (*self._makers, *self._watchers):
            thread.start()

    def stop(self) -> None:
        """No new agreements; those that were begun are brought to their end."""
        self._stopping.set()
        for thread in self._makers:
            if thread.ident is not None:
                thread.join(PATIENCE + CALL_TIMEOUT)

    def stop_watching(self) -> None:
        self._ended.set()
        for thread in self._watchers:
            if thread.ident is not None:
                thread.join(CALL_TIMEOUT + 5)

    def _thread(self, target: Callable[..., None], name: str, *arguments: Any) -> threading.Thread:
        return threading.Thread(target=target, args=arguments, name=name, daemon=True)

    def _template(self, name: str, pdf: bytes) -> Any:
        import base64

        document = {"name": "agreement", "file": base64.b64encode(pdf).decode()}
        body = {"name": name, "documents": [document]}
        return self.client.ask("POST", "/api/templates/pdf", body, what="template", key=str(uuid.uuid4()))

    def _make(self, signer: int) -> None:
        lot = random.Random(f"{self._seed}/{signer}")
        while not self._stopping.is_set():
            draw = lot.random()
            number = next(self._numbers)
            provided = self.world.providers is not None and number % 2 == 0
            agreement = Agreement(
                number=number,
                token=self.token,
                preserved=lot.random() < 0.5,
                plan="complete" if provided or draw > 0.24 else "decline" if draw < 0.16 else "leave",
                provided=provided,
            )
            self.journal.agreements.append(agreement)
            try:
                self._live(agreement, own_template=lot.random() < 0.1)
            except GivenUp as why:
                agreement.given_up = str(why)
            self._stopping.wait(self._pause)

    def _live(self, agreement: Agreement, *, own_template: bool) -> None:
        template_id = self.template_id
        if own_template:
            made = self._template(f"Template {agreement.mark}", agreement_pdf())
            template_id = made["id"]
            agreement.uploaded = (template_id, self.file_digest(made["documents"][0]["url"]))
        parties = self._created(agreement, template_id)
        if agreement.plan == "leave":
            return
        self._signed(agreement, "Seller", parties["Seller"]["slug"])
        self._signed(agreement, "Buyer", parties["Buyer"]["slug"], declines=agreement.plan == "decline")

    def file_digest(self, url: str) -> str:
        """SHA-256 of what a link gives, asked for until it gives it."""
        deadline = time.monotonic() + PATIENCE
        path = "/file/" + url.partition("/file/")[2]
        while time.monotonic() < deadline:
            answer = self.client.once("GET", path, what="file")
            if answer is not None and answer.status_code in (200, 201):
                return hashlib.sha256(answer.content).hexdigest()
            if answer is not None and answer.status_code != 503:
                raise GivenUp(f"file: {answer.status_code}")
            time.sleep(RETRY_AFTER)
        raise GivenUp("file: no answer")

    def _created(self, agreement: Agreement, template_id: int) -> dict[str, Any]:
        submitters = [
            {"role": role, "email": agreement.address(role), "name": f"{role} {agreement.mark}"}
            for role in ("Seller", "Buyer")
        ]
        order = "preserved" if agreement.preserved else "random"
        body = {"template_id": template_id, "submitters": submitters, "order": order}
        if agreement.provided:
            body |= {"certsign": {"enabled": True}, "dutystamp": {"enabled": True}}
        made = self.client.ask("POST", "/api/submissions", body, what="create", key=f"chaos-{agreement.mark}")
        agreement.submission_id = made[0]["submission_id"]
        agreement.submitters = {each["role"]: each["id"] for each in made}
        agreement.accepted.append("created")
        return {each["role"]: each for each in made}

    def _signed(self, agreement: Agreement, role: str, slug: str, *, declines: bool = False) -> None:
        page = f"/s/{slug}"
        self.client.ask("POST", f"{page}/view", {"time_zone": "Europe/Copenhagen"}, what="view")
        form = self.client.ask("GET", f"{page}/form", what="form")
        if declines:
            agreement.begun.append(role)
            body = {"reason": f"Reason {agreement.mark}", "request_id": str(uuid.uuid4())}
            self.client.ask("POST", f"{page}/decline", body, what="decline")
            agreement.accepted.append(role)
            return
        wanted = agreement.values(role)
        values: dict[str, Any] = {}
        for field in form["fields"]:
            if field["mine"] and field["name"] in wanted:
                values[field["uuid"]] = wanted[field["name"]]
            elif field["mine"] and field["type"] == "signature":
                typed = {"text": f"{role} {agreement.number}", "type": "signature", "request_id": str(uuid.uuid4())}
                made = self.client.ask("POST", f"{page}/typed_signature", typed, what="typed signature")
                values[field["uuid"]] = made["uuid"]
        agreement.begun.append(role)
        given = {"values": values, "request_id": str(uuid.uuid4())}
        self.client.ask("POST", f"{page}/complete", given, what="complete")
        agreement.accepted.append(role)

    def _poll(self, kind: str) -> None:
        """As the interface says: whoever passes the newest second as ``after`` sees each event once."""
        after: dict[str, Any] = {}
        path = f"/api/events/{kind.partition('.')[0]}/{kind}"
        while not self._ended.wait(POLL_SECONDS):
            answer = self.client.once("GET", path, what="poll", params={"limit": 100, **after}, read=True)
            if answer is not None and answer.status_code == 200 and (page := answer.json())["data"]:
                self.journal.polled[kind] += page["data"]
                after = {"after": _second(page["data"][-1]["timestamp"])}

    def _read(self) -> None:
        """What the gateway owns, and what it must ask for."""
        while not self._ended.wait(1.0):
            self.client.once("GET", "/api/user", what="read user", read=True)
            path = "/api/submissions?limit=20&before=9000000000"
            begun = time.monotonic()
            answer = self.client.once("GET", path, what="read submissions", read=True)
            if answer is not None and answer.status_code in (200, 201):
                for each in answer.json()["data"]:
                    self.journal.seen_statuses.append((begun, each["id"], each["status"]))


def _second(timestamp: str) -> int:
    import datetime

    return int(datetime.datetime.fromisoformat(timestamp).timestamp())
