"""Verification fields on real databases: what is refused before, who may finish an attempt, what shows the proof, who erases it."""

import hashlib
import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from contracts.errors import ServiceError
from contracts.rpc import submissions as rpc
from contracts.rpc.submissions.signing.identity import IdentityProblem, ProvedIdentity
from contracts.runtime.clock import uuid7
from contracts.types import Account, Condition, Submission, Submitter
from services.submissions.commands.signing import codes
from services.submissions.commands.signing import identity as identity_commands
from services.submissions.evidence.sealing import fill_request
from services.submissions.storage.signers import identity_checks
from tests.support.material.submissions import (
    SITE,
    Desk,
    Slug,
    assert_chain_holds,
    at_once,
    create_command,
    field,
    refusal,
    template,
)

ISSUER = "https://login.example.com"
ACCOUNT = Account(identity_checks_available=True, identity_checks_qes_available=True)
ADA = ProvedIdentity(
    issuer=ISSUER,
    subject="248289761001",
    name="Ada Lovelace",
    first_name="Ada",
    last_name="Lovelace",
    email="SIGNER1@example.com",
    acr="urn:high",
)
OTHER = ADA.model_copy(update={"email": "eve@example.com", "name": "Eve"})


def digest(state: str) -> str:
    return hashlib.sha256(state.encode()).hexdigest()


class IdentityDesk(Desk):
    """What the gateway does when a signer goes to the provider and comes back."""

    def start(self, slug: Slug, uuid: str, state: str = "state 1", **more: Any) -> rpc.identity.IdentityCheckStarted:
        own = {"request_id": digest(state), "issuer": ISSUER, "provider": "Acme Login", "ip": "192.0.2.1"}
        command = rpc.identity.StartIdentityCheck(slug=slug, field=uuid, state_digest=digest(state), **{**own, **more})
        return self.database.write(identity_commands.start, command, SITE, self.now)

    def claim(self, state: str = "state 1", **more: Any) -> rpc.identity.IdentityCheckClaimed:
        command = rpc.identity.ClaimIdentityCheck(**{"request_id": uuid7(), **more}, state_digest=digest(state))
        return self.database.write(identity_commands.claim, command, self.now)

    def finish(self, slug: Slug, identity: ProvedIdentity | None = ADA, state: str = "state 1", **more: Any) -> Any:
        command = rpc.identity.FinishIdentityCheck(
            slug=slug,
            identity=identity,
            state_digest=digest(state),
            **{"request_id": uuid7(), "ip": "192.0.2.1", **more},
        )
        return self.database.write(identity_commands.finish, command, SITE, self.now).problem

    def proved(self, slug: Slug, uuid: str, state: str = "state 1", identity: ProvedIdentity = ADA) -> Any:
        """There and back."""
        self.start(slug, uuid, state)
        assert self.claim(state).usable
        return self.finish(slug, identity, state)

    def shown(self, slug: Slug, name: str = "Identity") -> rpc.form.FormField:
        return next(one for one in self.form(slug).fields if one.name == name)

    def lines_of(self, submission_id: int, kind: str) -> list[dict[str, Any]]:
        return [one.data for one in self.get(submission_id).submission_events or [] if one.event_type == kind]


@pytest.fixture
def desk(database_url: str) -> Iterator[IdentityDesk]:
    desk = IdentityDesk(database_url)
    yield desk
    desk.database.dispose()


def one_signer(desk: IdentityDesk, *more: Any, **submitter: Any) -> tuple[Submission, Submitter, str]:
    """A submission with the fields Name and Identity, its signer, the uuid of Identity."""
    identity = field(name="Identity", type="verification", preferences={"method": "aes"})
    made = desk.create(template(field(name="Name"), identity, *more), {"name": "Bo", **submitter}, account=ACCOUNT)
    return made, made.submitters[0], identity.uuid


def values(desk: IdentityDesk, submission_id: int) -> dict[str, Any]:
    return desk.get(submission_id).submitters[0].values


