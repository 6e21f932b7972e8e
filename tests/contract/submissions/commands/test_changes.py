"""Changes of submitters by the API, and what others are told of a submission, on SQLite and PostgreSQL."""

import json
from datetime import timedelta
from typing import Any

from contracts import links
from contracts.rpc import submissions as rpc
from contracts.rpc.unchanged import state_of
from contracts.types import Account, Actor, Role, SubmissionStatus, iso
from services.submissions.reading import queries
from tests.support.material.submissions import (
    ADMIN,
    NOW,
    SITE,
    Desk,
    assert_told_in_order,
    field,
    refusal,
    template,
    two_signers,
)
from tests.support.present import present

# ---------------------------------------------------------------- only what is still as it was read


def test_a_submission_that_was_changed_meanwhile_is_neither_changed_nor_removed(desk: Desk) -> None:
    """By whoever it was: a signer who opens their form has changed it, too."""
    made = desk.create()

    def read() -> str:
        return state_of(json.loads(rpc.api.GET.encode(desk.get(made.id))))

    before = read()
    desk.view(made.submitters[0].slug or "")
    for change in (
        lambda: desk.update(made.id, name="Too late", expected_state=before),
        lambda: desk.remove(made.id, expected_state=before),
        lambda: desk.remove(made.id, permanently=True, expected_state=before),
    ):
        assert refusal(change).code == "precondition_failed"
    assert (desk.get(made.id).name, desk.get(made.id).archived) == (made.name, False)
    assert desk.update(made.id, name="In time", expected_state=read()).name == "In time"
    assert desk.remove(made.id, expected_state=read()).archived_at is not None


def test_a_submitter_who_was_changed_meanwhile_is_not_changed(desk: Desk) -> None:
    one = desk.create().submitters[0]
    question = rpc.api.GetSubmitter(actor=ADMIN, id=one.id)

    def read() -> str:
        shown = desk.database.read(queries.submitter, question, SITE, desk.now)
        return state_of(json.loads(rpc.api.GET_SUBMITTER.encode(shown)))

    before = read()
    desk.update_submitter(one.id, name="Somebody was faster")
    assert refusal(lambda: desk.update_submitter(one.id, name="Too late", expected_state=before)).code == (
        "precondition_failed"
    )
    assert desk.update_submitter(one.id, phone="+14155550123", expected_state=read()).name == "Somebody was faster"


# ---------------------------------------------------------------- changing submitters


def test_changing_a_submitter(desk: Desk) -> None:
    made = desk.create(two_signers(), {"name": "Sam", "metadata": {"a": 1}, "reply_to": "r@x.co"}, {})
    one = desk.update_submitter(
        made.submitters[0].id,
        name="Samuel",
        email="sam+tag@example.com",
        metadata={"b": 2},
        values={"Name": "S."},
        fields=[{"name": "Name", "title": "Your name", "required": False}],
        reply_to="",
        external_id="crm-7",
    )
    assert (one.name, one.email, one.metadata, one.values) == (
        "Samuel",
        "sam+tag@example.com",
        {"b": 2},
        {"Name": "S."},
    )
    assert (one.external_id, one.application_key, one.preferences) == (
        "crm-7",
        "crm-7",
        {"send_email": True, "send_sms": False},
    )
    field_now = desk.form(one.slug).fields[0]
    assert (field_now.title, field_now.required, field_now.value) == ("Your name", False, "S.")
    desk.update_submitter(one.id, values={"Name": "I, {{name}}"})
    assert desk.form(one.slug).fields[0].value == "I, Samuel"
    untouched = desk.update_submitter(one.id, phone="+14155550123")
    assert (untouched.email, untouched.phone, untouched.metadata) == ("sam+tag@example.com", "+14155550123", {"b": 2})
    assert desk.listed(q="SAM+TAG") == [made.id]
    refused = refusal(lambda: desk.update_submitter(made.submitters[1].id, email=""))
    assert refused.details[0]["field"] == "email"


