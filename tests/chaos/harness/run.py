"""One run: load, faults at random, everything left to settle, the invariants; and the report of it."""

import collections
import dataclasses
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import requests
import sqlalchemy as sa

from tests.chaos.harness import faults, invariants
from tests.chaos.harness.commands import Command
from tests.chaos.harness.faults import Fault
from tests.chaos.harness.invariants import Evidence
from tests.chaos.harness.load import Hooks, Journal, Load
from tests.chaos.harness.messages import Messages
from tests.chaos.harness.world import OwnWorld, World
from tests.support.services.suite import wait_until

SETTLE_WITHIN = 180.0
"""Seconds. Invariant I3 gives 60, and 120 after the broker or the database was away; it is for a machine of its own."""
BETWEEN = (0.5, 5.0)
_PATIENT_FOR = 4
"""How often it is looked whether all is settled, a second apart, before those who wait for a provider or for files have waited long
enough."""
AFTERWARDS = 3.0
"""Seconds after a broker is back until connections to it are made again."""

_UNSETTLED = {
    "outbox": "SELECT count(*) FROM outbox",
    "submissions": "SELECT count(*) FROM submissions WHERE sealing_status = 'sealing'",
    "mails": "SELECT count(*) FROM mails WHERE state = 'due'",
    "seal_jobs": "SELECT count(*) FROM seal_jobs WHERE state IN ('due', 'waiting')",
    "arrivals": "SELECT count(*) FROM arrivals",
    "deliveries": "SELECT count(*) FROM deliveries WHERE outcome IS NULL AND attempts < 2",
}
"""What must come to nothing, by table. A delivery that was refused twice waits for minutes, as its schedule says."""
_TABLES = {
    "templates": ["outbox"],
    "submissions": ["outbox", "submissions"],
    "rendering": ["outbox", "seal_jobs"],
    "notifications": ["outbox", "mails"],
    "webhooks": ["outbox", "arrivals", "deliveries"],
    "gateway": ["outbox"],
}


@dataclasses.dataclass
class Plan:
    """What a run is to do. ``faults`` None: all that are possible. ``commands``: faults of the operator's own. ``seconds``
    None: each kind of fault once, in an order that the seed says, and work that gets through between any two."""

    seconds: float | None
    seed: int
    faults: list[str] | None = None
    commands: Sequence[Command] = ()
    signers: int = 3
    pause: float = 0.3
    settle_within: float = SETTLE_WITHIN
    haste: float = 1.0
    """2: faults, and the pauses between them, take half as long."""


@dataclasses.dataclass
class Report:
    """What was done and what was found. ``text`` is for people, ``save`` keeps it."""

    plan: Plan
    done: list[str] = dataclasses.field(default_factory=list)
    counts: dict[str, int] = dataclasses.field(default_factory=dict)
    violations: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    notes: list[str] = dataclasses.field(default_factory=list)

    @property
    def clean(self) -> bool:
        return not any(self.violations.values())

    def text(self, most: int = 12) -> str:
        kinds = collections.Counter(each.split()[1] for each in self.done)
        length = "each kind of fault once" if self.plan.seconds is None else f"{self.plan.seconds:.0f} s"
        lines = [f"seed {self.plan.seed}, {length}"]
        lines.append("faults: " + (", ".join(f"{name} {count}" for name, count in sorted(kinds.items())) or "none"))
        lines.append("counted: " + ", ".join(f"{name} {count}" for name, count in self.counts.items()))
        lines += [f"note: {note}" for note in self.notes]
        for name, found in self.violations.items():
            lines.append(f"{name}: {f'{len(found)} violations' if found else 'holds'}")
            lines += [f"    {each}" for each in found[:most]]
            if len(found) > most:
                lines.append(f"    ... and {len(found) - most} more")
        return "\n".join(lines)

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "report.json").write_text(json.dumps(dataclasses.asdict(self), indent=1, default=str))
        (folder / "report.txt").write_text(self.text(1000) + "\n")


Say = Callable[[str], None]