def test_a_signer_proves_who_he_is_and_completes(desk: IdentityDesk) -> None:
    made, bo, uuid = one_signer(desk)
    refused = refusal(lambda: desk.complete(bo.slug))
    assert refused.details == [{"field": uuid, "reason": "is required"}]
    started = desk.start(bo.slug, uuid)
    assert (started.method, started.anew, started.expires_at) == ("aes", False, desk.now + timedelta(minutes=15))
    assert desk.count("form.started") == 1
    claimed = desk.claim()
    assert (claimed.slug, claimed.field, claimed.issuer, claimed.method) == (bo.slug, uuid, ISSUER, "aes")
    assert desk.finish(bo.slug) is None
    shown = desk.shown(bo.slug)
    assert (shown.value, shown.display, shown.verified_as) == ("verified", "Verified", "Ada Lovelace")
    assert values(desk, made.id) == {"Identity": "verified"}
    name = desk.shown(bo.slug, "Name").uuid
    assert desk.complete(bo.slug, {name: "Bo"}).state == "completed"
    assert values(desk, made.id) == {"Name": "Bo", "Identity": "verified"}
    assert desk.events("form.signed")[0]["data"]["data"]["values"] == {"Name": "Bo", "Identity": "verified"}
    said: dict[str, Any] = {"provider": "Acme Login", "issuer": ISSUER, "method": "aes", "ip": "192.0.2.1"}
    said["party"] = {"role": "First Party", "name": "Bo", "email": "signer1@example.com"}
    assert desk.lines_of(made.id, "start_verification") == [said]
    who = {"identified_as": "Ada Lovelace", "firstname": "Ada", "lastname": "Lovelace", "acr": "urn:high"}
    assert desk.lines_of(made.id, "complete_verification") == [{**said, **who, "subject": "248289761001"}]
    assert_chain_holds(desk, made.id)
    order = desk.events("sealing.due")[0]["data"]
    drawn = {one["field"]["type"]: one["value"] for one in order["values"]}
    assert drawn["verification"] == "verified"
    told = json.dumps(desk.events("form.signed", "form.completed", "submission.created", "form.started"))
    assert "248289761001" not in told


def test_nobody_can_say_that_he_is_verified(desk: IdentityDesk) -> None:
    """Neither the page nor the API gives the value, takes it away, or makes the field one that needs none."""
    made, bo, uuid = one_signer(desk)
    for forged in ("verified", True, "x", ["verified"], {"a": 1}):
        for write in (desk.save, desk.complete):
            error = refusal(lambda write=write, forged=forged: write(bo.slug, {uuid: forged}))
            assert (error.code, error.details[0]["field"]) == ("invalid", uuid)
        error = refusal(lambda forged=forged: desk.update_submitter(bo.id, values={"Identity": forged}))
        assert error.details[0]["field"] == "values.Identity"
    overrides: list[dict[str, Any]] = [
        {"default_value": "verified"},
        {"value": "{{name}}"},
        {"readonly": True},
        {"preferences": {"method": "none"}},
        {"preferences": {"method": "qes"}},
    ]
    for override in overrides:
        given = [rpc.api.FieldOverride(name="Identity", **override)]
        assert refusal(lambda given=given: desk.update_submitter(bo.id, fields=given)).code == "invalid"
    assert refusal(lambda: desk.update_submitter(bo.id, readonly_fields=["Identity"])).code == "invalid"
    found = template(field(name="Identity", type="verification"))
    for more in ({"values": {"Identity": "verified"}}, {"readonly_fields": ["Identity"]}):
        assert refusal(lambda more=more: desk.create(found, more, account=ACCOUNT)).code == "invalid"
    assert desk.count("form.started") == 0
    assert values(desk, made.id) == {}
    desk.proved(bo.slug, uuid)
    desk.save(bo.slug, {uuid: None})  # an older page, which does not know of it
    desk.save(bo.slug, {uuid: "verified"})
    desk.update_submitter(bo.id, values={"Identity": None})
    assert values(desk, made.id) == {"Identity": "verified"}


def test_a_value_without_a_proof_is_worth_nothing(desk: IdentityDesk) -> None:
    """Whatever wrote it. Whoever is completed by the API has none."""
    given, cy, _ = one_signer(desk)
    desk.update_submitter(cy.id, completed=True)
    assert values(desk, given.id) == {"Name": None, "Identity": None}
    made, bo, uuid = one_signer(desk)
    desk.proved(bo.slug, uuid)
    desk.database.write(lambda session: session.execute(sa.text("DELETE FROM identity_checks")))
    assert values(desk, made.id) == {"Identity": "verified"}
    assert desk.shown(bo.slug).verified_as is None
    name = desk.shown(bo.slug, "Name").uuid
    error = refusal(lambda: desk.complete(bo.slug, {name: "Bo"}))
    assert error.details == [{"field": uuid, "reason": identity_checks.NOT_PROVED}]
    desk.proved(bo.slug, uuid, "state 2")
    assert desk.complete(bo.slug, {name: "Bo"}).state == "completed"