def test_what_is_cleared_and_what_must_remain(desk: Desk) -> None:
    ready = Account(phone_codes_available=True, sms_available=True)
    message = {"subject": "Mine", "body": "For you alone"}
    person = {"name": "Sam", "phone": "+14155550123", "message": message, "values": {"Name": "I, {{name}}"}}
    everybody = {"subject": "All", "body": "For everybody"}
    made = desk.create(two_signers(), person, {}, account=ready, message=everybody)
    one = made.submitters[0]

    def refused(**changes: Any) -> list[str]:
        before = desk.get(made.id)
        details = refusal(lambda: desk.update_submitter(one.id, account=ready, **changes)).details
        assert desk.get(made.id) == before
        return [each["field"] for each in details]

    assert refused(email=None, phone=None, name="Samuel") == ["email"]
    desk.update_submitter(one.id, send_sms=True, require_phone_2fa=True, account=ready)
    assert refused(phone="") == ["phone", "phone"]
    assert refused(phone=None, require_phone_2fa=False) == ["phone"], "they would not be invited by SMS"
    assert refused(phone=None, send_sms=False) == ["phone"], "they could not get their code"
    assert refused(phone=None, send_sms=True, require_phone_2fa=False) == ["phone"]
    unnamed = desk.update_submitter(one.id, name="", message={})
    assert (unnamed.name, unnamed.phone, desk.listed(q="Sam")) == (None, "+14155550123", [])
    desk.update_submitter(one.id, send_email=True)
    cleared = desk.update_submitter(one.id, phone=None, send_sms=False, require_phone_2fa=False, message=None)
    assert (cleared.name, cleared.phone, cleared.email) == (None, None, "signer1@example.com")
    assert desk.listed(q="4155550123") == []
    assert cleared.slug != unnamed.slug, "who had the number may have the link"
    desk.update_submitter(one.id, send_email=True, name="Sam")
    texts = [each["data"]["message"] for each in desk.events("invitation.due")]
    assert texts == [message, message, everybody, everybody], "the text of all, when their own is cleared"
    by_phone = desk.update_submitter(one.id, email="", phone="+14155550199")
    assert (by_phone.email, by_phone.phone) == (None, "+14155550199")
    assert refused(phone="") == ["email"]


def test_a_field_without_a_name_is_called_the_same_whoever_takes_part(desk: Desk) -> None:
    found = template(field("A", ""), field("B", ""))
    made = desk.create(found, {"role": "B", "values": {"Text Field 2": "x"}})
    assert made.submitters[0].values == {"Text Field 2": "x"}
    changed = desk.update_submitter(made.submitters[0].id, values={"text_field_2": "y"})
    assert changed.values == desk.get(made.id).submitters[0].values == {"Text Field 2": "y"}


def test_the_invitation_again_only_in_turn(desk: Desk) -> None:
    made = desk.create()
    desk.update_submitter(made.submitters[0].id, send_email=True)
    desk.update_submitter(made.submitters[1].id, send_email=True)
    mails = desk.events("invitation.due")
    assert [one["data"]["submitter_id"] for one in mails] == [made.submitters[0].id] * 2
    assert len({one["data"]["invitation_id"] for one in mails}) == 2


def test_completed_by_the_api(desk: Desk) -> None:
    made = desk.create()
    first, second = made.submitters
    done = desk.update_submitter(first.id, completed=True, values={"Name": "by the sender"})
    assert (done.status, done.values) == ("completed", {"Name": "by the sender"})
    assert [one["data"]["submitter_id"] for one in desk.events("invitation.due")] == [first.id, second.id]
    refused = refusal(lambda: desk.update_submitter(first.id, name="X"))
    assert (refused.code, refused.message) == ("invalid", "Submitter has already completed the submission.")
    desk.decline(second.slug)
    declined = refusal(lambda: desk.update_submitter(second.id, name="X"))
    assert declined.message == "Submitter has already declined the submission."


