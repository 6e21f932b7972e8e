"""Submissions that a provider signs and another stamps, while one answer in ten is lost and processes are killed::

    python -m tests.chaos.lost_answers 200 [seed]

It ends with 1 unless each document has exactly one signature of the provider, over what was authorised, as many stamps were bought
as there are on documents, and each submission was told as sealed once.
"""

import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from contracts.events import DOCUMENTS_SEALED, DOCUMENTS_STAMPED, DocumentsSealed
from contracts.evidence.sealed_text import seal
from contracts.providers import CERTSIGN, CertsignOrder
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.http.outbound import Outbound
from deploy.providers.csc import Provider
from deploy.providers.faults import Fault
from deploy.providers.stamp_issuer import StampIssuer
from services.rendering.models import CertsignTrial, DutyStamp
from services.rendering.providers import breaker
from services.rendering.providers.opening import Providers
from services.rendering.signatures.workshop import Workshop
from services.rendering.stamping import stages
from tests.support.files.pdf_files import A4, document, line
from tests.support.rendering.providers import stamp_orders
from tests.support.rendering.providers.certificates_at_providers import RemoteKey
from tests.support.rendering.providers.provider_suite import Suite, mortal, what_was_signed
from tests.support.rendering.seal_jobs import order, told
from tests.support.rendering.sealing import seal_request
from tests.support.servers.providers import csc_provider
from tests.support.services.migrated import migrated
from tests.support.services.secret_settings import LINK_SECRET

LOST = 0.1
_AT_ONCE = 20
"""Submissions. Each of them is tried in each round, and the stamps of one issuer are bought one after the other."""
_GIVEN_UP = 60
"""Rounds after one another in which nothing more was sealed."""


def by_csc(provider: Provider, credential: str = "seal-ec", **more: Any) -> CertsignOrder:
    """The order of an account at the local provider."""
    settings = csc_provider.settings(provider, credential, trust_anchors=[provider.authorities.anchor], **more)
    return CertsignOrder(settings=seal(LINK_SECRET, CERTSIGN, settings.model_dump_json()), provider="127.0.0.1")


def suite_of(database: Database, blobs: BlobStore, workshop: Workshop, folder: Path) -> Suite:
    """One that speaks to both by HTTP."""
    own = stamp_orders.settings(folder)
    return Suite(
        database,
        blobs,
        workshop,
        own,
        RemoteKey(),
        lambda settings: Providers(Outbound(csc_provider.LOOPBACK)).open(settings),
    )


def submit(suite: Suite, provider: Provider, issuer: StampIssuer, numbers: Iterable[int]) -> None:
    """A submission of each number, with two documents."""
    for number in numbers:
        request = seal_request(
            suite.blobs,
            document(line(f"agreement {number}"), media=A4),
            document(line(f"annex of {number}")),
            seal_id=f"run-{number}",
            submission_id=1000 + number,
            certsign=by_csc(provider),
            dutystamp=stamp_orders.order(issuer.settings()).model_copy(update={"on_failure": "hold"}),
        )
        order(suite.database, request)


def settle(suite: Suite, runs: int, chance: random.Random, say: Callable[[str], None] = lambda _: None) -> Counter[str]:
    """Until all are sealed; whoever waits for a later attempt is hurried on, by processes that are new each time. Returns where
    they were killed, and how often."""
    killed = Counter[str]()
    done = number = last = 0
    while done < runs and number < last + _GIVEN_UP:
        number += 1
        with mortal(suite, chance) as places:
            suite.run()
        killed.update(places)
        if (now_done := suite.kinds().count(DOCUMENTS_SEALED.type)) > done:
            done, last = now_done, number
        say(f"round {number}: {done} of {runs} sealed, {len(places)} kills")
        breaker._breakers.clear()
        _time_has_passed(suite)
        suite.pass_time()
    return killed


def _time_has_passed(suite: Suite) -> None:
    """Minutes, in which no process was there: what a dead one held for so long is free, and its purchases are surely none."""

    def change(session: Any) -> None:
        session.execute(sa.update(CertsignTrial).values(tried_until=now()))
        for row in session.scalars(sa.select(DutyStamp).where(DutyStamp.asked_at.is_not(None))):
            row.asked_at -= stages.SURELY_NOT

    suite.database.write(change)


def wrong(suite: Suite, provider: Provider, issuer: StampIssuer, runs: int) -> list[str]:
    """What is not as it must be, in words."""
    found = []
    events = told(suite.database)
    sealed = [one["data"] for one in events if one["type"] == DOCUMENTS_SEALED.type]
    names = [one["seal_id"] for one in sealed]
    if sorted(names) != sorted(f"run-{number}" for number in range(runs)):
        found.append(f"{len(names)} were told as sealed, {len(set(names))} of them once, {runs} were asked for")
    if any(one["type"] == DOCUMENTS_STAMPED.type for one in events):
        found.append("a later version was told, though nothing was told without stamps")
    signatures: list[str] = []
    for data in sealed:
        for one in DocumentsSealed.model_validate(data).documents:
            signed = what_was_signed(suite.blobs.get(one.file))
            if len(signed) != 2:
                found.append(
                    f"{data['seal_id']}: a document has {len(signed)} signatures, not the provider's and the stamp's"
                )
            signatures.append(signed[0].hex())
    if len(set(signatures)) != 2 * runs:
        found.append(f"{len(set(signatures))} different files were signed, not {2 * runs}")
    made = provider.signing.record.counts()
    if unknown := set(signatures) - set(made):
        found.append(f"{len(unknown)} files are not what was authorised")
    if others := set(made) - set(signatures):
        found.append(f"{len(others)} hashes were signed that are of no file")
    sold = list(issuer.books.sold.values())
    if len(sold) != 2 * runs or not all(each.used for each in sold):
        found.append(
            f"{len(sold)} stamps were bought, {sum(each.used for each in sold)} used, for {2 * runs} documents"
        )
    if len({each.source for each in sold}) != len(sold):
        found.append("two stamps are on the same file")
    return found


def main(arguments: list[str]) -> int:
    runs, seed = int(arguments[0]) if arguments else 200, int(arguments[1]) if len(arguments) > 1 else 1
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = f"sqlite:///{folder}/rendering.sqlite"
        migrated("rendering", url)
        database = Database(url)
        stack.callback(database.dispose)
        blobs = BlobStore.from_url(f"file://{folder}/blobs")
        workshop = Workshop(stamp_orders.settings(folder, rendering_children=2)).open()
        stack.callback(workshop.close)
        provider = stack.enter_context(csc_provider.running(folder / "csc", Fault("lost", rate=LOST)))
        (folder / "issuer").mkdir()
        issuer = StampIssuer(folder / "issuer", key_type="ec-p256", seed=seed).start()
        stack.callback(issuer.stop)
        issuer.fail("lost_purchase", rate=LOST)
        issuer.fail("lost_stamp", rate=LOST)
        suite = suite_of(database, blobs, workshop, folder)
        chance, killed = random.Random(seed), Counter[str]()
        for begun in range(0, runs, _AT_ONCE):
            numbers = range(begun, min(begun + _AT_ONCE, runs))
            submit(suite, provider, issuer, numbers)
            killed += settle(suite, numbers.stop, chance, lambda text: print(text, flush=True))
        problems = wrong(suite, provider, issuer, runs)
        twice = sum(number - 1 for number in provider.signing.record.counts().values())
    print(*(f"{count:4} x killed {place}" for place, count in killed.most_common()), sep="\n")
    print(f"{runs} submissions, {killed.total()} kills, {twice} signatures asked for again")
    print(*(problems or ["all is well"]), sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
