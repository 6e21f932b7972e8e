"""The picture of the first page on real databases: whose mails show it, and what is not waited for."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from contracts.blobs import BlobRef
from contracts.errors import ServiceError
from contracts.rpc import Rpc, rendering
from contracts.rpc.templates import TemplateSnapshot
from contracts.types import Account, Condition, FieldType, Submission
from services.submissions.commands import submissions
from services.submissions.planning import creation
from services.submissions.planning.first_pages import LATE_AGAIN, PATIENCE, REMEMBERED, FirstPages
from tests.contract.submissions.outgoing.test_reminders import ACCOUNT, remind
from tests.support.material.submissions import SITE, Desk, create_command, field, template, two_signers

TO_BOTH: tuple[dict[str, Any], ...] = ({}, {})


class Renderer:
    """What rendering answers: a picture, or what it refuses. ``takes``: seconds of each call."""

    def __init__(self) -> None:
        self.at, self.takes = 1000.0, 0.0
        self.refusal: ServiceError | None = None
        self.asked: list[str] = []

    def clock(self) -> float:
        return self.at

    def call(self, rpc: Rpc[Any, Any], request: Any) -> Any:
        assert rpc is rendering.DRAW_THUMBNAIL
        self.asked.append(request.file.sha256)
        self.at += self.takes
        if self.refusal is not None:
            raise self.refusal
        return picture_of(request.file)


class FirstPageDesk(Desk):
    """Creates submissions as the service does, with first pages drawn before."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.renderer = Renderer()
        self.first_pages = FirstPages(self.renderer.clock)

    def send(self, found: TemplateSnapshot, *people: dict[str, Any], **more: Any) -> Submission:
        command = create_command(found, *(people or TO_BOTH), **more)
        plan = creation.plan_submission(command, found, self.limits, self.now)
        self.first_pages.note(self.renderer, [(plan, found)], command.account)
        return self.database.write(submissions.create, command, found, plan, [], SITE, self.now)

    def shown(self) -> list[tuple[int, dict[str, Any] | None]]:
        """Of each invitation and reminder the party and the picture."""
        mails = [one["data"] for one in self.events("invitation.due", "reminder.due")]
        return [(mail["submitter_id"], mail["first_page"]) for mail in mails]


def of_its_own(found: TemplateSnapshot) -> TemplateSnapshot:
    """The same with documents that are no other template's."""
    documents = [
        document.model_copy(update={"file": document.file.model_copy(update={"sha256": uuid4().hex * 2})})
        for document in found.documents
    ]
    return found.model_copy(update={"documents": documents})


def picture_of(document: BlobRef) -> BlobRef:
    return BlobRef(key=f"rendering/{document.sha256}", sha256="c" * 64, size=900, media_type="image/png")


def first_page(found: TemplateSnapshot) -> dict[str, Any]:
    return picture_of(found.documents[0].file).model_dump(mode="json")


@pytest.fixture
def desk(database_url: str) -> Iterator[FirstPageDesk]:
    desk = FirstPageDesk(database_url)
    yield desk
    desk.database.dispose()


def test_each_party_sees_the_first_page_of_what_was_sent(desk: FirstPageDesk) -> None:
    found = two_signers(documents=2)
    first, second = desk.send(found, account=ACCOUNT).submitters
    desk.complete(first.slug)
    assert desk.shown() == [(first.id, first_page(found)), (second.id, first_page(found))]
    assert desk.renderer.asked == [found.documents[0].file.sha256], "nothing is drawn when somebody signs"
    other = desk.send(found, account=ACCOUNT)
    assert remind(desk, other.id, other.submitters[0].id, 1)
    assert desk.shown()[2:] == [(other.submitters[0].id, first_page(found))] * 2
    assert len(desk.renderer.asked) == 1, "a template's document is drawn once"


