"""Confirmations of signers at a provider: their background work, the persons who confirm, what became of it."""

import hashlib
import io
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pikepdf
import sqlalchemy as sa
from asn1crypto import cms

from contracts.blobs import BlobRef
from contracts.envelope import Envelope
from contracts.events import CONFIRMATION_CHANGED, DOCUMENTS_SEALED, DocumentsSealed
from contracts.providers import (
    CertsignMode,
    CertsignOrder,
    ConfirmationChanged,
    ConfirmationLeft,
    ConfirmationRetried,
    ConfirmationStep,
    ConfirmationView,
)
from contracts.rpc.rendering import (
    AnswerConfirmation,
    ConfirmationOrder,
    FillRequest,
    FindConfirmation,
    GivenByParty,
    SealRequest,
    ToCheck,
)
from contracts.runtime.clock import uuid7
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import DueWork
from contracts.runtime.data.files.blobstore import BlobStore
from deploy.providers.csc import Provider
from services.rendering import commands
from services.rendering.models import Confirmation, SealJob
from services.rendering.providers.opening import OpenForPerson
from services.rendering.rules import confirming, domain
from services.rendering.sealing.remote import confirm_work
from services.rendering.sealing.remote.confirm_work import Confirmations, ConfirmWork
from services.rendering.sealing.seal_jobs import SealWork
from services.rendering.settings import Settings
from services.rendering.signatures.workshop import Workshop
from services.rendering.storage import confirmations
from tests.support.rendering.seal_jobs import order as seal_ordered
from tests.support.rendering.seal_jobs import told
from tests.support.rendering.sealing import seal_request
from tests.support.services.secret_settings import LINK_SECRET

RETURN_URL = "https://sign.example.com/identity/return"
SIGNERS = 2