def test_an_attempt_is_finished_once_by_whom_it_was_begun(desk: IdentityDesk) -> None:
    made, bo, uuid = one_signer(desk)
    _, eve, hers = one_signer(desk)
    desk.start(bo.slug, uuid)
    desk.start(eve.slug, hers, "state of Eve")
    assert refusal(lambda: desk.finish(bo.slug)).code == "conflict"  # nobody came back yet
    assert refusal(lambda: desk.claim("another state")).code == "not_found"
    assert refusal(lambda: desk.finish(bo.slug, state="another state")).code == "not_found"
    claims = at_once(*[desk.claim for _ in range(6)])
    assert [one.usable for one in claims].count(True) == 1
    assert refusal(lambda: desk.finish(eve.slug)).code == "conflict"  # Bo's state, Eve's form
    done = at_once(*[lambda: desk.finish(bo.slug) for _ in range(6)])
    assert [isinstance(one, ServiceError) for one in done].count(False) == 1
    assert len(desk.lines_of(made.id, "complete_verification")) == 1
    assert not desk.claim().usable
    assert refusal(lambda: desk.finish(bo.slug, OTHER)).code == "conflict"
    assert desk.shown(eve.slug).value is None
    assert refusal(lambda: desk.start(bo.slug, uuid, "state 3")).details[0]["reason"] == "is verified"


def test_what_dies_on_the_way_is_begun_again(desk: IdentityDesk) -> None:
    """kill -9 after the signer came back, before it was known what became of it; after an effect, so that the broker delivers the
    same call once more."""
    made, bo, uuid = one_signer(desk)
    assert len({desk.start(bo.slug, uuid).model_dump_json() for _ in range(3)}) == 1
    assert [desk.claim(request_id="the same").usable for _ in range(3)] == [True] * 3
    shown = desk.shown(bo.slug)
    assert (shown.value, shown.verification_problem) == (None, None)
    desk.start(bo.slug, uuid, "state 2")
    desk.claim("state 2")
    assert [desk.finish(bo.slug, state="state 2", request_id="the same") for _ in range(3)] == [None] * 3
    assert refusal(lambda: desk.finish(bo.slug, OTHER, request_id="late", state="state 2")).code == "conflict"
    assert len(desk.lines_of(made.id, "start_verification")) == 2
    assert len(desk.lines_of(made.id, "complete_verification")) == 1
    assert values(desk, made.id) == {"Identity": "verified"}


def test_what_comes_to_nothing_can_be_tried_again(desk: IdentityDesk) -> None:
    made, bo, uuid = one_signer(desk)
    for problem in ("cancelled", "failed", "unreachable", "weak"):
        assert not desk.start(bo.slug, uuid, problem).anew
        desk.claim(problem)
        assert desk.finish(bo.slug, None, problem, problem=IdentityProblem(problem)) == problem
        assert desk.shown(bo.slug).verification_problem == problem
        assert desk.lines_of(made.id, "fail_verification")[-1]["reason"] == problem
    desk.start(bo.slug, uuid)
    desk.now += timedelta(minutes=15)
    assert not desk.claim().usable
    assert desk.shown(bo.slug).verification_problem == "expired"
    assert refusal(lambda: desk.finish(bo.slug)).code == "conflict"
    assert [one["reason"] for one in desk.lines_of(made.id, "fail_verification")][4:] == ["expired"]
    desk.start(bo.slug, uuid, "state 2")
    desk.claim("state 2")
    assert desk.finish(bo.slug, state="state 2") is None
    assert desk.shown(bo.slug).verification_problem is None
    assert_chain_holds(desk, made.id)