def run(world: World, plan: Plan, folder: Path, say: Say) -> Report:
    """Do all of it on a world that is up. ``say`` hears what is happening."""
    folder.mkdir(parents=True, exist_ok=True)
    report = Report(plan)
    journal = Journal(folder / "journal.jsonl")
    hooks = Hooks(plan.seed)
    load = Load(world, journal, hooks, seed=plan.seed, signers=plan.signers, pause=plan.pause)
    evidence = Evidence(world, load, hooks, journal)
    messages = _messages(world)
    begun = time.monotonic()

    def told(line: str) -> None:
        say(f"{time.monotonic() - begun:7.1f} {line}")

    try:
        load.prepare()
        load.start()
        if isinstance(world, OwnWorld):
            _treat_badly(world, plan, hooks, messages, evidence, report, told)
        else:
            _run_commands(plan, evidence, report, told)
        told("no more faults: what was begun comes to its end")
        load.stop()
        told("settling")
        evidence.unsettled = settled(world, evidence, plan.settle_within)
        load.stop_watching()
        told("checking")
        _look(world, evidence, report)
    finally:
        load.stop()
        load.stop_watching()
        report.counts |= _counts(evidence, messages)
        if messages:
            messages.close()
        hooks.close()
        journal.close()
        report.save(folder)
    return report


def _messages(world: World) -> Messages | None:
    if isinstance(world, OwnWorld):
        return Messages(world.amqp_url or "", lambda: world.broker.evaluate('rabbit_trace:start(<<"/">>).'))
    return Messages(world.amqp_url) if world.amqp_url else None


def _treat_badly(
    world: OwnWorld, plan: Plan, hooks: Hooks, messages: Messages | None, evidence: Evidence, report: Report, say: Say
) -> None:
    assert messages is not None
    lot = random.Random(plan.seed)
    missing = sorted(name for name, each in faults.FAULTS.items() if not each.possible(world))
    if missing:
        report.notes.append(f"not possible here: {', '.join(missing)}")
    # In haste there is one such fault, and it is to happen before anybody has waited for it.
    latest_step = faults.LATEST_STEP if plan.seconds is not None else 1
    scene = faults.Scene(world, hooks, messages, lot, latest_step)
    for each in _drawn(world, plan, lot, evidence):
        seconds = lot.uniform(*each.lasts) / plan.haste
        begun = time.monotonic()
        all_well = _all_answer(world)
        with each.happening(scene) as what:
            line = f"{each.name} {what} for {seconds:.1f} s"
            say(line)
            report.done.append(f"{begun:.1f} {line}")
            away_since = time.monotonic()
            time.sleep(seconds)
            away_until = time.monotonic()
        if each.touches and all_well:  # else the fault before it is not over yet
            evidence.away.append((away_since, away_until, each.touches))
    world.alive_again()


def _drawn(world: OwnWorld, plan: Plan, lot: random.Random, evidence: Evidence) -> Iterator[Fault]:
    """The faults of a run, with a pause before each: some seconds, or until somebody has signed since the last one."""
    if plan.seconds is None:
        for each in faults.once_each(world, plan.faults, lot):
            _let_work(evidence)
            yield each
        _let_work(evidence)
        return
    draw = faults.drawn(world, plan.faults, lot)
    until = time.monotonic() + plan.seconds
    faults.pause(3, until)
    while time.monotonic() < until:
        yield draw()
        faults.pause(lot.uniform(*BETWEEN) / plan.haste, until)


def _let_work(evidence: Evidence) -> None:
    """Wait until one more party is done: else a slow machine would do nothing between two faults, and a quick one too much."""
    before = _signed(evidence)
    wait_until(lambda: _signed(evidence) > before, what="that somebody signs between two faults")


def _signed(evidence: Evidence) -> int:
    return sum(len(agreement.accepted[1:]) for agreement in evidence.journal.agreements)


def _all_answer(world: World) -> bool:
    try:
        return all(requests.get(f"{gateway}/healthz", timeout=10).ok for gateway in world.gateways)
    except requests.RequestException:
        return False