class ConfirmSuite:
    """The background work of one process on confirmations and seals, which can be killed at each step."""

    def __init__(
        self, database: Database, blobs: BlobStore, workshop: Workshop, own: Settings, open_provider: OpenForPerson
    ) -> None:
        self.database, self.blobs, self.workshop = database, blobs, workshop
        self._settings, self._open_provider = own, open_provider
        self.restart()

    def restart(self) -> None:
        """Nothing is remembered but what is in the database."""
        self.work = ConfirmWork(self._settings, self.blobs, self.workshop, self.database, self._open_provider)
        self.answers = Confirmations(self.database, LINK_SECRET)
        sealing = SealWork(
            self._settings,
            self.blobs,
            self.workshop.renderer,
            self.workshop.sealer,
            self.database,
            provider_sealer=self.workshop.provider_sealer,
            archiver=self.workshop.archiver if self._settings.pades_level == "B-LTA" else None,
        )
        self._loops = [
            DueWork(
                "confirm at providers",
                self.database,
                Confirmation,
                self.work.attempt,
                schedule=confirming.SCHEDULE,
                lease=timedelta(minutes=5),
                concurrency=4,
                on_park=confirm_work.give_up,
            ),
            DueWork(
                "seal",
                self.database,
                SealJob,
                sealing.attempt,
                schedule=domain.SCHEDULE,
                lease=timedelta(minutes=5),
                on_park=commands.fail_job,
            ),
        ]

    def run(self) -> None:
        """The real loops, until nothing is due."""
        while any([self._turn(loop) for loop in self._loops]):  # noqa: C419 - each has its turn
            pass

    def _turn(self, loop: DueWork) -> bool:
        busy = loop.turn() == 0.0
        loop.finish()
        return busy

    def pass_time(self) -> None:
        """What waits for a later attempt by itself is due now; the person has not let their time go by."""

        def hurry(session: Any) -> None:
            moment = datetime.now(UTC)
            waiting = sa.or_(Confirmation.asked_until.is_(None), Confirmation.session_until.is_not(None))
            session.execute(
                sa.update(Confirmation).where(Confirmation.state == "due", waiting).values(next_attempt_at=moment)
            )
            session.execute(sa.update(SealJob).where(SealJob.state == "due").values(next_attempt_at=moment))

        self.database.write(hurry)

    def let_time_go_by(self) -> None:
        """The person has not answered in time."""
        moment = datetime.now(UTC) - timedelta(seconds=1)
        late = sa.update(Confirmation).where(Confirmation.asked_until.is_not(None))
        self.database.write(
            lambda session: session.execute(late.values(asked_until=moment, next_attempt_at=moment)) and None
        )

    def dead(self) -> None:
        """Others know that the process is dead."""

        def free(session: Any) -> None:
            for row in (Confirmation, SealJob):
                session.execute(sa.update(row).values(leased_until=None, leased_by=None))

        self.database.write(free)

    # --- what submissions does

    def ask(self, request: ConfirmationOrder, event_id: str = "") -> None:
        self.database.write(commands.accept_confirmation, envelope(event_id), request, datetime.now(UTC))

    def leave(self, confirmation: str, event_id: str = "") -> None:
        left = ConfirmationLeft(submission_id=7, confirmation_id=confirmation)
        self.database.write(confirmations.leave, envelope(event_id), left, datetime.now(UTC))

    def again(self, confirmation: str, certsign: CertsignOrder, number: int = 2, event_id: str = "") -> None:
        retried = ConfirmationRetried(submission_id=7, confirmation_id=confirmation, round=number, order=certsign)
        self.database.write(confirmations.ask_again, envelope(event_id), retried, datetime.now(UTC))

    def seal(self, request: SealRequest, *ids: str) -> DocumentsSealed:
        """The sealing after these confirmations."""
        seal_ordered(self.database, request.model_copy(update={"confirmations": list(ids)}))
        self.run()
        events = [event for event in told(self.database) if event["type"] == DOCUMENTS_SEALED.type]
        assert events, [event["data"] for event in told(self.database)]
        return DocumentsSealed.model_validate(events[-1]["data"])

    # --- what the person does

    def view(self, confirmation: str = "c1", number: int = 1) -> ConfirmationView:
        return self.answers.view(FindConfirmation(confirmation_id=confirmation, round=number))

    def type_in(self, answers: dict[str, str], confirmation: str = "c1", ask: int | None = None) -> ConfirmationView:
        asked = self.view(confirmation).ask if ask is None else ask
        return self.answers.answer(
            AnswerConfirmation(request_id=uuid7(), confirmation_id=confirmation, ask=asked, answers=answers)
        )

    def come_back(self, state: str, answers: dict[str, str], confirmation: str = "c1") -> ConfirmationView:
        return self.answers.answer(
            AnswerConfirmation(request_id=uuid7(), confirmation_id=confirmation, state=state, answers=answers)
        )

    # --- what became of it

    def row(self, confirmation: str = "c1") -> Confirmation:
        row = self.database.read(confirmations.find, confirmation)
        assert row is not None
        return row

    def file(self, number: int = 0, confirmation: str = "c1") -> bytes:
        """The document as it is signed."""
        signing = self.database.read(confirmations.signings, confirmation)[number]
        assert signing.signed is not None
        return self.blobs.get(BlobRef.model_validate(signing.signed))

    def news(self, confirmation: str | None = None) -> list[ConfirmationChanged]:
        """What was told, in order."""
        found = [
            ConfirmationChanged.model_validate(event["data"])
            for event in told(self.database)
            if event["type"] == CONFIRMATION_CHANGED.type
        ]
        return [one for one in found if confirmation in (None, one.confirmation_id)]


def envelope(event_id: str = "") -> Envelope:
    return Envelope(
        id=event_id or uuid7(),
        type="confirmation.due",
        source="submissions",
        subject="submission:7",
        occurred_at=datetime.now(UTC),
        data={},
    )


def in_mode_signer(order: CertsignOrder) -> CertsignOrder:
    return order.model_copy(update={"mode": CertsignMode.SIGNER})


