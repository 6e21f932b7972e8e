"""Signers who sign at the local provider, one after the other, while processes are killed and one answer in ten is lost::

    python -m tests.chaos.confirmations 200 [seed]

It ends with 1 unless each document has exactly one signature of each signer that counts, over what was authorised, in the file as
the signer before has left it, each confirmation was told as signed once, and each submission as sealed once.
"""

import random
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from contracts.blobs import BlobRef
from contracts.events import DOCUMENTS_SEALED, DocumentsSealed
from contracts.providers import CertsignOrder, ConfirmationStep
from contracts.rpc.rendering import SealRequest
from contracts.runtime.data.database import Database
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.http.outbound import Outbound
from deploy.providers.csc import Provider
from deploy.providers.faults import Fault
from services.rendering.providers import breaker
from services.rendering.providers.opening import Providers
from services.rendering.signatures.workshop import Workshop
from services.rendering.storage import confirmations
from tests.chaos.lost_answers import LOST, by_csc
from tests.support.files.pdf_files import document, line
from tests.support.rendering.providers.confirming import (
    ConfirmSuite,
    approve,
    code_sent,
    confirmation_order,
    signed_hashes,
    two_signers,
)
from tests.support.rendering.providers.provider_suite import mortal
from tests.support.rendering.seal_jobs import order as seal_ordered
from tests.support.rendering.seal_jobs import settings, told
from tests.support.servers.providers import csc_provider
from tests.support.services.migrated import migrated

_STEPS = 400


def walk(
    suite: ConfirmSuite, provider: Provider, certsign: CertsignOrder, number: int, chance: random.Random
) -> tuple[SealRequest, list[str], list[str]]:
    """One submission of two signers, from the first order to the sealing: the request, the confirmations that count, and where
    processes were killed."""
    request = two_signers(
        suite.blobs, document(line(f"agreement {number}")), document(line(f"annex of {number}"))
    ).model_copy(update={"submission_id": 1000 + number, "seal_id": f"run-{number}"})
    counting: list[str] = []
    killed: list[str] = []
    for signer in (1, 2):
        name, rounds, attempts = f"n{number}-{signer}-0", 1, 0
        suite.ask(_order(request, certsign, name, signer, counting), event_id=f"due {name}")
        for _ in range(_STEPS):
            with mortal(suite, chance) as names:
                suite.run()
            killed += names
            breaker._breakers.clear()
            suite.ask(_order(request, certsign, name, signer, counting), event_id=f"due {name}")
            suite.pass_time()
            if suite.row(name).stage == "signed":
                break
            view = suite.view(name, rounds)
            if view.step in (ConfirmationStep.REDIRECT, ConfirmationStep.QUESTION):
                if chance.random() < 0.05:
                    suite.leave(name)
                    attempts, rounds = attempts + 1, 1
                    name = f"n{number}-{signer}-{attempts}"
                    suite.ask(_order(request, certsign, name, signer, counting), event_id=f"due {name}")
                else:
                    _does(suite, provider, name, view, chance)
            elif view.step in (ConfirmationStep.REFUSED, ConfirmationStep.FAILED):
                rounds += 1
                suite.again(name, certsign, rounds, event_id=f"again {name} {rounds}")
        assert suite.row(name).stage == "signed", (name, suite.row(name).stage, suite.row(name).last_error)
        counting.append(name)
    seal_ordered(suite.database, request.model_copy(update={"confirmations": counting}), f"seal {number}")
    for _ in range(_STEPS):
        with mortal(suite, chance) as names:
            suite.run()
        killed += names
        suite.pass_time()
        if any(_is_sealed(event, request) for event in told(suite.database)):
            break
    return request, counting, killed


def _order(request: SealRequest, certsign: CertsignOrder, name: str, signer: int, after: list[str]) -> Any:
    return confirmation_order(request, certsign, confirmation=name, submitter=signer, after=tuple(after))


def _is_sealed(event: Any, request: SealRequest) -> bool:
    return bool(event["type"] == DOCUMENTS_SEALED.type and event["data"]["seal_id"] == request.seal_id)


