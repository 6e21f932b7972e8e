"""What signers see and send, on SQLite and PostgreSQL."""

import json
from datetime import timedelta
from typing import Any

import pytest

from contracts.errors import ServiceError
from contracts.events import REGISTRY
from contracts.rpc import submissions as rpc
from contracts.rpc.templates import TemplateSnapshot
from contracts.runtime.clock import uuid7
from contracts.types import Area, Condition, Party
from services.submissions.commands.signing import form
from services.submissions.creating.fitting import Doubtful
from services.submissions.views import forms
from tests.support.material.submissions import (
    NOW,
    SITE,
    Desk,
    Slug,
    field,
    refusal,
    template,
)

# ---------------------------------------------------------------- the signing page


def test_a_later_signer_waits_and_the_server_refuses_his_values(desk: Desk) -> None:
    made = desk.create()
    slug = made.submitters[1].slug
    waiting = desk.form(slug)
    assert (waiting.state, waiting.fields, waiting.documents) == ("waiting", [], [])
    (own,) = [one.uuid for one in desk.get(made.id, include="fields").fields or [] if one.role == "Second Party"]
    for attempt in (desk.save, desk.complete):
        refused = refusal(lambda attempt=attempt: attempt(slug, {own: "early"}))
        assert (refused.code, refused.details) == ("forbidden", [{"field": "state", "reason": "waiting"}])
    assert desk.get(made.id).submitters[1].values == {}
    assert desk.view(slug).state == "waiting"
    assert desk.count("form.viewed") == 0


def test_who_asks_for_the_state_only_gets_no_more(desk: Desk) -> None:
    made = desk.create()

    def state_of(slug: Slug) -> rpc.form.SigningForm:
        return desk.database.read(forms.form, rpc.form.OpenForm(slug=slug, state_only=True), SITE, desk.now)

    first, second = (one.slug for one in made.submitters)
    for slug in (first, second):
        whole, state = desk.form(slug), state_of(slug)
        assert (state.state, state.fields, state.documents, state.shown) == (whole.state, [], [], None)
        assert (state.submission_name, state.role) == (whole.submission_name, whole.role)
    assert (state_of(first).state, state_of(second).state) == ("open", "waiting")
    desk.complete(first)
    assert (state_of(first).state, state_of(first).copies) == ("completed", None)
    assert refusal(lambda: state_of("nobody")).code == "not_found"


def test_values_are_checked_as_in_the_browser(desk: Desk) -> None:
    found = template(
        field(name="Code", uuid="code", validation={"pattern": "[A-Z]{3}", "message": "Three capitals"}),
        field(name="Age", uuid="age", type="number", validation={"min": 18, "step": 1}),
        field(name="Colour", uuid="colour", type="select", options=["Red", "Green"]),
        field(name="Fixed", uuid="fixed", default_value="as it is", readonly=True),
        field(name="Sign", uuid="sign", type="signature"),
        field(name="Note", uuid="note", required=False),
        field("Second Party", uuid="foreign"),
    )
    made = desk.create(found, {}, {})
    slug = made.submitters[0].slug

    def reasons(values: dict[str, Any], *, complete: bool = False) -> dict[str, str]:
        refused = refusal(lambda: (desk.complete if complete else desk.save)(slug, values))
        assert refused.code == "invalid"
        return {one["field"]: one["reason"] for one in refused.details}

    assert reasons({"code": "abc"}) == {"code": "Three capitals"}
    assert reasons({"age": 17.5}) == {"age": "must not be below 18"}
    assert reasons({"age": "old"}) == {"age": "must be a number"}
    assert reasons({"colour": "Blue"}) == {"colour": "must be one of Red, Green"}
    assert reasons({"fixed": "changed"}) == {"fixed": "is read-only"}
    assert reasons({"sign": "no attachment of theirs"}) == {"sign": "must be a file that was uploaded for it"}
    assert reasons({"foreign": "x"}) == {"foreign": "is not a field of this signer"}
    assert reasons({"nothing": "x"}) == {"nothing": "is not a field of this signer"}
    assert desk.get(made.id).submitters[0].values == {}
    desk.save(slug, {"code": "ABC", "fixed": "as it is"})
    missing = reasons({"age": 20}, complete=True)
    assert missing == {"colour": "is required", "sign": "is required"}
    assert desk.get(made.id).submitters[0].values == {"Code": "ABC"}
    assert desk.count("form.signed") == 0