def test_an_expired_submission_is_not_completed_by_the_api_either(desk: Desk) -> None:
    made = desk.create(expire_at=NOW + timedelta(hours=1))
    desk.now = NOW + timedelta(hours=1)
    refused = refusal(lambda: desk.update_submitter(made.submitters[0].id, completed=True))
    assert refused.message == "Form has been expired."
    assert desk.update(made.id, expire_at=None).status is SubmissionStatus.PENDING
    assert desk.update_submitter(made.submitters[0].id, completed=True).status == "completed"


def test_a_change_keeps_to_the_limit_of_the_whole_submission(desk: Desk) -> None:
    many = template(*(field(name=f"F{n}", uuid=f"u{n}") for n in range(130)))
    made = desk.create(many, {"values": {f"F{n}": "x" * 9_000 for n in range(100)}})
    more = {f"F{n}": "x" * 9_000 for n in range(100, 125)}
    assert "1,000,000" in refusal(lambda: desk.update_submitter(made.submitters[0].id, values=more)).message
    uuids = {f"u{n}": "x" * 9_000 for n in range(100, 125)}
    assert "1,000,000" in refusal(lambda: desk.save(made.submitters[0].slug, uuids)).message


# ---------------------------------------------------------------- what others are told


def test_webhook_data_has_no_signer_s_secret(desk: Desk) -> None:
    made = desk.signed(two_signers(), {"metadata": {"crm": 7}}, {})
    desk.seal(made.id)
    public = [one for one in desk.events() if one["sequence"] is not None]
    assert len(public) == 8
    text = json.dumps([one["data"] for one in public])
    for submitter in made.submitters:
        assert present(submitter.slug) not in text
    form = next(one for one in public if one["type"] == "form.completed")["data"]
    assert form["data"]["values"] == {"Name": "something"}
    assert form["data"]["metadata"] == {"crm": 7}
    assert form["data"]["submission"]["id"] == made.id
    assert form["data"]["submission_url"] == f"https://sign.example.com/e/{made.slug}"
    assert not {"slug", "uuid", "embed_src"} & set(form["data"])
    done = public[-1]["data"]["data"]
    assert done["documents"][0]["sha256"] == "a" * 64
    assert (form["author_id"], form["template_id"], form["shared"]) == (ADMIN.user_id, present(made.template).id, True)


def test_each_event_says_what_was_true_at_its_own_moment(desk: Desk) -> None:
    """Also where one transaction has several: what came first is told as it was then."""
    hidden = [{"field_uuid": "never", "action": "checked"}]
    found = template(
        field("First Party", "Name", uuid="name"),
        field("First Party", "Sign", "signature", uuid="sign"),
        field("First Party", "Day", "date", default_value="{{date}}"),
        field("First Party", "Why", uuid="why", required=False, conditions=hidden),
        field("Second Party", "Day", "date", default_value="{{date}}"),
        field("Third Party", "Day", "date", default_value="{{date}}"),
    )
    made = desk.create(found, {}, {"completed": True}, {"values": {"Day": "2026-01-01"}, "completed": True})
    (created,) = desk.events("submission.created")
    parties = [(one["status"], one["completed_at"], one["values"]) for one in created["data"]["data"]["submitters"]]
    assert parties == [("pending", None, {}), ("pending", None, {}), ("pending", None, {"Day": "2026-01-01"})]
    prepared = [one["data"]["data"] for one in desk.events("form.signed")]
    assert [(one["role"], one["status"], one["values"]) for one in prepared] == [
        ("Second Party", "completed", {"Day": "2026-03-04"}),
        ("Third Party", "completed", {"Day": "2026-01-01"}),
    ]
    slug, desk.now = made.submitters[0].slug, desk.now + timedelta(minutes=1)
    desk.complete(slug, {"name": "Bo", "sign": desk.attach(slug), "why": "So"}, ip="192.0.2.1")
    (started,) = (one["data"]["data"] for one in desk.events("form.started"))
    ended = desk.events("form.signed")[-1]["data"]["data"]
    assert (started["status"], started["completed_at"], started["ip"]) == ("pending", None, "192.0.2.1")
    assert (ended["status"], ended["completed_at"]) == ("completed", iso(desk.now))
    assert set(started["values"]) == {"Name", "Sign", "Why"}
    assert ended["values"] == {"Name": "Bo", "Sign": started["values"]["Sign"], "Day": "2026-03-04", "Why": None}
    assert started["opened_at"] == ended["opened_at"] == iso(desk.now)
    desk.seal(made.id)
    done = desk.events("submission.completed")[0]["data"]["data"]
    assert (ended["submission"]["status"], ended["documents"], done["status"]) == ("pending", [], "completed")
    *earlier, last = (one["data"]["data"] for one in desk.events("form.completed"))
    assert [(one["submission"]["status"], one["documents"]) for one in earlier] == [("pending", [])] * 2
    assert (last["id"], last["submission"]["status"], last["documents"]) == (
        ended["id"],
        "completed",
        done["documents"],
    )
    assert (
        last["audit_log_url"] == last["submission"]["audit_log_url"] == done["audit_log_url"] != ended["audit_log_url"]
    )
    assert (last["completed_at"], last["values"], last["ip"]) == (ended["completed_at"], ended["values"], "192.0.2.1")
    assert assert_told_in_order(desk, made.id) == [
        "submission.created",
        *["form.signed", "form.completed"] * 2,
        "form.started",
        "form.signed",
        "form.completed",
        "submission.completed",
    ]