def test_another_person_is_refused_and_the_sender_sees_who_it_was(desk: IdentityDesk) -> None:
    made, bo, uuid = one_signer(desk)
    assert desk.proved(bo.slug, uuid, identity=OTHER) == "other_person"
    assert values(desk, made.id) == {}
    (line,) = desk.lines_of(made.id, "fail_verification")
    assert (line["identified_as"], line["proved_email"], line["reason"]) == ("Eve", "eve@example.com", "other_person")
    assert desk.start(bo.slug, uuid, "state 2").anew
    desk.claim("state 2")
    assert desk.finish(bo.slug, OTHER, "state 2", any_email=True) is None  # as the operator allows
    _, unknown, its = one_signer(desk, email=None, phone="+14155550123")
    assert desk.proved(unknown.slug, its, "state 3", OTHER) is None  # no address to compare with
    _, quiet, whose = one_signer(desk)
    silent = ADA.model_copy(update={"email": None, "name": None})
    assert desk.proved(quiet.slug, whose, "state 4", silent) is None
    assert desk.shown(quiet.slug).verified_as == ""
    # Names are another server's words.
    strange = ADA.model_copy(update={"name": "\u202eAda\x00 " + "x" * 900, "acr": "a\nb"})
    made, bo, uuid = one_signer(desk)
    assert desk.proved(bo.slug, uuid, "state 5", strange) is None
    (line,) = desk.lines_of(made.id, "complete_verification")
    assert line["identified_as"].startswith("Ada x")
    assert (len(line["identified_as"]) <= 255, line["acr"]) == (True, "a b")


def test_another_address_is_another_person(desk: IdentityDesk) -> None:
    made, bo, uuid = one_signer(desk)
    desk.proved(bo.slug, uuid)
    desk.update_submitter(bo.id, email="Signer1@Example.com", name="Bo B.")
    assert values(desk, made.id) == {"Identity": "verified"}
    bo = desk.update_submitter(bo.id, email="straße@example.com")
    assert values(desk, made.id) == {}
    strasse = ADA.model_copy(update={"email": "strasse@example.com"})
    assert desk.proved(bo.slug, uuid, "state 2", strasse) == "other_person", "another mailbox"
    bo = desk.update_submitter(bo.id, email="new@example.com")
    assert desk.shown(bo.slug).verified_as is None
    assert desk.proved(bo.slug, uuid, "state 3") == "other_person"
    assert desk.proved(bo.slug, uuid, "state 4", ADA.model_copy(update={"email": "new@example.com"})) is None


def test_only_an_open_form_and_only_its_own_fields(desk: IdentityDesk) -> None:
    first, second = field(name="Identity", type="verification"), field("Second Party", "Identity", "verification")
    name = field(name="Name", required=False)
    made = desk.create(template(first, second, name), {}, {}, account=ACCOUNT)
    ada, bo = made.submitters
    assert refusal(lambda: desk.start(bo.slug, second.uuid)).details[0]["reason"] == "waiting"
    for uuid in (second.uuid, name.uuid, "nothing", ""):
        error = refusal(lambda uuid=uuid: desk.start(ada.slug, uuid))
        assert (error.code, error.details[0]["field"]) == ("invalid", "field")
    assert refusal(lambda: desk.start("nobody", first.uuid)).code == "not_found"
    assert desk.lines_of(made.id, "start_verification") == []
    desk.start(ada.slug, first.uuid)
    assert desk.claim().usable
    desk.decline(ada.slug)
    error = refusal(lambda: desk.finish(ada.slug))
    assert error.details == [{"field": "state", "reason": "declined"}]
    assert desk.lines_of(made.id, "complete_verification") == []
    assert refusal(lambda: desk.start(ada.slug, first.uuid, "state 2")).details[0]["reason"] == "declined"
    _, bo, uuid = one_signer(desk, require_email_2fa=True)
    error = refusal(lambda: desk.start(bo.slug, uuid))
    assert (error.code, error.details[0]["reason"]) == ("forbidden", codes.STATE)


