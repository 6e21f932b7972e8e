"""Submissions with the real templates and rendering services: pictures, files, drafts, sealing, erasure, what is left."""

import base64
import contextlib
import sqlite3
import subprocess
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from contracts import links
from contracts.blobs import BlobRef
from contracts.errors import ServiceError
from contracts.evidence.statements import PREFIX as STATEMENTS
from contracts.rpc import Rpc, rendering, templates
from contracts.rpc import submissions as rpc
from contracts.runtime.clock import now, uuid7
from contracts.types import Account, Attachment
from tests.support.material.agreement import agreement_pdf
from tests.support.material.submissions import ADMIN
from tests.support.services.secret_settings import LINK_SECRET
from tests.support.services.suite import wait_until
from tests.support.services.three_services import Suite, picture, pictures, suite

__all__ = ["pictures", "suite"]


def refusal(work: Any) -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        work()
    return caught.value


def is_png(suite: Suite, url: str) -> bool:
    return suite.bytes_of(url).startswith(b"\x89PNG")


@pytest.mark.parametrize("kind", ["typed", "data URI", "base64", "JPEG", "URL"])
def test_a_signature_may_come_in_any_form(suite: Suite, pictures: str, kind: str) -> None:
    given = {
        "typed": "Zoë Łukasz",
        "data URI": f"data:image/png;base64,{base64.b64encode(picture()).decode()}",
        "base64": base64.b64encode(picture()).decode(),
        "JPEG": base64.b64encode(picture("JPEG")).decode(),
        "URL": f"{pictures}/signature.png",
    }[kind]
    before = suite.files()
    made = suite.create({"values": {"Sign": given}})
    assert is_png(suite, made.submitters[0].values["Sign"])
    assert len(own(made.id, suite.files() - before)) == 1, "the upload itself is not kept"
    form = suite.client.call(rpc.form.OPEN_FORM, rpc.form.OpenForm(slug=made.submitters[0].slug))
    assert [one.content_type for one in form.attachments] == ["image/png"]