def test_a_signature_that_asks_for_a_reason(desk: Desk) -> None:
    """Chosen from the list, stored step by step, required on completion, and printed (specification 2.7)."""
    offered = {"reasons": ["I approve", "I  have\nreviewed", "I approve"]}
    found = template(
        field(name="Sign", uuid="sign", type="signature", preferences=offered),
        field(name="Again", uuid="again", type="signature", preferences=offered, required=False),
        field(name="Name", uuid="name", required=False),
    )
    made = desk.create(found, {})
    slug = made.submitters[0].slug
    assert desk.form(slug).fields[0].reasons == ["I approve", "I have reviewed"]
    assert (desk.form(slug).fields[0].reason, desk.form(slug).fields[2].reasons) == (None, [])
    signed = {"sign": desk.attach(slug)}

    def refused(**answers: Any) -> list[dict[str, str]]:
        return refusal(lambda: desk.save(slug, answers.pop("values", {}), **answers)).details

    needed = "must have a reason for signing, one of I approve, I have reviewed"
    assert refused(reasons={"sign": "Just so"}) == [{"field": "sign", "reason": needed}]
    for stranger in ("name", "nothing"):
        assert refused(reasons={stranger: "I approve"})[0]["reason"] == "asks for no reason for signing"
    missing = refusal(lambda: desk.complete(slug, signed))
    assert (missing.details, missing.message) == ([{"field": "sign", "reason": needed}], f"Sign {needed}")

    desk.save(slug, signed, reasons={"sign": "I approve", "again": "I approve"})
    assert desk.form(slug).fields[0].reason == "I approve"
    desk.save(slug, {}, reasons={"sign": None})
    assert refusal(lambda: desk.complete(slug, signed)).details[0]["field"] == "sign"
    desk.complete(slug, signed, reasons={"sign": "I have reviewed"})
    (order,) = desk.events("sealing.due")
    assert order["data"]["notes"] == [{"field_uuid": "sign", "reason": "I have reviewed"}]


def test_a_reason_that_is_no_longer_offered_does_not_count(desk: Desk) -> None:
    found = template(field(name="Sign", uuid="sign", type="signature", preferences={"reasons": ["I approve"]}))
    made = desk.create(found, {})
    slug = made.submitters[0].slug
    desk.save(slug, {"sign": desk.attach(slug)}, reasons={"sign": "I approve"})
    others = [rpc.api.FieldOverride(name="Sign", preferences={"reasons": ["I agree"]})]
    desk.update_submitter(made.submitters[0].id, fields=others)
    assert (desk.form(slug).fields[0].reasons, desk.form(slug).fields[0].reason) == (["I agree"], None)
    assert refusal(lambda: desk.complete(slug, {})).details[0]["field"] == "sign"
    desk.complete(slug, {}, reasons={"sign": "I agree"})
    assert desk.events("sealing.due")[0]["data"]["notes"][0]["reason"] == "I agree"


def test_who_is_completed_by_the_api_needs_no_reason(desk: Desk) -> None:
    found = template(field(name="Sign", uuid="sign", type="signature", preferences={"reasons": ["I approve"]}))
    made = desk.create(found, {})
    slug = made.submitters[0].slug
    desk.save(slug, {"sign": desk.attach(slug)})
    desk.update_submitter(made.submitters[0].id, completed=True)
    (order,) = desk.events("sealing.due")
    assert order["data"]["notes"] == []


