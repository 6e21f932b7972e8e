"""Who uses the deployment: clients that try again, a steady load of agreements with a journal, and what must be true of it after.

Every call goes to a gateway pod that is ready, over a connection of its own. The journal holds what was answered with 2xx; what was
not may exist or not. A call that fails counts as allowed only as 503 with ``Retry-After``, or as a broken connection to a gateway pod
whose process was killed while the call was under way.
"""

import base64
import collections
import json
import re
import threading
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

import requests

from tests.deployed.cluster import Cluster, Pod, wait_until
from tests.deployed.images import say
from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf, fill, sign
from tests.support.servers.mail_server import MailServer
from tests.support.servers.receiver import Receiver

PATIENCE = 240.0
"""Seconds for which a call is repeated. A client gives up later than any of the faults lasts."""
KILL_REACHES = 3.0
"""Seconds after a kill in which a connection to that pod may fail: until its Service has noticed, and its process listens again."""
READS = (
    "/templates?limit=3",
    "/submissions?limit=3",
    "/webhooks",
    "/events/submission/submission.completed?limit=3",
    "/user",
)
"""Calls that only read: answered by each of the services that keep rows, and by the gateway alone."""


@dataclass
class Failure:
    """A call that failed in a way that a client must not see."""

    call: str
    address: str
    problem: str
    at: float = field(default_factory=time.time)


class Client:
    """Calls with the admin's key or none, repeated with one ``Idempotency-Key`` while the answer is 503 with ``Retry-After``.

    It has the two methods of ``RunningSuite`` that the agreements of ``tests.support.material.agreement`` are made with.
    """

    def __init__(self, cluster: Cluster, key: str) -> None:
        self._cluster = cluster
        self._key = key
        self.answered: collections.Counter[int] = collections.Counter()
        """Answers by status, those of repeats included."""
        self.broken = 0
        """Connections to a killed gateway pod that broke."""
        self.failures: list[Failure] = []
        self.slowest = 0.0
        """Seconds that the slowest answer took."""

    def api(self, method: str, path: str, json: Any = None, *, status: int = 200) -> Any:
        return self._patiently(method, f"/api{path}", json, status, {"X-Auth-Token": self._key})

    def page(self, method: str, path: str, json: Any = None, *, status: int = 200) -> Any:
        return self._patiently(method, path, json, status, {})

    def download(self, url: str) -> bytes:
        """The bytes behind a link that the suite gave."""
        path = "/" + url.split("/", 3)[3]
        return requests.get(self._cluster.addresses()[0] + path, timeout=60).content

    def read_once(self, path: str) -> int:
        """One read without repeats; its status, 0 for a broken connection."""
        answer = self._once("GET", f"/api{path}", None, {"X-Auth-Token": self._key})
        return 0 if answer is None else answer.status_code

    def _patiently(self, method: str, path: str, body: Any, status: int, headers: dict[str, str]) -> Any:
        headers = headers | ({"Idempotency-Key": str(uuid.uuid4())} if method != "GET" else {})
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self._once(method, path, body, headers)
            if answer is not None and answer.status_code != 503:
                assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text[:500]}"
                return answer.json()
            said = "no answer" if answer is None else answer.text[:300]
            assert time.monotonic() < deadline, f"{method} {path}: not answered in {PATIENCE:.0f} s; last: {said}"
            time.sleep(min(2.0, float(answer.headers.get("Retry-After", 1))) if answer is not None else 0.3)

    def _once(self, method: str, path: str, body: Any, headers: dict[str, str]) -> requests.Response | None:
        """One try; None when there was no answer. What must not be is noted."""
        address = next(iter(self._cluster.addresses()), None)
        if address is None:
            return None
        began = time.monotonic()
        try:
            answer = requests.request(method, address + path, json=body, headers=headers, timeout=60)
        except requests.RequestException as failed:
            if self._cluster.was_killed(address, since=began - KILL_REACHES):
                self.broken += 1
            else:
                self.failures.append(Failure(f"{method} {path}", address, f"{type(failed).__name__}: {failed}"))
            return None
        self.slowest = max(self.slowest, time.monotonic() - began)
        self.answered[answer.status_code] += 1
        unasked = answer.status_code >= 400 and not (answer.status_code == 503 and "Retry-After" in answer.headers)
        if unasked:
            self.failures.append(Failure(f"{method} {path}", address, f"{answer.status_code} {answer.text[:300]}"))
        return answer


@dataclass(frozen=True)
class Agreement:
    """A submission to two signers that was accepted: its id, and the addresses that only it has."""

    submission_id: int
    seller: str
    buyer: str


