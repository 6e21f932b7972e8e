"""What a request for a submission means, and everything that it is refused for."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from contracts.errors import ServiceError
from contracts.types import Condition, Order, Role
from services.submissions.planning import creation, plan
from tests.support.material.submissions import ADMIN, NOW, Limits, create_command, field, template, two_signers

THREE = template(*(field(role, f"Of {role}") for role in ("First Party", "Second Party", "Third Party")))


def planned(*submitters: dict[str, Any], snapshot: Any = None, **more: Any) -> plan.Plan:
    snapshot = snapshot or two_signers()
    return creation.plan_submission(create_command(snapshot, *submitters, **more), snapshot, Limits(), NOW)


def refused(*submitters: dict[str, Any], snapshot: Any = None, **more: Any) -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        planned(*submitters, snapshot=snapshot, **more)
    return caught.value


def roles(plan: plan.Plan) -> list[str]:
    return [one.party.name for one in plan.submitters]


def test_a_missing_role_goes_by_position() -> None:
    assert roles(planned({"role": "First Party"}, {}, {}, snapshot=THREE)) == [
        "First Party",
        "Second Party",
        "Third Party",
    ]


def test_roles_match_whatever_their_case_and_fewer_submitters_than_roles_are_fine() -> None:
    plan = planned({"role": " third party "}, {"uuid": "uuid of First Party"}, snapshot=THREE)
    assert roles(plan) == ["Third Party", "First Party"]
    assert {one.role for one in plan.fields} == {"First Party", "Third Party"}


def test_an_unknown_role_is_refused_with_the_roles_there_are() -> None:
    error = refused({"role": "Buyer"})
    assert error.message == 'Unknown submitter role: Buyer. Template defines ["First Party", "Second Party"]'
    assert error.details[0]["field"] == "submitters[0].role"


@pytest.mark.parametrize(
    ("submitters", "message"),
    [
        ([{}, {}, {}], "Defined more signing parties than in template"),
        ([{"role": "First Party"}, {"role": "first party"}], "role must be unique in `submitters`."),
        ([{"role": "Second Party"}, {}], "role must be unique in `submitters`."),
        ([], "submitters is required"),
    ],
)
def test_roles_that_do_not_fit(submitters: list[dict[str, Any]], message: str) -> None:
    assert refused(*submitters).message == message


def test_all_faults_are_named_at_once() -> None:
    error = refused({"email": "john@example"}, {"phone": "12345", "message": {"subject": "Hi"}})
    assert error.message.startswith("email is invalid in `submitters[0]`.")
    fields = [one["field"] for one in error.details]
    assert fields == ["submitters[0].email", "submitters[1].phone", "submitters[1].message.body"]


@pytest.mark.parametrize(
    ("submitter", "field_name"),
    [
        ({"email": None}, "submitters[0].email"),
        ({"email": " ", "phone": ""}, "submitters[0].email"),
        ({"email": "a@b.co\nBcc: c@d.ef"}, "submitters[0].email"),
        ({"phone": "+99912345678"}, "submitters[0].phone"),
        ({"reply_to": "not an address"}, "submitters[0].reply_to"),
        ({"completed_redirect_url": "javascript:alert(1)"}, "submitters[0].completed_redirect_url"),
        ({"name": "x" * 256}, "submitters[0].name"),
        ({"order": -1}, "submitters[0].order"),
        ({"order": 2**40}, "submitters[0].order"),
        ({"external_id": "x" * 256}, "submitters[0].external_id"),
        ({"fields": [{"name": "Nmae", "required": False}]}, "submitters[0].fields[0].name"),
        ({"fields": [{"required": False}]}, "submitters[0].fields[0]"),
        ({"readonly_fields": ["Nmae"]}, "submitters[0].readonly_fields[0]"),
        ({"values": {"Name": {"a": 1}}}, "submitters[0].values.Name"),
        (
            {"fields": [{"name": "Name", "validation": {"pattern": "(?=a)"}}]},
            "submitters[0].fields[0].validation.pattern",
        ),
        (
            {"fields": [{"name": "Name", "validation": {"pattern": "[0-9]+"}, "value": "x"}]},
            "submitters[0].fields[0].value",
        ),
        (
            {"fields": [{"name": "Name", "preferences": {"align": "middle"}}]},
            "submitters[0].fields[0].preferences.align",
        ),
    ],
)
def test_faults_of_a_submitter(submitter: dict[str, Any], field_name: str) -> None:
    assert [one["field"] for one in refused(submitter).details] == [field_name]


@pytest.mark.parametrize(
    ("more", "field_name"),
    [
        ({"expire_at": NOW - timedelta(seconds=1)}, "expire_at"),
        ({"expire_at": datetime(2020, 1, 1)}, "expire_at"),  # noqa: DTZ001 - a caller may leave the zone out
        ({"completed_redirect_url": "file:///etc/passwd"}, "completed_redirect_url"),
        ({"reply_to": "a@b.co\r\nBcc: c@d.ef"}, "reply_to"),
        ({"bcc_completed": "a@b.co, nobody"}, "bcc_completed"),
        ({"message": {"subject": "Only this"}}, "message.body"),
        ({"message": {"subject": "a\nb", "body": "x"}}, "message.subject"),
        ({"preferences": {"require_email_2fa": "often"}}, "preferences.require_email_2fa"),
        ({"preferences": {"require_phone_2fa": "perhaps"}}, "preferences.require_phone_2fa"),
        ({"preferences": {"documents_copy_email_enabled": "maybe"}}, "preferences.documents_copy_email_enabled"),
        ({"preferences": {"submitters_order": "alphabetic"}}, "preferences.submitters_order"),
        ({"preferences": {"bcc_completed": "x"}}, "preferences.bcc_completed"),
    ],
)
def test_faults_of_the_submission(more: dict[str, Any], field_name: str) -> None:
    assert [one["field"] for one in refused({}, {}, **more).details] == [field_name]


def test_a_code_needs_an_address_and_the_stricter_wish_holds() -> None:
    by_phone = {"email": None, "phone": "+14155550123"}
    error = refused({}, by_phone, preferences={"require_email_2fa": True})
    assert [one["field"] for one in error.details] == ["submitters[1].email"]
    assert [one["field"] for one in refused({**by_phone, "require_email_2fa": True}, {}).details] == [
        "submitters[0].email"
    ]
    everybody = planned({}, {"require_email_2fa": False}, preferences={"require_email_2fa": True})
    assert [one.preferences.get("require_email_2fa") for one in everybody.submitters] == [True, True]
    one_of_two = planned({"require_email_2fa": True}, {})
    assert [one.preferences.get("require_email_2fa") for one in one_of_two.submitters] == [True, None]
    by_template = two_signers(preferences={"require_email_2fa": True})
    asked = planned({}, {}, snapshot=by_template)
    assert [one.preferences.get("require_email_2fa") for one in asked.submitters] == [True, True]
    overridden = planned({}, {}, snapshot=by_template, preferences={"require_email_2fa": False})
    assert [one.preferences.get("require_email_2fa") for one in overridden.submitters] == [None, None]


def test_values_go_by_name_in_several_spellings_and_unknown_ones_are_ignored() -> None:
    snapshot = template(
        field(name="Full Name"), field(name="Amount", type="number"), field(name="Full Name", uuid="second")
    )
    plan = planned({"values": {"full_name": "Ann", "AMOUNT": "12", "nothing like it": 1}}, snapshot=snapshot)
    assert plan.submitters[0].values == {snapshot.fields[0].uuid: "Ann", "second": "Ann", snapshot.fields[1].uuid: 12}


def test_overrides_change_the_copy_of_the_submission_only() -> None:
    original = field(name="Name", validation={"min": 1}, preferences={"align": "left", "font": "Times"}, title="Before")
    snapshot = template(original)
    override = {
        "name": "Name",
        "default_value": "Ann",
        "readonly": True,
        "required": False,
        "title": "After",
        "description": " ",
        "validation": {"pattern": "A.*"},
        "preferences": {"align": "right", "unknown": 1},
    }
    plan = planned({"fields": [override]}, snapshot=snapshot)
    (changed,) = plan.fields
    assert (changed.default_value, changed.readonly, changed.required) == ("Ann", True, False)
    assert (changed.title, changed.description) == ("After", None)
    assert changed.validation == {"min": 1, "pattern": "A.*"}
    assert changed.preferences == {"align": "right", "font": "Times"}
    assert plan.submitters[0].values == {original.uuid: "Ann"}
    assert snapshot.fields[0] == original


def test_a_value_with_a_placeholder_waits_as_default() -> None:
    snapshot = template(field(name="When", type="date"), field(name="Who"))
    plan = planned({"values": {"When": "{{date}}", "Who": "for {name}"}}, snapshot=snapshot)
    assert plan.submitters[0].values == {}
    assert [one.default_value for one in plan.fields] == ["{{date}}", "for {name}"]
    both = planned(
        {"fields": [{"name": "Who", "default_value": "Ann"}], "values": {"Who": "{name}"}}, snapshot=snapshot
    )
    assert (both.submitters[0].values, both.fields[1].default_value) == ({}, "{name}"), "values win over fields"


def test_pictures_are_listed_and_their_values_are_the_attachments_to_come() -> None:
    snapshot = template(field(name="Sign", type="signature"), field(name="Papers", type="file"))
    plan = planned({"values": {"Sign": "Ann Smith", "Papers": ["https://a.example/x.pdf", "aGk="]}}, snapshot=snapshot)
    assert [source.raw for source in plan.sources] == ["Ann Smith", "https://a.example/x.pdf", "aGk="]
    values = plan.submitters[0].values
    assert values[snapshot.fields[0].uuid] == plan.sources[0].uuid
    assert values[snapshot.fields[1].uuid] == [plan.sources[1].uuid, plan.sources[2].uuid]


def test_texts_that_a_font_may_lack_are_listed_with_their_place() -> None:
    plan = planned({"values": {"Name": "漢字"}}, {"values": {"Name": "Łukasz"}})
    assert plan.texts == [("submitters[0].values.Name", "漢字")]


def test_reasons_for_signing_that_a_font_may_lack_are_listed_with_their_place() -> None:
    """They are printed: whoever offers them is told, not whoever signs."""
    snapshot = template(field(name="Sign", type="signature", preferences={"reasons": ["Fine", "同意"]}))
    assert planned({}, snapshot=snapshot).texts == [("fields.Sign.preferences.reasons", "同意")]
    given = {"name": "Sign", "preferences": {"reasons": ["承認"]}}
    path = "submitters[0].fields[0].preferences.reasons"
    assert planned({"fields": [given]}, snapshot=snapshot).texts == [(path, "承認")]


def test_a_role_without_fields_is_a_viewer() -> None:
    """Acceptance case 21 of the peer."""
    snapshot = template(field("First Party"), roles=("First Party", "Second Party"))
    plan = planned({}, {}, snapshot=snapshot)
    assert [one.viewer for one in plan.submitters] == [False, True]
    assert "submitters[1].completed" in str(refused({}, {"completed": True}, snapshot=snapshot).details)
    assert (
        refused({"role": "Second Party"}, snapshot=snapshot).message
        == "submitters must have at least one role with fields"
    )


def test_templates_that_cannot_be_sent() -> None:
    assert refused({}, snapshot=template(field(), archived=True)).message == "Template has been archived"
    assert refused({}, snapshot=template(roles=("First Party",))).message == "Template does not contain fields"
    payment = template(field(name="Pay", type="payment"))
    assert refused({}, snapshot=payment).message == "template_id has the payment field Pay without a price"
    priced = {"fields": [{"name": "Pay", "preferences": {"price": "25", "payment_url": "https://pay.example.com"}}]}
    assert planned(priced, snapshot=payment).fields[0].preferences == {
        "price": 25,
        "payment_url": "https://pay.example.com",
    }
    look_ahead = template(field(name="Odd", validation={"pattern": "(?!x)"}))
    assert "Odd whose pattern" in refused({}, snapshot=look_ahead).message


def test_limits_are_named() -> None:
    many = template(*(field(name=f"F{n}", uuid=f"u{n}") for n in range(2_001)))
    assert "2000 fields" in refused({}, snapshot=many).message
    crowd = template(*(field(role=f"R{n}", uuid=f"u{n}") for n in range(51)))
    assert "50" in refused(*({} for _ in range(51)), snapshot=crowd).message
    wordy = template(*(field(name=f"F{n}", uuid=f"u{n}") for n in range(120)))
    error = refused({"values": {f"F{n}": "x" * 9_000 for n in range(120)}}, snapshot=wordy)
    assert "1,000,000 bytes" in error.message


def test_the_order_comes_from_the_request_then_its_preferences_then_the_template() -> None:
    random = two_signers(preferences={"submitters_order": "random"})
    assert planned({}, {}).order is Order.PRESERVED
    assert planned({}, {}, snapshot=random).order is Order.RANDOM
    assert planned({}, {}, snapshot=random, preferences={"submitters_order": "preserved"}).order is Order.PRESERVED
    assert planned({}, {}, snapshot=random, order=Order.PRESERVED).order is Order.PRESERVED


def test_a_missing_place_in_the_order_is_the_position() -> None:
    plan = planned({"order": 1}, {"order": 1}, {}, snapshot=THREE)
    assert [one.group for one in plan.submitters] == [1, 1, 2]


def test_send_email_is_inherited() -> None:
    plan = planned({}, {"send_email": True}, send_email=False)
    assert [one.preferences["send_email"] for one in plan.submitters] == [False, True]


def test_a_viewer_of_the_account_may_not_send() -> None:
    error = refused({}, {}, actor=ADMIN.model_copy(update={"role": Role.VIEWER}))
    assert error.code == "forbidden"


def test_an_empty_message_is_none_and_addresses_are_not_corrected() -> None:
    plan = planned({"email": "  Ann.Smith+x@Gmial.com "}, {"message": {}}, message={}, reply_to="A <a@b.co>; c@d.ef")
    assert plan.submitters[0].email == "Ann.Smith+x@Gmial.com"
    assert plan.submitters[1].message is None
    assert plan.details == {"send_email": True, "reply_to": "a@b.co, c@d.ef"}


def test_names_read_in_order() -> None:
    plan = planned({"name": "exe\u202egpj.\u0000\n Smith "}, {})
    assert plan.submitters[0].name == "exegpj. Smith"


def test_text_of_a_value_creates_nothing() -> None:
    """Second-order tags (threat 45): what is written into a value is never read as a tag."""
    plan = planned({"values": {"Name": "{{X;type=signature;role=Other}}"}}, {})
    assert len(plan.fields) == 2
    assert plan.submitters[0].values == {plan.fields[0].uuid: "{{X;type=signature;role=Other}}"}


def test_conditions_survive() -> None:
    condition = Condition(field_uuid="a", action="checked")
    plan = planned({}, snapshot=template(field(uuid="a", type="checkbox"), field(conditions=[condition])))
    assert plan.fields[1].conditions == [condition]


def fields_at_fault(*submitters: dict[str, Any], snapshot: Any = None, **more: Any) -> list[str]:
    return [detail["field"] for detail in refused(*submitters, snapshot=snapshot, **more).details]


def test_an_unknown_role_hides_nothing_else() -> None:
    """What depends on the role is not judged: its values belong to nobody, and whoever it is may be the one who signs."""
    wrong = {"role": "Byer", "email": "nobody", "phone": "12", "values": {"x": 1}, "fields": [{"name": "x"}]}
    reader = {"role": "First Party", "fields": [{"name": "Nope"}]}
    error = refused(wrong, reader, name="x" * 300, expire_at=NOW)
    assert [detail["field"] for detail in error.details] == [
        "submitters[0].role",
        "submitters[1].fields[0].name",
        "submitters[0].email",
        "submitters[0].phone",
        "name",
        "expire_at",
    ]
    assert error.message == 'Unknown submitter role: Byer. Template defines ["First Party", "Second Party"]'
    assert fields_at_fault({"role": "Byer"}, {"role": "Second Party", "invite_by": "Byer", "email": None}) == [
        "submitters[0].role"
    ]
    assert fields_at_fault({"role": "Byer", "completed": True, "acts_as": "signer"}) == ["submitters[0].role"]


def test_submitters_that_fit_no_role_hide_nothing_else() -> None:
    late: dict[str, Any] = {"expire_at": NOW}
    assert fields_at_fault({}, {}, {}, **late) == ["submitters", "expire_at"]
    assert fields_at_fault({"role": "First Party"}, {"role": "first party"}, **late) == ["submitters", "expire_at"]
    assert fields_at_fault(**late) == ["submitters", "expire_at"]
    assert fields_at_fault({"roles": ["First Party", "Nobody"]}, **late) == ["submitters[0].roles", "expire_at"]


def test_a_template_that_cannot_be_sent_hides_nothing_else() -> None:
    archived = two_signers().model_copy(update={"archived": True})
    error = refused({"email": "nobody"}, snapshot=archived)
    assert error.message == "Template has been archived"
    assert [detail["field"] for detail in error.details] == ["template_id", "submitters[0].email"]
    empty = two_signers().model_copy(update={"fields": [], "parties": []})
    assert fields_at_fault({"email": "nobody", "role": "Any"}, snapshot=empty) == ["template_id", "submitters[0].email"]


def test_what_is_too_large_is_not_looked_at() -> None:
    many = [{"email": "nobody"}] * (Limits().max_submitters + 1)
    assert fields_at_fault(*many) == ["submitters"]