def _does(suite: ConfirmSuite, provider: Provider, name: str, view: Any, chance: random.Random) -> None:
    """What a person does: mostly what is wanted, sometimes twice, sometimes not."""
    whim = chance.random()
    if view.step is ConfirmationStep.REDIRECT:
        try:
            state, answers = approve(view, "refuse" if whim < 0.1 else "approve")
        except AssertionError:
            suite.let_time_go_by()  # the provider's page does not answer, or not any more
            return
        for _ in range(2 if whim > 0.8 else 1):
            suite.come_back(state, answers, name)
        return
    answers = {}
    for one in view.questions:
        if one.id == "PIN":
            answers[one.id] = provider.signing.account.pin
        elif provider.texts:
            answers[one.id] = "1" if whim < 0.1 else code_sent(provider)
    for _ in range(2 if whim > 0.8 else 1):
        suite.type_in(answers or {"OTP": "1"}, name, view.ask)


def wrong(suite: ConfirmSuite, provider: Provider, request: SealRequest, counting: list[str]) -> list[str]:
    """What is not as it must be, in words."""
    found = []
    events = told(suite.database)
    sealed = [event["data"] for event in events if _is_sealed(event, request)]
    if len(sealed) != 1:
        return [f"{request.seal_id} was told as sealed {len(sealed)} times"]
    signed = Counter(one.confirmation_id for one in suite.news() if one.status == "signed")
    found += [f"{name} was told as signed {signed[name]} times" for name in counting if signed[name] != 1]
    made = provider.signing.record.counts()
    for number, one in enumerate(DocumentsSealed.model_validate(sealed[0]).documents):
        data = suite.blobs.get(one.file)
        signatures = signed_hashes(data)
        if len(signatures) != len(counting) + 1:
            found.append(f"{request.seal_id}: a document has {len(signatures)} signatures")
            continue
        for name, (_, digest) in zip(counting, signatures, strict=False):
            signing = suite.database.read(confirmations.signings, name)[number]
            if signing.hash.hex() != digest or signing.signed is None:
                found.append(f"{name}: what is in the file is not what was authorised")
                continue
            if not made[digest]:
                found.append(f"{name}: the provider has not signed what is in the file")
            prepared = suite.blobs.get(BlobRef.model_validate(signing.prepared))
            kept = suite.blobs.get(BlobRef.model_validate(signing.signed))
            hole = slice(signing.start, signing.start + signing.size)
            if prepared[: hole.start] + prepared[hole.stop :] != kept[: hole.start] + kept[hole.stop :]:
                found.append(f"{name}: the file is another one than was prepared")
            if not data.startswith(kept):
                found.append(f"{name}: the sealed file does not begin with what they signed")
    return found


def suite_of(database: Database, blobs: BlobStore, workshop: Workshop, folder: Path) -> ConfirmSuite:
    """One that speaks to the provider by HTTP."""
    return ConfirmSuite(
        database,
        blobs,
        workshop,
        settings(folder),
        lambda known, back: Providers(Outbound(csc_provider.LOOPBACK)).open(known, back),
    )


def order_at(provider: Provider, credential: str) -> CertsignOrder:
    """The order of an account at the local provider."""
    authorization = {"type": "authorization_code"} if credential == "person" else {}
    return by_csc(provider, credential, authorization=authorization)


def main(runs: int, seed: int) -> int:
    chance = random.Random(seed)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = f"sqlite:///{folder / 'rendering.db'}"
        migrated("rendering", url)
        database, blobs = Database(url), BlobStore.from_url(f"file://{folder}/blobs")
        workshop = Workshop(settings(folder / "keys")).open()
        stack.callback(workshop.close)
        lost = [Fault("lost", rate=LOST)]
        provider = stack.enter_context(csc_provider.running(folder / "csc", *lost))
        suite = suite_of(database, blobs, workshop, folder / "keys")
        faults: list[str] = []
        places: Counter[str] = Counter()
        for number in range(runs):
            credential = chance.choice(["person", "code", "pin-code"])
            request, counting, killed = walk(suite, provider, order_at(provider, credential), number, chance)
            places.update(killed)
            faults += wrong(suite, provider, request, counting)
            print(f"{number + 1} of {runs}: {len(killed)} kills, {len(faults)} faults", flush=True)
        print("\n".join([*(f"{count:4} x killed {place}" for place, count in places.most_common()), *faults]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1))