def _run_commands(plan: Plan, evidence: Evidence, report: Report, say: Say) -> None:
    """The faults of somebody else's suite are what its operator says."""
    lot = random.Random(plan.seed)
    seconds = plan.seconds or 0.0
    until = time.monotonic() + seconds
    if not plan.commands:
        report.notes.append("no faults were given: only load")
        faults.pause(seconds, until)
    while time.monotonic() < until:
        each = lot.choices(plan.commands, [command.weight for command in plan.commands])[0]
        say(f"{each.name}: {each.begin}")
        report.done.append(f"{time.monotonic():.1f} {each.name}")
        begun = time.monotonic()
        problem = each.happen()
        if problem:
            report.notes.append(problem)
        if each.touches:
            evidence.away.append((begun, time.monotonic(), frozenset(each.touches)))
        faults.pause(lot.uniform(*BETWEEN), until)


def settled(world: World, evidence: Evidence, within: float) -> list[str]:
    """Wait until nothing is left to be done; what is left when the time is over. Twice in a row, or it was between two steps."""
    deadline = time.monotonic() + within
    calm, looked = 0, 0
    while True:
        left = _left(world, evidence)
        looked += 1
        if left and looked % _PATIENT_FOR == 0:
            world.let_time_go_by()
        calm = 0 if left else calm + 1
        if calm == 3 or time.monotonic() > deadline:
            return left
        time.sleep(1)


def _left(world: World, evidence: Evidence) -> list[str]:
    left = []
    for gateway in world.gateways:
        try:
            answer = requests.get(f"{gateway}/readyz", timeout=10)
            if answer.status_code != 200:
                left.append(f"{gateway} is not ready: {answer.text[:300]}")
        except requests.RequestException as error:
            left.append(f"{gateway} does not answer: {type(error).__name__}")
    for service in world.databases:
        for table in _TABLES[service]:
            try:
                ((count,),) = world.rows(service, _UNSETTLED[table])
            except sa.exc.SQLAlchemyError as error:
                left.append(f"the database of {service} cannot be read: {error}")
                break
            if count:
                left.append(f"{service} has {count} open rows in {table}")
    for name, waiting in (world.queues() or {}).items():
        if waiting and (name.startswith(("evt-", "rpc-")) or ".retry-" in name):
            left.append(f"{waiting} messages in {name}")
    left += _untold(evidence)
    return left


def _untold(evidence: Evidence) -> list[str]:
    """Where no database can be read, what the outside has not heard yet: I4 names it, here it only keeps us waiting."""
    violations = list(invariants.told(evidence))
    return [f"{len(violations)} events or mails have not been told, the first: {violations[0]}"] if violations else []


def _look(world: World, evidence: Evidence, report: Report) -> None:
    if isinstance(world, OwnWorld):
        evidence.unexplained += world.deaf
        report.counts["steps"] = len(world.steps)
        report.notes += [f"started again: {each}" for each in world.suite.revived]
        if world.given_up:
            evidence.unexplained.append(world.given_up)
    invariants.gathered(evidence)
    for name, check in invariants.INVARIANTS.items():
        report.violations[name] = list(check(evidence))
    if not world.databases:
        report.notes.append("no databases were given: what is left in them was not looked at")
    if world.mails is None:
        report.notes.append("no mail server of ours was given (MAIL_PORT): mails were not checked")


def _counts(evidence: Evidence, messages: Messages | None) -> dict[str, int]:
    journal = evidence.journal
    hooks = evidence.hooks.receiver.requests
    mails = evidence.world.mails.received if evidence.world.mails else []
    repeated = len(hooks) - len({(each.path, each.message_id) for each in hooks})
    return {
        "agreements": len(journal.agreements),
        "completed": len(evidence.finished),
        "of these by providers": sum(each.provided for each in evidence.finished),
        "calls": len(journal.calls),
        "calls without an answer": sum(call.status is None for call in journal.calls),
        "503": sum(call.status == 503 for call in journal.calls),
        "reads": len(journal.reads),
        "polled events": sum(map(len, journal.polled.values())),
        "webhook requests": len(hooks),
        "of these repeated": repeated,
        "mails": len(mails),
        "of these repeats": len(mails) - len({(address, str(mail["Message-ID"])) for address, mail in mails}),
        "messages lost": len(messages.lost) if messages else 0,
        "messages doubled": messages.doubled if messages else 0,
    }