class Load:
    """A steady load while it is entered: agreements are sent and signed by both, pages of events and lists are read.

    ``pace`` is the number of agreements begun per second, by ``signers`` at most at once.
    """

    def __init__(self, client: Client, template_id: int, *, pace: float = 1.0, signers: int = 6) -> None:
        self.client = client
        self.journal: list[Agreement] = []
        """Agreements of which each call was answered with 2xx."""
        self.given_up: list[str] = []
        """Why an agreement or a read ended with neither an answer that counts nor a 503."""
        self._template_id = template_id
        self._pace = pace
        self._turn = threading.Semaphore(0)
        self._ending = threading.Event()
        self._threads = [threading.Thread(target=self._agree, daemon=True) for _ in range(signers)]
        self._threads += [threading.Thread(target=self._tick, daemon=True)]
        self._threads += [threading.Thread(target=self._read, daemon=True)]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing new is begun; what is under way is carried through."""
        self._ending.set()
        for _thread in self._threads:
            self._turn.release()
        for thread in self._threads:
            thread.join()

    def go_on(self, agreements: int, *, within: float = 300) -> None:
        """Wait until so many more agreements have been accepted."""
        wanted = len(self.journal) + agreements
        wait_until(lambda: len(self.journal) >= wanted, within=within, what=f"{agreements} more agreements")

    def _tick(self) -> None:
        while not self._ending.wait(1 / self._pace):
            self._turn.release()

    def _agree(self) -> None:
        while self._turn.acquire() and not self._ending.is_set():
            try:
                self.journal.append(agree(self.client, self._template_id))
            except (AssertionError, requests.RequestException) as failed:
                self.given_up.append(str(failed))

    def _read(self) -> None:
        number = 0
        while not self._ending.wait(0.3):
            self.client.read_once(READS[number % len(READS)])
            number += 1


@dataclass(frozen=True)
class Begun:
    """An agreement that the seller has signed, and that is open in the buyer's browser, filled in."""

    agreement: Agreement
    slug: str
    body: dict[str, Any]
    """What completes it."""


def begin(client: Client, template_id: int) -> Begun:
    """One agreement, from its creation to before the second signature."""
    mark = uuid.uuid4().hex
    addresses = {role: f"{role.lower()}-{mark}@example.com" for role in ("Seller", "Buyer")}
    submitters = [{"role": role, "email": address, "name": role} for role, address in addresses.items()]
    seller, buyer = client.api("POST", "/submissions", {"template_id": template_id, "submitters": submitters})
    sign(client, seller["slug"], SELLER_VALUES)
    body = fill(client, buyer["slug"], BUYER_VALUES)
    return Begun(Agreement(seller["submission_id"], addresses["Seller"], addresses["Buyer"]), buyer["slug"], body)


def finish(client: Client, begun: Begun) -> Agreement:
    """The second signature."""
    client.page("POST", f"/s/{begun.slug}/complete", begun.body)
    return begun.agreement


def agree(client: Client, template_id: int) -> Agreement:
    """One agreement, from its creation to the second signature."""
    return finish(client, begin(client, template_id))


class Outside:
    """What stands outside: a receiver of webhooks and a mail server, on the machine's address in the pods' network."""

    def __init__(self, host: str, mail_port: int) -> None:
        self.receiver = Receiver(host=host)
        self.mail = MailServer(mail_port, host=host).start()

    def close(self) -> None:
        self.receiver.close()
        self.mail.stop()

    def told(self) -> dict[int, list[tuple[str, str, dict[str, Any]]]]:
        """Webhook deliveries by submission, in the order they came: kind of event, message id, body. Of repeats only the first."""
        found: dict[int, list[tuple[str, str, dict[str, Any]]]] = collections.defaultdict(list)
        known = set()
        for request in list(self.receiver.requests):
            if request.message_id in known:
                continue
            known.add(request.message_id)
            body = json.loads(request.body)
            kind, data = body["event_type"], body["data"]
            if kind.startswith(("form.", "submission.")):
                found[data["id" if kind.startswith("submission.") else "submission_id"]].append(
                    (kind, request.message_id, body)
                )
        return found

    def mails(self) -> dict[str, set[str]]:
        """Message-IDs by recipient."""
        found: dict[str, set[str]] = collections.defaultdict(set)
        for address, message in list(self.mail.received):
            found[address].add(str(message["Message-ID"]))
        return found


EXPECTED = {
    "submission.created": 1,
    "form.viewed": 2,
    "form.started": 2,
    "form.completed": 2,
    "submission.completed": 1,
}
"""Webhook events of one agreement: how often each, but that a view counts again when its call was repeated."""
MAILS_EACH = 2
"""The invitation, and the copy when all have signed."""