def test_everybody_completed_in_advance_is_told_as_begun_first(desk: Desk) -> None:
    desk.create(template(field()), {"completed": True})
    (created,) = desk.events("submission.created")
    data = created["data"]["data"]
    assert (data["sealing_status"], data["submitters"][0]["status"]) == (None, "pending")


def test_links_in_events_do_not_expire_and_those_in_answers_do(desk: Desk) -> None:
    from contracts import links

    made = desk.signed()
    desk.seal(made.id)
    (event,) = desk.events("submission.completed")

    def expiry(url: str) -> int | None:
        return links.read(SITE.link_secret, url.split("/file/")[1].split("/")[0]).expires_at

    assert expiry(event["data"]["data"]["documents"][0]["url"]) is None
    assert expiry(event["data"]["data"]["audit_log_url"]) is None
    assert expiry(desk.get(made.id).documents[0].url) == int(desk.now.timestamp()) + SITE.link_ttl
    (mails,) = desk.events("completion_mails.due")
    assert expiry(mails["data"]["documents"][0]["link"]["url"]) == int(desk.now.timestamp()) + SITE.mailed_link_ttl


def test_masked_values_are_crossed_out_in_everything_that_is_kept_or_sent(desk: Desk) -> None:
    found = template(field(name="Number", preferences={"mask": -2}))
    made = desk.create(found, {"values": {"Number": "canary-4711"}})
    desk.complete(made.submitters[0].slug)
    desk.seal(made.id)
    told = [one for one in desk.events() if one["type"] != "sealing.due"]
    assert "canary" not in json.dumps(told)
    assert "XXXXXX-XX11" in json.dumps(told)
    assert "canary" not in json.dumps([one.data for one in desk.get(made.id).submission_events or []])
    assert desk.get(made.id).submitters[0].values == {"Number": "canary-4711"}
    viewer = Actor(user_id=9, role=Role.VIEWER, email="v@x.co")
    assert desk.get(made.id, viewer).submitters[0].values == {"Number": "XXXXXX-XX11"}