@pytest.mark.parametrize("guard", ["require_email_2fa", "require_phone_2fa"])
def test_who_is_asked_for_a_code_gets_none_before(desk: FirstPageDesk, guard: str) -> None:
    guarded = {guard: True, "phone": "+14155550132"}
    found = two_signers()
    account = Account(phone_codes_available=True)
    first, second = desk.send(found, guarded, {}, account=account, order="random").submitters
    assert dict(desk.shown()) == {first.id: None, second.id: first_page(found)}
    both = desk.send(found, guarded, guarded, account=account, order="random")
    assert [picture for _, picture in desk.shown()[2:]] == [None, None]
    assert len(both.submitters) == 2
    assert len(desk.renderer.asked) == 1


def test_a_code_that_is_asked_for_later_counts_too(desk: FirstPageDesk) -> None:
    found = two_signers()
    first, second = desk.send(found).submitters
    desk.update_submitter(second.id, require_email_2fa=True)
    desk.complete(first.slug)
    assert desk.shown() == [(first.id, first_page(found)), (second.id, None)]


def test_whose_identity_is_to_be_proved_gets_none(desk: FirstPageDesk) -> None:
    proof = field("First Party", "Identity", type=FieldType.VERIFICATION)
    found = template(proof, field("First Party", "Name"), field("Second Party", "Name"))
    account = Account(identity_checks_available=True)
    first, second = desk.send(found, account=account, order="random").submitters
    assert dict(desk.shown()) == {first.id: None, second.id: first_page(found)}


def test_nothing_is_drawn_where_no_mail_may_show_it(desk: FirstPageDesk) -> None:
    found = two_signers()
    quiet = {"send_email": False}
    desk.send(found, account=Account(first_page_in_mails=False))
    desk.send(found, quiet, quiet)
    condition = Condition(field_uuid=found.fields[0].uuid, action="not_empty")
    document = found.documents[0].model_copy(update={"conditions": [condition]})
    desk.send(found.model_copy(update={"documents": [document]}))
    assert desk.renderer.asked == []
    assert {picture for _, picture in desk.shown()} == {None}


def test_another_document_than_was_drawn_is_not_shown(desk: FirstPageDesk) -> None:
    found = two_signers()
    made = desk.send(found)
    other = of_its_own(two_signers()).documents[0].model_dump_json()
    desk.database.write(
        lambda session: session.connection().exec_driver_sql(
            f"UPDATE snapshots SET documents = '[{other}]' WHERE submission_id = {made.id}"
        )
    )
    desk.complete(made.submitters[0].slug)
    assert [picture for _, picture in desk.shown()] == [first_page(found), None]


@pytest.mark.parametrize(
    ("refusal", "again_after"),
    [
        (ServiceError("unavailable", "The service rendering did not answer in time."), LATE_AGAIN),
        (ServiceError("invalid", "The PDF is damaged"), REMEMBERED),
        (None, REMEMBERED),
    ],
)
def test_what_came_of_it_is_remembered_for_a_while(
    desk: FirstPageDesk, refusal: ServiceError | None, again_after: float
) -> None:
    found = two_signers()
    desk.renderer.refusal = refusal
    expected = None if refusal else first_page(found)
    desk.send(found)
    desk.renderer.at += again_after - 0.1
    desk.send(found)
    assert ([picture for _, picture in desk.shown()], len(desk.renderer.asked)) == ([expected, expected], 1)
    desk.renderer.at += 0.2
    desk.renderer.refusal = None
    desk.send(found)
    assert (desk.shown()[-1][1], len(desk.renderer.asked)) == (first_page(found), 2)


def test_many_at_once_wait_together_no_longer_than_one(desk: FirstPageDesk) -> None:
    desk.renderer.takes = PATIENCE / 2
    basis = [of_its_own(two_signers()) for _ in range(5)]
    commands = [create_command(found, *TO_BOTH) for found in basis]
    plans = [
        creation.plan_submission(command, found, desk.limits, desk.now)
        for command, found in zip(commands, basis, strict=True)
    ]
    desk.first_pages.note(desk.renderer, zip(plans, basis, strict=True), Account())
    assert ["first_page" in plan.details for plan in plans] == [True, True, False, False, False]
    assert desk.renderer.asked == [found.documents[0].file.sha256 for found in basis[:2]]