def check_nothing_lost(client: Client, outside: Outside, journal: list[Agreement], *, within: float = 240) -> None:
    """Every accepted agreement was carried through: sealed, told once and in order, polled once, mailed once.

    What was accepted last may still be under way: each condition has until ``within`` seconds from now. A mail whose sender
    was killed while it was being sent is tried again when its lease ends.
    """
    deadline = time.monotonic() + within

    def eventually(what: str, missing: Any) -> None:
        while found := missing():
            assert time.monotonic() < deadline, f"{what}: {len(found)} of {len(journal)}, such as {found[:3]}"
            time.sleep(1)

    open_ones = {one.submission_id for one in journal}

    def not_sealed() -> list[Any]:
        found = []
        for number in sorted(open_ones):
            submission = client.api("GET", f"/submissions/{number}")
            if (submission["status"], submission["sealing_status"]) == ("completed", "sealed"):
                assert submission["documents"], f"submission {number} has no documents"
                assert submission["audit_log_url"], f"submission {number} has no audit trail"
                open_ones.discard(number)
            else:
                found.append((number, submission["status"], submission["sealing_status"], submission["sealing_error"]))
        return found

    eventually("agreements that were not sealed", not_sealed)

    def not_told() -> list[Any]:
        told = outside.told()
        found = []
        for one in journal:
            counts = collections.Counter(kind for kind, _, _ in told[one.submission_id])
            short = {kind: counts[kind] for kind, number in EXPECTED.items() if counts[kind] < number}
            if short:
                found.append((one.submission_id, short))
        return found

    eventually("agreements whose webhook events did not all come", not_told)

    def not_mailed() -> list[Any]:
        mails = outside.mails()
        return [
            (address, len(mails[address]))
            for one in journal
            for address in (one.seller, one.buyer)
            if len(mails[address]) < MAILS_EACH
        ]

    eventually("recipients whose mails did not all come", not_mailed)

    def not_polled() -> list[Any]:
        seen = polled(client)
        return [one.submission_id for one in journal if not seen[one.submission_id]]

    # The second under way is not shown yet to who polls.
    eventually("completions that are not polled", not_polled)
    check_nothing_twice(client, outside, journal)


def check_nothing_twice(client: Client, outside: Outside, journal: list[Agreement]) -> None:
    """No event came under two ids or before one that happened earlier, none is polled twice, no mail has two Message-IDs."""
    told, mails, completions = outside.told(), outside.mails(), polled(client)
    for one in journal:
        heard = told[one.submission_id]
        counts = collections.Counter(kind for kind, _, _ in heard)
        viewed = {"form.viewed": max(EXPECTED["form.viewed"], counts["form.viewed"])}
        assert dict(counts) == EXPECTED | viewed, f"submission {one.submission_id}: {dict(counts)}"
        happened = [body["timestamp"] for _, _, body in heard]
        assert happened == sorted(happened), f"submission {one.submission_id} was told in another order: {heard}"
        assert heard[-1][0] == "submission.completed", f"submission {one.submission_id} was told last of {heard[-1][0]}"
        assert {len(mails[address]) for address in (one.seller, one.buyer)} == {MAILS_EACH}
        assert completions[one.submission_id] == 1, f"submission {one.submission_id} completes twice for who polls"


def polled(client: Client) -> collections.Counter[int]:
    """How often each submission is among the polled completions, read page by page."""
    seen: collections.Counter[int] = collections.Counter()
    after: int | None = 0
    while after is not None:
        page = client.api("GET", f"/events/submission/submission.completed?limit=100&after={after}")
        seen.update(event["data"]["id"] for event in page["data"])
        after = page["pagination"]["next"]
    return seen


def check_every_pod_works(cluster: Cluster, client: Client, template_id: int) -> None:
    """Nobody is deaf: each process says that it is ready, and each `serve` takes part when agreements are made."""
    wait_until(lambda: not not_ready(cluster), within=60, what="every process to say that it is ready")
    serving = [pod for pod in cluster.all() if pod.workload.container["name"] == "serve"]
    before = {pod.name: work_of(pod) for pod in serving}
    idle = serving
    for _ in range(20):
        agree(client, template_id)
        client.api("GET", READS[0])
        client.api("GET", READS[2])
        idle = [pod for pod in idle if work_of(pod) == before[pod.name]]
        if not idle:
            return
    raise AssertionError(f"these take no part although they are ready: {', '.join(pod.name for pod in idle)}")


def not_ready(cluster: Cluster) -> dict[str, str]:
    """What each process says that is not ready; said aloud, because a kubelet forgives one such answer and a reader may not."""
    problems = {}
    for pod in filter(is_ours, cluster.all()):
        try:
            answer = pod.get("/readyz", timeout=10)
        except requests.RequestException as failed:
            problems[pod.name] = type(failed).__name__
        else:
            if answer.status_code != 200:
                problems[pod.name] = answer.text
    for name, problem in problems.items():
        say(f"{name} is not ready: {problem}")
    return problems


def work_of(pod: Pod) -> float:
    """How much the process has handled since it started: calls on the bus, events, HTTP requests."""
    counted = ("countersign_rpc_handled_total{", "countersign_events_total{", "countersign_http_seconds_count{")
    lines = pod.get("/metrics", timeout=10).text.splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(counted))


def build_of(pod: Pod) -> dict[str, str]:
    """What the process says that it is: the labels of ``countersign_build_info``."""
    (labels,) = re.findall(r"^countersign_build_info\{(.+)\} 1\.0$", pod.get("/metrics", timeout=10).text, re.MULTILINE)
    return dict(re.findall(r'(\w+)="([^"]*)"', labels))


def is_ours(pod: Pod) -> bool:
    return "httpGet" in pod.workload.container["readinessProbe"]


def make_template(client: Client) -> int:
    document = {"name": "agreement", "file": base64.b64encode(agreement_pdf()).decode()}
    made: int = client.api("POST", "/templates/pdf", {"name": "Agreement", "documents": [document]})["id"]
    return made