def confirmation_order(
    request: SealRequest,
    certsign: CertsignOrder,
    *,
    confirmation: str = "c1",
    submitter: int = 1,
    after: tuple[str, ...] = (),
) -> ConfirmationOrder:
    """The order of this signer: their values, and those of whoever has signed before."""
    fill = {key: getattr(request, key) for key in FillRequest.model_fields}
    mine = [value for value in request.values if value.submitter_id <= submitter]
    given = {value.field.uuid: str(value.value) for value in mine if value.submitter_id == submitter}
    checked = ToCheck(
        documents={
            one.uuid: {"name": one.name, "sha256": one.file.sha256, "conditions": []} for one in request.documents
        },
        fields=[],
        parties=[GivenByParty(submitter_id=submitter, party_uuid=f"p{submitter}", values=given)],
    )
    return ConfirmationOrder(
        **{**fill, "values": mine},
        confirmation_id=confirmation,
        submitter_id=submitter,
        certsign=in_mode_signer(certsign),
        after=list(after),
        return_url=RETURN_URL,
        to_check=checked,
    )


def two_signers(blobs: BlobStore, *files: bytes, **more: Any) -> SealRequest:
    """Values of two signers, each with a signature that is seen: the second has the last two of them."""
    request = seal_request(blobs, *files, **more)
    *of_first, ticked, signature = request.values
    areas = [area.model_copy(update={"y": area.y + 0.15}) for area in signature.field.areas]
    field = signature.field.model_copy(update={"uuid": "of-the-first", "name": "Their signature", "areas": areas})
    of_first.append(signature.model_copy(update={"field": field}))
    values = [value.model_copy(update={"submitter_id": 1}) for value in of_first]
    values += [value.model_copy(update={"submitter_id": 2}) for value in (ticked, signature)]
    return request.model_copy(update={"values": values})


def approve(view: ConfirmationView, decision: str = "approve") -> tuple[str, dict[str, str]]:
    """A person on the provider's page: what they come back with, as ``state`` and the rest of the query."""
    assert view.step is ConfirmationStep.REDIRECT, view
    assert view.action_url is not None
    page = httpx.get(view.action_url)
    assert page.status_code == 200, page.text
    number = re.search(r'name="request" value="([^"]+)"', page.text)
    assert number is not None, page.text
    where = urlsplit(view.action_url)
    decided = httpx.post(
        f"{where.scheme}://{where.netloc}{action_of(page.text)}", data={"request": number[1], "decision": decision}
    )
    assert decided.status_code in (302, 303), decided.text
    back = decided.headers["location"]
    assert back.startswith(RETURN_URL)
    query = dict(parse_qsl(urlsplit(back).query))
    return query.pop("state"), query


def action_of(page: str) -> str:
    found = re.search(r'<form[^>]*action="([^"]+)"', page)
    return found[1] if found else "/oauth2/decision"


def code_sent(provider: Provider) -> str:
    """The last one-time code."""
    found = re.search(r"\d{6}", provider.texts[-1][2])
    assert found is not None
    return found[0]


def signed_hashes(data: bytes) -> list[tuple[str, str]]:
    """Of each signature in the file, in their order: the common name of who signed, and the hash that was signed."""
    with pikepdf.open(io.BytesIO(data)) as pdf:
        values = {}
        for one in pdf.Root.AcroForm.Fields:
            if one.get("/FT") == "/Sig" and "/V" in one:
                ranges = [int(number) for number in one.V.ByteRange]
                values[ranges[2] + ranges[3]] = bytes(one.V.Contents)
    found = []
    for _, content in sorted(values.items()):
        signed = cms.ContentInfo.load(content)["content"]
        (signer,) = signed["signer_infos"]
        serial = signer["sid"].chosen["serial_number"].native
        leaf = next(one.chosen for one in signed["certificates"] if one.chosen.serial_number == serial)
        attributes = b"\x31" + signer["signed_attrs"].dump()[1:]
        found.append((leaf.subject.native["common_name"], hashlib.sha256(attributes).hexdigest()))
    return found


def confirm(suite: ConfirmSuite, confirmation: str, person: Callable[[ConfirmationView], None]) -> None:
    """Have a confirmation signed: whatever is asked, the ``person`` does."""
    for _ in range(20):
        suite.run()
        view = suite.view(confirmation, suite.row(confirmation).round)
        if suite.row(confirmation).stage == "signed":
            return
        if view.step in (ConfirmationStep.REDIRECT, ConfirmationStep.QUESTION):
            person(view)
        suite.pass_time()
    raise AssertionError(suite.view(confirmation))