def test_hidden_fields_lose_their_value_and_are_not_required(desk: Desk) -> None:
    shown_when = [{"field_uuid": "box", "action": "checked"}]
    found = template(
        field(name="Box", uuid="box", type="checkbox", required=False),
        field(name="Why", uuid="why", conditions=shown_when),
    )
    slug = desk.create(found, {}).submitters[0].slug
    assert refusal(lambda: desk.complete(slug, {"box": True})).details[0]["field"] == "why"
    desk.save(slug, {"box": True, "why": "because"})
    desk.complete(slug, {"box": False})
    assert desk.get(1).submitters[0].values == {"Box": False, "Why": None}


def test_an_emptied_field_does_not_get_its_default_back(desk: Desk) -> None:
    found = template(field(name="Note", uuid="note", default_value="by default", required=False), field(uuid="other"))
    first, second = (desk.create(found, {}).submitters[0] for _ in range(2))
    assert desk.form(first.slug).fields[0].value == "by default"
    desk.save(first.slug, {"note": ""})
    assert desk.form(first.slug).fields[0].value is None
    for one in (first, second):
        desk.complete(one.slug, {"other": "x"})
    assert desk.get(first.submission_id).submitters[0].values["Note"] is None
    assert desk.get(second.submission_id).submitters[0].values["Note"] == "by default"


def test_a_signer_sees_what_is_on_the_page_and_nothing_else(desk: Desk) -> None:
    found = template(
        field("First Party", "Name", uuid="name"),
        field("First Party", "Secret", uuid="secret", preferences={"mask": True}),
        field("First Party", "Passport", "file", uuid="passport", required=False),
        field("First Party", "Later", uuid="later", required=False),
        field("Second Party", "Answer", uuid="answer", conditions=[{"field_uuid": "secret", "action": "not_empty"}]),
    )
    made = desk.create(found, {"email": "sam-canary@example.com", "name": "Sam"}, {}, order="random")
    second = made.submitters[1].slug
    desk.save(made.submitters[0].slug, {"name": "half-typed"})
    assert [one.uuid for one in desk.form(second).fields] == []
    desk.complete(made.submitters[0].slug, {"name": "Samuel", "secret": "canary-4711"})
    shown = desk.form(second)
    assert {one.uuid: (one.value, one.display, one.mine) for one in shown.fields} == {
        "name": ("Samuel", "Samuel", False),
        "secret": (None, "XXXXXX-XXXX", False),
        "answer": (None, None, True),
    }
    assert shown.fields[-1].conditions == []
    text = shown.model_dump_json()
    assert "canary" not in text


def test_views_are_counted_once_for_one_look(desk: Desk) -> None:
    slug = desk.create().submitters[0].slug
    for seconds in (0, 1, 10):
        desk.now = NOW + timedelta(seconds=seconds)
        assert desk.view(slug, ip="192.0.2.1").state == "open"
    assert desk.count("form.viewed") == 2


def test_unknown_slugs(desk: Desk) -> None:
    for attempt in (
        desk.form,
        desk.view,
        desk.decline,
        lambda slug: desk.save(slug, {}),
        lambda slug: desk.complete(slug, {}),
    ):
        assert refusal(lambda attempt=attempt: attempt("nobody")).code == "not_found"


def test_what_the_finished_form_offers(desk: Desk) -> None:
    made = desk.create(template(field()), {"completed_redirect_url": "https://example.com/thanks"})
    slug = made.submitters[0].slug
    desk.complete(slug)
    waiting = desk.form(slug)
    assert (waiting.state, waiting.sealing_status, waiting.results) == ("completed", "sealing", [])
    assert waiting.completed_redirect_url == "https://example.com/thanks"
    desk.seal(made.id)
    done = desk.form(slug)
    assert [one.name for one in done.results] == ["agreement 1"]
    assert done.audit_log_url