def test_a_field_that_is_not_there_or_optional_needs_no_proof(desk: IdentityDesk) -> None:
    amount = field(name="Amount", type="number")
    large = Condition(field_uuid=amount.uuid, action="greater_than", value=1000)
    strict = field(name="Strict", type="verification", conditions=[large])
    follows = field(
        name="Follows", conditions=[Condition(field_uuid="i", action="equal", value="verified")], required=True
    )
    optional = field(name="Identity", type="verification", required=False, uuid="i")
    found = template(amount, strict, optional, follows)
    small = desk.create(found, {}, account=ACCOUNT)
    assert desk.complete(small.submitters[0].slug, {amount.uuid: 5}).state == "completed"
    assert values(desk, small.id) == {"Amount": 5, "Strict": None, "Identity": None, "Follows": None}
    big = desk.create(found, {}, account=ACCOUNT)
    slug = big.submitters[0].slug
    error = refusal(lambda: desk.complete(slug, {amount.uuid: 5_000}))
    assert [one["field"] for one in error.details] == [strict.uuid]
    desk.save(slug, {amount.uuid: 5_000})
    desk.proved(slug, strict.uuid)
    desk.proved(slug, optional.uuid, "state 2")
    error = refusal(lambda: desk.complete(slug, {}))
    assert [one["field"] for one in error.details] == [follows.uuid]
    assert desk.complete(slug, {follows.uuid: "seen"}).state == "completed"


def test_thirty_attempts_a_day(desk: IdentityDesk) -> None:
    made, bo, uuid = one_signer(desk)
    for number in range(30):
        desk.start(bo.slug, uuid, f"state {number}")
    error = refusal(lambda: desk.start(bo.slug, uuid, "one more"))
    assert (error.code, error.details[0]["retry_after"] > 3_600) == ("rate_limited", True)
    assert len(desk.lines_of(made.id, "start_verification")) == 30
    desk.now += timedelta(days=1)
    assert desk.proved(bo.slug, uuid, "one more") is None
    desk.now += timedelta(days=3)
    desk.database.write(identity_checks.forget, desk.now)
    assert [row.proof is not None for row in desk.rows("SELECT proof FROM identity_checks")] == [True]


def test_what_is_kept_lets_nobody_finish_an_attempt_and_goes_with_the_submission(desk: IdentityDesk) -> None:
    made, bo, uuid = one_signer(desk)
    desk.start(bo.slug, uuid, "the secret state")
    desk.claim("the secret state")
    desk.finish(bo.slug, state="the secret state")
    for table in ("identity_checks", "trail", "answers", "outbox", "rates"):
        assert "the secret state" not in str(desk.rows(f"SELECT * FROM {table}")), table
    desk.remove(made.id, permanently=True)
    for table in ("identity_checks", "trail", "answers", "outbox", "submitters"):
        rows = str(desk.rows(f"SELECT * FROM {table}"))
        assert "Lovelace" not in rows, table
        assert "248289761001" not in rows, table
    assert refusal(lambda: desk.claim("the secret state")).code == "not_found"


def test_a_draft_and_another_signers_page_show_it(desk: IdentityDesk) -> None:
    first, second = field(name="Identity", type="verification"), field("Second Party", "Name")
    made = desk.create(template(first, second), {}, {}, account=ACCOUNT)
    ada, bo = made.submitters
    desk.proved(ada.slug, first.uuid)
    desk.complete(ada.slug, {})
    shown = desk.shown(bo.slug)
    assert (shown.mine, shown.display, shown.verified_as) == (False, "Verified", None)

    def drawn(session: Any) -> Any:
        from services.submissions.storage import store

        found = store.lock(session, made.id)
        assert found is not None
        return fill_request(found.row, found.snapshot, found.submitters, found.attachments, None)

    assert [(one.field.name, one.value) for one in desk.database.write(drawn).values] == [("Identity", "verified")]


def test_without_a_provider_the_field_is_refused_and_qes_needs_more_than_one(desk: IdentityDesk) -> None:
    plain, strict = (
        template(field(name="Identity", type="verification", preferences=one)) for one in ({}, {"method": "qes"})
    )
    some = Account(identity_checks_available=True)
    for found, account in ((plain, Account()), (strict, Account()), (strict, some)):
        command = create_command(found, {}, account=account)
        error = refusal(lambda command=command, found=found: desk.run_create(command, found))
        assert (error.code, error.message) == ("invalid", "Identity verification not configured")
        assert error.details[0]["field"] == "template_id"
    assert desk.create(plain, {}, account=some).id
    assert desk.create(strict, {}, account=ACCOUNT).id
    fixed = template(field(name="Identity", type="verification", readonly=True))
    assert "read-only" in refusal(lambda: desk.create(fixed, {}, account=ACCOUNT)).message