def test_a_default_that_a_mask_hides_is_crossed_out_for_a_viewer(desk: Desk) -> None:
    """It becomes the value, which is crossed out for them."""
    number = field(name="Number", preferences={"mask": -2}, default_value="canary-4711")
    made = desk.create(template(number, field(name="City", default_value="Vienna")), {})
    viewer = Actor(user_id=9, role=Role.VIEWER, email="v@x.co")
    one = rpc.api.GetSubmitter(actor=viewer, id=made.submitters[0].id, include="fields")
    listed = rpc.api.ListSubmissions(actor=viewer, include="fields")
    for told in (
        desk.get(made.id, viewer, "fields").fields,
        desk.database.read(queries.submitter, one, SITE, desk.now).fields,
        desk.database.read(queries.submissions, listed, SITE, desk.now).data[0].fields,
    ):
        assert [each.default_value for each in told or []] == ["XXXXXX-XX11", "Vienna"]
    assert [each.default_value for each in desk.get(made.id, include="fields").fields or []] == [
        "canary-4711",
        "Vienna",
    ]


def test_who_gets_the_completion_mails(desk: Desk) -> None:
    account = Account(documents_copy_email_attach_audit=False)
    made = desk.signed(
        two_signers(),
        {},
        {"send_email": False},
        account=account,
        bcc_completed="boss@x.co, signer1@example.com",
        preferences={"documents_copy_email_attach_audit": True, "completed_notification_email_attach_documents": False},
    )
    desk.seal(made.id)
    (mails,) = desk.events("completion_mails.due")
    data = mails["data"]
    assert (data["notify_sender"], data["bcc"], data["copy_signers"]) == (True, ["boss@x.co"], True)
    assert (data["copy_attach_audit"], data["sender_attach_documents"]) == (False, False)
    assert [one["send_email"] for one in data["context"]["parties"]] == [True, False]
    silent = desk.signed(two_signers(), {}, {}, send_email=False, bcc_completed="boss@x.co")
    desk.seal(silent.id)
    assert desk.count("completion_mails.due") == 1
    assert desk.get(silent.id).status is SubmissionStatus.COMPLETED


def test_invitations_say_what_was_asked_for(desk: Desk) -> None:
    found = template(field("First Party", "Sign", "signature"), field("Second Party"))
    own = {"message": {"subject": "Own", "body": "For you"}, "reply_to": "own@x.co"}
    desk.create(found, own, {}, message={"body": "For all"}, reply_to="all@x.co", order="random", name="Deal")
    first, second = (one["data"] for one in desk.events("invitation.due"))
    assert (first["message"]["body"], first["reply_to"], first["needs_signature"]) == ("For you", "own@x.co", True)
    assert (second["message"]["body"], second["reply_to"], second["needs_signature"]) == ("For all", None, False)
    assert (first["context"]["reply_to"], first["context"]["submission_name"]) == ("all@x.co", "Deal")
    party, other = first["context"]["parties"]
    assert party["link"].startswith("https://sign.example.com/s/")
    assert (party["values"], other["values"]) == ({"Sign": None}, {"Name": None}), "a variable without a value is none"


def test_only_who_has_an_address_and_wants_mail_is_invited(desk: Desk) -> None:
    desk.create(two_signers(), {"email": None, "phone": "+14155550123"}, {"send_email": False}, order="random")
    assert desk.count("invitation.due") == 0
    desk.create(send_email=False)
    assert desk.count("invitation.due") == 0


def test_names_of_files_on_paper_lead_to_them_where_the_account_wants_that(desk: Desk) -> None:
    found = template(field(name="Papers", uuid="papers", type="file"))
    for wanted in (True, False):
        slug = desk.create(found, {}, account=Account(with_file_links=wanted)).submitters[0].slug
        desk.complete(slug, {"papers": [desk.attach(slug, "file")]})
    linked, plain = (one["data"]["attachments"][0] for one in desk.events("sealing.due"))
    assert plain["url"] == ""
    token = linked["url"].removeprefix(f"{SITE.base_url}/file/").split("/")[0]
    link = links.read(SITE.link_secret, token)
    assert (link.key, link.filename) == (linked["file"]["key"], "x.png")
    assert not link.expired(NOW + timedelta(days=36_500))
    assert link.expires_at is not None, "no API key is needed"