# ---------------------------------------------------------------- documents under conditions
def conditional_annex() -> TemplateSnapshot:
    """A contract, and an annex for companies only; a field on both and one on the annex alone."""
    found = template(
        field(name="Kind", uuid="kind", required=False),
        field(name="Number", uuid="number"),
        field(name="Name", uuid="name"),
        documents=2,
    )
    contract, annex = found.documents
    place = {"x": 0.1, "y": 0.1, "w": 0.2, "h": 0.05}
    on = {one.name: Area(**place, attachment_uuid=one.uuid) for one in found.documents}
    of = {"kind": [contract], "number": [annex], "name": [contract, annex]}
    fields = [one.model_copy(update={"areas": [on[paper.name] for paper in of[one.uuid]]}) for one in found.fields]
    company = Condition(field_uuid="kind", action="equal", value="company")
    documents = [contract, annex.model_copy(update={"conditions": [company]})]
    return found.model_copy(update={"fields": fields, "documents": documents})


def test_a_document_that_its_conditions_hide_is_not_sealed_and_its_fields_are_not_asked_for(desk: Desk) -> None:
    found = conditional_annex()
    annex = found.documents[1].uuid
    made = desk.create(found, {})
    slug = made.submitters[0].slug
    shown = desk.form(slug)
    assert [[one.field_uuid for one in document.conditions] for document in shown.documents] == [[], ["kind"]]
    for document in shown.documents:
        page = rpc.form.FormPage(slug=slug, document_uuid=document.uuid)
        asked = desk.database.read(forms.file_of, page, SITE, desk.now)
        assert shown.drawn_from[document.uuid] == rpc.form.DrawnFrom(file=asked.file, footer=asked.footer)
    assert refusal(lambda: desk.complete(slug, {"kind": "company", "name": "Sam"})).details[0]["field"] == "number"
    desk.save(slug, {"kind": "company", "number": "FN 1"})
    desk.complete(slug, {"kind": "person", "name": "Sam"})
    assert desk.get(made.id).submitters[0].values == {"Kind": "person", "Number": None, "Name": "Sam"}
    (order,) = desk.events("sealing.due")
    data: Any = REGISTRY["sealing.due"].model.model_validate(order["data"])
    assert [one.name for one in data.documents] == ["agreement 1"]
    places = {one.field.name: [area.attachment_uuid for area in one.field.areas] for one in data.values}
    assert places == {"Kind": [data.documents[0].uuid], "Name": [data.documents[0].uuid]}
    assert annex not in json.dumps([one.model_dump(mode="json") for one in data.values])
    gone = rpc.form.FormPage(slug=slug, document_uuid=annex)
    assert refusal(lambda: desk.database.read(forms.file_of, gone, SITE, desk.now)).code == "not_found"


def test_a_document_that_others_decided_about_is_not_shown_to_later_signers(desk: Desk) -> None:
    found = conditional_annex()
    later = field("Second Party", "Later", uuid="later").model_copy(update={"areas": found.fields[1].areas})
    own = field("Second Party", "Own", uuid="own")
    parties = [*found.parties, Party(uuid="uuid of Second Party", name="Second Party")]
    found = found.model_copy(update={"fields": [*found.fields, later, own], "parties": parties})
    for kind, documents, fields in (("person", 1, ["kind", "name", "own"]), ("company", 2, None)):
        made = desk.create(found, {}, {})
        first, second = (one.slug for one in made.submitters)
        desk.complete(first, {"kind": kind, "name": "Sam", "number": "FN 1"})
        shown = desk.form(second)
        assert len(shown.documents) == documents
        assert [one.conditions for one in shown.documents] == [[]] * documents, "it is decided"
        assert [one.uuid for one in shown.fields] == (fields or ["kind", "number", "name", "later", "own"])
        desk.complete(second, {"own": "x"} if fields else {"own": "x", "later": "y"})


def asked_about(desk: Desk, slug: Slug, values: dict[str, Any], *, saved: bool = False) -> dict[str, int]:
    """Of which fields rendering would be asked whether they fit, by uuid, and in how many places."""
    kind = rpc.form.SaveValues if saved else rpc.form.CompleteForm
    command = kind(request_id=uuid7(), slug=slug, values=values)
    question = desk.database.read(forms.drawn, command, SITE, desk.now)
    assert question is not None
    return {one.field.uuid: len(one.field.areas) for one in question.entries}