def test_files_and_pictures_of_several_fields(suite: Suite, pictures: str) -> None:
    text = base64.b64encode(b"just text").decode()
    made = suite.create(
        {"values": {"Papers": [f"data:text/plain;base64,{text}", f"{pictures}/passport.png"]}},
        {"fields": [{"name": "Logo", "default_value": f"{pictures}/logo.png", "readonly": True}]},
    )
    first, second = made.submitters[0].values["Papers"]
    assert suite.bytes_of(first) == b"just text"
    assert second.endswith("/passport.png")
    assert is_png(suite, made.submitters[1].values["Logo"])


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("Sign", base64.b64encode(picture(blank=True)).decode(), "signature is empty"),
        (
            "Sign",
            base64.b64encode(b"no picture at all, only text that is long enough to be base64").decode(),
            "picture",
        ),
        ("Sign", "!" * 80, "Invalid value, url, base64 or text < 60 chars is expected"),
        ("Sign", "http://169.254.169.254/latest/meta-data.png", "Error loading"),
        ("Sign", "{}/missing", "Error loading"),
        ("Papers", ["data:text/plain;base64,aGk=", "{}/missing"], "Error loading"),
        ("Papers", ["not base64 either!"], "Invalid value"),
        ("Full name", "nobody draws \U0010fffd", "no font can draw: '\\U0010fffd' (U+10FFFD)"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_place_and_leaves_nothing(
    suite: Suite, pictures: str, name: str, given: Any, said: str
) -> None:
    given = [one.format(pictures) for one in given] if isinstance(given, list) else given.replace("{}", pictures)
    before = suite.files()
    error = refusal(lambda: suite.create({"values": {name: given}}))
    assert error.code == "invalid"
    assert error.details[0]["field"] == f"submitters[0].values.{name}"
    assert said in error.message
    assert suite.files() <= before


def test_uploads_of_the_signing_page(suite: Suite) -> None:
    made = suite.create()
    slug = made.submitters[0].slug
    sign = suite.attach(slug, "signature", picture("JPEG"), "../my signature.jpeg")
    assert (sign.content_type, sign.filename) == ("image/png", "_my signature.png")
    paper = suite.attach(slug, "file", b"%PDF-1.4 or so", "passport.pdf")
    assert suite.bytes_of(paper.url) == b"%PDF-1.4 or so"
    before = suite.files()
    for slug_used, kind, data, filename, said in (
        (slug, "signature", picture(blank=True), "x.png", "signature is empty"),
        (slug, "signature", b"<svg onload=alert(1)>", "x.svg", "File type '.svg' is not allowed."),
        (slug, "file", b"MZ", "setup.exe", "File type '.exe' is not allowed."),
        (slug, "image", picture(), "x.png", "type must be that of a field of this signer"),
        (slug, "text", picture(), "x.png", "takes no file"),
        (made.submitters[1].slug, "image", picture(), "x.png", "not your turn"),
        ("nobody", "signature", picture(), "x.png", "not found"),
    ):
        error = refusal(lambda a=slug_used, b=kind, c=data, d=filename: suite.attach(a, b, c, d))
        assert said in error.message
    assert suite.files() <= before, "a refused upload is removed"


def test_what_rendering_has_drawn_is_attached_as_it_is_and_only_where_it_may_be(suite: Suite) -> None:
    made = suite.create()
    slug = made.submitters[0].slug

    def attach(kind: str, file: BlobRef, slug: Any = slug, request_id: str | None = None) -> Attachment:
        command = rpc.form.AttachFile(
            slug=slug, request_id=request_id or uuid7(), type=kind, filename=f"{kind}.png", file=file, drawn=True
        )
        return suite.client.call(rpc.form.ATTACH_FILE, command)

    prepared, before, request_id = suite.logged("rendering.prepare_image"), suite.files(), uuid7()
    drawn = suite.client.call(rendering.DRAW_SIGNATURE, rendering.DrawSignature(text="Bo Buyer"))
    picture_ = suite.blobs.get(drawn)
    attached = attach("signature", drawn, request_id=request_id)
    assert (attached.content_type, attached.filename) == ("image/png", "signature.png")
    assert suite.bytes_of(attached.url) == picture_
    assert attach("signature", drawn, request_id=request_id) == attached, (
        "the same request again, whose picture is gone"
    )
    assert suite.logged("rendering.prepare_image") == prepared
    assert len(own(made.id, suite.files() - before)) == 1
    before = suite.files()
    for kind, slug_used, said in (
        ("initials", slug, "type must be that of a field of this signer"),
        ("signature", made.submitters[1].slug, "not your turn"),
        ("signature", "nobody", "not found"),
        ("image", slug, "type must be that of a field of this signer"),
    ):
        error = refusal(lambda a=kind, b=slug_used: attach(a, suite.upload(picture_), b))
        assert said in error.message
    assert suite.files() <= before
    assert suite.logged("rendering.prepare_image") == prepared


def test_the_same_upload_twice_is_one(suite: Suite) -> None:
    slug = suite.create().submitters[0].slug
    command = rpc.form.AttachFile(
        slug=slug, request_id=uuid7(), type="signature", filename="x.png", file=suite.upload(picture())
    )
    assert suite.client.call(rpc.form.ATTACH_FILE, command) == suite.client.call(rpc.form.ATTACH_FILE, command)


def test_killed_before_its_transaction_an_upload_is_attached_by_who_gets_the_request_next(suite: Suite) -> None:
    """It has been encoded anew by then, and nothing refers to it yet: the request must find it again."""
    command = rpc.form.AttachFile(
        slug=suite.create().submitters[0].slug,
        request_id=uuid7(),
        type="signature",
        filename="x.png",
        file=suite.upload(picture()),
    )
    path = suite.settings["SUBMISSIONS_DATABASE_URL"].removeprefix("sqlite:///")
    encoded = suite.logged("rendering.prepare_image")
    with ThreadPoolExecutor(1) as pool, contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        pending = pool.submit(suite.ask, rpc.form.ATTACH_FILE, command)
        wait_until(lambda: suite.logged("rendering.prepare_image") > encoded, what="the picture is encoded")
        suite.restart("submissions")
        other.execute("ROLLBACK")
        attached = pending.result(90)
    assert is_png(suite, attached.url)


def test_text_that_no_font_can_draw_is_refused_on_the_page(suite: Suite) -> None:
    made = suite.create()
    slug = made.submitters[0].slug
    form = suite.client.call(rpc.form.OPEN_FORM, rpc.form.OpenForm(slug=slug))
    uuid = next(one.uuid for one in form.fields if one.name == "Full name")

    def save(value: str, call: Rpc[Any, Any] = rpc.form.SAVE_VALUES, model: Any = rpc.form.SaveValues) -> rpc.form.Done:
        done: rpc.form.Done = suite.client.call(call, model(slug=slug, request_id=uuid7(), values={uuid: value}))
        return done

    error = refusal(lambda: save("\U0010fffd"))
    assert error.details == [
        {"field": uuid, "reason": "has characters that no font can draw: '\\U0010fffd' (U+10FFFD)"}
    ]
    assert error.message == "Full name has characters that no font can draw: '\\U0010fffd' (U+10FFFD)"
    assert (
        refusal(lambda: save("\U0010fffd", rpc.form.COMPLETE_FORM, rpc.form.CompleteForm)).details[0]["field"] == uuid
    )
    called = [rpc.api.FieldOverride(name="Full name", title="Your name in full")]
    suite.client.call(
        rpc.api.UPDATE_SUBMITTER,
        rpc.api.UpdateSubmitter(request_id=uuid7(), actor=ADMIN, id=made.submitters[0].id, fields=called),
    )
    for again in (save, lambda value: save(value, rpc.form.COMPLETE_FORM, rpc.form.CompleteForm)):
        message = refusal(lambda again=again: again("\U0010fffd")).message
        assert message.startswith("Your name in full has characters")
    assert save("漢字 Łukasz Ελλάδα").state == "open"


def test_text_that_does_not_fit_is_refused_wherever_it_comes_in(suite: Suite) -> None:
    long = "more than a line has room for " * 40
    said = f"has {len(long)} characters, but in its area on page 1 there is room for"
    before = suite.files()
    error = refusal(lambda: suite.create({"values": {"Full name": long}}))
    assert error.details[0]["field"] == "submitters[0].values.Full name"
    assert error.details[0]["reason"].startswith(said)
    wanted = [rpc.api.FieldOverride(name="Full name", default_value=long)]
    error = refusal(lambda: suite.create({"fields": wanted}))
    assert error.details[0]["field"] == "submitters[0].fields[0].default_value"
    printed = [rpc.api.FieldOverride(name="Full name", default_value="{{name}} " * 40)]
    error = refusal(lambda: suite.create({"name": "Maximiliane Freifrau von Beispiel", "fields": printed}))
    assert "there is room for" in error.message
    error = refusal(lambda: suite.create({"name": "\U0010fffd"}))
    assert error.details[0]["field"] == "submitters[0].name"
    assert suite.files() <= before

    made = suite.create()
    buyer = made.submitters[0]
    form = suite.client.call(rpc.form.OPEN_FORM, rpc.form.OpenForm(slug=buyer.slug))
    uuid = next(one.uuid for one in form.fields if one.name == "Full name")
    for changed in ({"values": {"Full name": long}}, {"values": {"Full name": long}, "completed": True}):
        update = rpc.api.UpdateSubmitter(request_id=uuid7(), actor=ADMIN, id=buyer.id, **changed)
        error = refusal(lambda update=update: suite.client.call(rpc.api.UPDATE_SUBMITTER, update))
        assert error.details[0]["field"] == "values.Full name"
        assert error.details[0]["reason"].startswith(said)
    for call, model in ((rpc.form.SAVE_VALUES, rpc.form.SaveValues), (rpc.form.COMPLETE_FORM, rpc.form.CompleteForm)):
        command = model(slug=buyer.slug, request_id=uuid7(), values={uuid: long})
        error = refusal(lambda call=call, command=command: suite.client.call(call, command))
        assert error.details[0]["field"] == uuid
        assert error.message.startswith(f"Full name {said}")
    form = suite.client.call(rpc.form.OPEN_FORM, rpc.form.OpenForm(slug=buyer.slug))
    assert next(one.value for one in form.fields if one.uuid == uuid) is None


def test_documents_before_and_after(suite: Suite) -> None:
    made = suite.create()
    buyer, seller = made.submitters
    drafts = suite.documents(made.id)
    assert [one.name for one in drafts] == ["part 1", "part 2"]
    assert [one.sha256 for one in suite.documents(made.id)] == [one.sha256 for one in drafts], "made once"
    sign = suite.attach(buyer.slug, "signature", picture())
    unused = suite.attach(buyer.slug, "signature", picture())
    suite.complete(buyer.slug, {"Full name": "Zoë Łukasz", "Sign": sign.uuid})
    partly = suite.documents(made.id)
    assert "Zoë Łukasz" in suite.text_of(partly[0].url)
    (merged,) = suite.documents(made.id, merge=True)
    assert "Zoë Łukasz" in suite.text_of(merged.url)

    suite.complete(seller.slug, {"Company": "Wörner & Søn"})
    done = suite.completed(made.id)
    assert [one.name for one in done.documents] == ["part 1", "part 2"]
    assert "Zoë Łukasz" in suite.text_of(done.documents[0].url)
    assert "Wörner & Søn" in suite.text_of(done.documents[1].url)
    assert "buyer@example.com" in suite.text_of(str(done.audit_log_url))
    (merged,) = suite.documents(made.id, merge=True)
    assert merged.name == "Agreement"
    assert suite.documents(made.id, merge=True)[0].sha256 == merged.sha256, "made once"
    path = suite.folder / "merged.pdf"
    path.write_bytes(suite.bytes_of(merged.url))
    verdict = subprocess.run(["pdfsig", path], capture_output=True, text=True, check=False).stdout
    assert "Signature is Valid" in verdict
    combined = suite.client.call(
        rpc.api.GET, rpc.api.GetSubmission(actor=ADMIN, id=made.id, include="combined_document_url")
    )
    assert combined.combined_document_url is not None
    wait_until(lambda: not suite.blobs.exists(key_of(unused.url)), what="the unused signature removed")


def key_of(url: str) -> str:
    return links.read(LINK_SECRET, url.split("/file/")[1].split("/")[0]).key


def test_what_a_submission_needs_is_never_among_the_files_that_are_swept(suite: Suite, pictures: str) -> None:
    """As the gateway does every hour, with nothing too young for it."""

    def sweep() -> None:
        suite.blobs.sweep(now() + timedelta(minutes=1))

    sweep()
    made = suite.create({"values": {"Papers": [f"{pictures}/passport.png"], "Sign": "Bo Buyer"}})
    sweep()
    buyer, seller = made.submitters
    given = suite.client.call(rpc.form.OPEN_FORM, rpc.form.OpenForm(slug=buyer.slug)).attachments
    assert len(given) == 2
    assert all(suite.bytes_of(one.url) for one in given)
    sign = suite.attach(buyer.slug, "signature", picture())
    paper = suite.attach(buyer.slug, "file", b"%PDF-1.4 or so", "passport.pdf")
    suite.documents(made.id, merge=True)
    sweep()
    suite.documents(made.id, merge=True)
    suite.complete(buyer.slug, {"Full name": "Zoë", "Sign": sign.uuid, "Papers": [paper.uuid]})
    suite.complete(seller.slug, {"Company": "Søn"})
    done = suite.completed(made.id)
    sweep()
    assert suite.bytes_of(paper.url) == b"%PDF-1.4 or so"
    for link in (*done.documents, *suite.documents(made.id, merge=True)):
        assert suite.bytes_of(link.url).startswith(b"%PDF")


def own(submission_id: int, files: set[str]) -> set[str]:
    """Without what rendering drew for mails, if it had the time, and keeps as long as other pictures of pages, and without
    statements of what earlier tests completed, which are signed when there is time."""
    statements = f"{STATEMENTS}{submission_id}/"
    return {name for name in files if not name.startswith(("rendering/", STATEMENTS)) or name.startswith(statements)}


def one_off(suite: Suite, **more: Any) -> rpc.api.CreateOneOff:
    pdf = agreement_pdf(["{{Full name;role=Buyer}}"])
    documents = [templates.DocumentInput(name="own", file=suite.upload(pdf, "application/pdf"))]
    values = {"request_id": uuid7(), "actor": ADMIN, "account": Account(), "documents": documents, **more}
    return rpc.api.CreateOneOff(submitters=[rpc.api.NewSubmitter(role="Buyer", email="buyer@example.com")], **values)


def test_a_one_off_submission_has_its_own_files_until_it_is_erased(suite: Suite) -> None:
    before = suite.files()
    command = one_off(suite)
    made = suite.client.call(rpc.api.CREATE_ONE_OFF, command)
    assert len(own(made.id, suite.files() - before)) == 2, "what was sent and what is filled; nothing of it twice"
    suite.blobs.sweep(now() + timedelta(minutes=1))
    # The broker may hand over a request twice: the files that it came with are gone by now.
    assert suite.client.call(rpc.api.CREATE_ONE_OFF, command).id == made.id
    suite.complete(made.submitters[0].slug, {"Full name": "Zoë"})
    done = suite.completed(made.id)
    assert suite.bytes_of(done.documents[0].url).startswith(b"%PDF")
    suite.client.call(
        rpc.api.REMOVE, rpc.api.RemoveSubmission(request_id=uuid7(), actor=ADMIN, id=made.id, permanently=True)
    )
    wait_until(lambda: not own(made.id, suite.files() - before), what="nothing left")


def test_a_dry_run_leaves_no_file(suite: Suite, pictures: str) -> None:
    before = suite.files()
    person = rpc.api.NewSubmitter(role="Buyer", email="a@example.com", values={"Full name": "Zoë"})
    tried = suite.client.call(rpc.api.TRY_ONE_OFF, one_off(suite).model_copy(update={"submitters": [person]}))
    assert (tried.accepted, [one.name for one in tried.fields]) == (True, ["Full name"])
    assert suite.files() <= before
    people = [
        rpc.api.NewSubmitter(
            role="Buyer", email="a@example.com", values={"Papers": [f"{pictures}/passport.png"], "Sign": "Bo"}
        ),
        rpc.api.NewSubmitter(role="Seller", email="b@example.com", values={"Logo": f"{pictures}/missing"}),
    ]
    values = {"request_id": uuid7(), "actor": ADMIN, "account": Account(), "template_id": suite.template.id}
    tried = suite.client.call(rpc.api.TRY_CREATE, rpc.api.CreateSubmission(submitters=people, **values))
    assert [one["field"] for one in tried.problems] == ["submitters[1].values.Logo"]
    assert suite.files() <= before


def test_killed_in_the_middle_a_one_off_submission_is_made_once(suite: Suite) -> None:
    pdf = agreement_pdf(["{{Full name;role=Buyer}}"])
    documents = [templates.DocumentInput(name=f"{n}", file=suite.upload(pdf, "application/pdf")) for n in range(4)]
    command = one_off(suite, documents=documents, name=f"Killed {uuid7()}")
    with ThreadPoolExecutor(1) as pool:
        prepared = suite.logged("rendering.prepare_pdf")
        pending = pool.submit(suite.ask, rpc.api.CREATE_ONE_OFF, command)
        wait_until(lambda: suite.logged("rendering.prepare_pdf") > prepared, what="the first document is prepared")
        suite.restart("submissions")
        made = pending.result(90)
    assert suite.client.call(rpc.api.CREATE_ONE_OFF, command).id == made.id
    found = suite.client.call(rpc.api.LIST, rpc.api.ListSubmissions(actor=ADMIN, q=command.name))
    assert [one.id for one in found.data] == [made.id]


def test_one_request_that_is_under_way_several_times_is_answered_alike(suite: Suite) -> None:
    """As after a kill -9: the broker gives it to the new process, while its caller repeats it. The first takes the files."""
    pdf = agreement_pdf(["{{Full name;role=Buyer}}"])
    for _ in range(3):
        documents = [templates.DocumentInput(name="1", file=suite.upload(pdf, "application/pdf"))]
        command = one_off(suite, documents=documents, name=f"Several times {uuid7()}")
        with ThreadPoolExecutor(4) as pool:
            made = list(pool.map(lambda each: suite.ask(rpc.api.CREATE_ONE_OFF, each), [command] * 4))
        assert len({one.id for one in made}) == 1


@pytest.mark.parametrize(
    ("more", "where"),
    [
        ({"submitters": [rpc.api.NewSubmitter(role="Stranger", email="a@example.com")]}, "submitters[0].role"),
        ({"submitters": []}, "submitters"),
        ({"template_ids": [2**40]}, None),
        ({"documents": []}, "documents"),
        ({"name": "x" * 2000}, "name"),
    ],
)
def test_a_refused_one_off_submission_leaves_nothing(suite: Suite, more: dict[str, Any], where: str | None) -> None:
    suite.blobs.sweep(now() + timedelta(minutes=1))
    before = suite.files()
    with pytest.raises(ServiceError) as caught:
        suite.client.call(rpc.api.CREATE_ONE_OFF, one_off(suite).model_copy(update=more))
    assert [detail["field"] for detail in caught.value.details] == ([where] if where else [])
    suite.blobs.sweep(now() + timedelta(minutes=1))
    assert suite.files() <= before


def test_erasure_leaves_only_what_is_the_template_s(suite: Suite, pictures: str) -> None:
    suite.documents(suite.create({}).id, merge=True)  # what is made of the template's document is there from now on
    before = suite.files()
    made = suite.create({"values": {"Papers": [f"{pictures}/passport.png"]}})
    buyer, seller = made.submitters
    suite.documents(made.id, merge=True)
    sign = suite.attach(buyer.slug, "signature", picture())
    suite.complete(buyer.slug, {"Full name": "Zoë", "Sign": sign.uuid})
    suite.complete(seller.slug, {"Company": "Søn"})
    suite.completed(made.id)
    suite.documents(made.id, merge=True)
    removed = rpc.api.RemoveSubmission(request_id=uuid7(), actor=ADMIN, id=made.id, permanently=True)
    suite.client.call(rpc.api.REMOVE, removed)

    def left() -> set[str]:
        return own(made.id, suite.files() - before)

    wait_until(lambda: not left(), what="nothing left")