def test_what_may_not_fit_is_asked_about_before_anything_is_written(desk: Desk) -> None:
    """Seen in the transaction, which is then left; what surely fits is written by it at once."""
    made = desk.create(conditional_annex(), {})
    slug = made.submitters[0].slug

    def write(use_case: Any, kind: Any, values: dict[str, Any]) -> Any:
        command = kind(request_id=uuid7(), slug=slug, values=values)

        def check(submission: Any, submitter: Any) -> None:
            forms.refuse_doubtful(command, submission, submitter, desk.now)

        return desk.database.write(use_case, command, desk.limits, SITE, desk.now, check)

    before = desk.rows("SELECT * FROM submitters")
    long = {"kind": "person", "name": "W" * 400}
    for use_case, kind in ((form.save, rpc.form.SaveValues), (form.complete, rpc.form.CompleteForm)):
        with pytest.raises(Doubtful) as doubtful:
            write(use_case, kind, long)
        assert "name" in {entry.field.uuid for entry in doubtful.value.question.entries}
    assert desk.rows("SELECT * FROM submitters") == before
    assert desk.rows("SELECT * FROM answers WHERE method LIKE '%form%' OR method LIKE '%values%'") == []
    assert write(form.save, rpc.form.SaveValues, {"kind": "person", "name": "Sam"}).state == "open"
    assert write(form.complete, rpc.form.CompleteForm, {"kind": "person"}).state == "completed"
    with pytest.raises(ServiceError) as refused:
        write(form.save, rpc.form.SaveValues, long)
    assert refused.value.details[0]["field"] == "state", "who may send nothing is told so, and rendering is not asked"


def test_what_was_hidden_when_it_was_stored_is_looked_at_when_it_is_shown(desk: Desk) -> None:
    """Otherwise a value that nobody can draw would be found when everybody has signed, and nobody can mend it."""
    found = conditional_annex()
    made = desk.create(found, {})
    slug = made.submitters[0].slug
    assert asked_about(desk, slug, {"name": "Sam", "number": "FN 1"}, saved=True) == {"name": 1}
    desk.save(slug, {"name": "Sam", "number": "FN 1"})
    assert asked_about(desk, slug, {"kind": "company"}) == {"kind": 1, "name": 2, "number": 1}
    assert asked_about(desk, slug, {"kind": "person"}) == {"kind": 1, "name": 1}

    plain = field(name="Plain", uuid="plain")
    trigger = field(name="Trigger", uuid="trigger", required=False)
    remark = field(name="Remark", uuid="remark", conditions=[{"field_uuid": "trigger", "action": "not_empty"}])
    remark = remark.model_copy(update={"areas": [found.fields[0].areas[0]]})
    plain = plain.model_copy(update={"areas": remark.areas})
    made = desk.create(template(plain, trigger, remark), {})
    slug = made.submitters[0].slug
    assert asked_about(desk, slug, {"plain": "x", "remark": "y"}, saved=True) == {"plain": 1}
    desk.save(slug, {"plain": "x", "remark": "y"})
    assert asked_about(desk, slug, {"trigger": "z"}) == {"remark": 1}


def test_what_others_may_yet_bring_to_light_is_looked_at_when_a_signer_completes(desk: Desk) -> None:
    found = conditional_annex()
    decider = field("Second Party", "Decider", uuid="decider", required=False)
    parties = [*found.parties, Party(uuid="uuid of Second Party", name="Second Party")]
    contract, annex = found.documents
    decided = annex.model_copy(update={"conditions": [Condition(field_uuid="decider", action="not_empty")]})
    found = found.model_copy(
        update={"fields": [*found.fields, decider], "parties": parties, "documents": [contract, decided]}
    )
    made = desk.create(found, {}, {})
    first, second = (one.slug for one in made.submitters)
    assert asked_about(desk, first, {"name": "Sam", "number": "FN 1"}) == {"name": 2, "number": 1}
    desk.complete(first, {"kind": "x", "name": "Sam", "number": "FN 1"})
    desk.complete(second, {"decider": "yes"})
    (order,) = desk.events("sealing.due")
    assert len(order["data"]["documents"]) == 2
