"""What a stranger writes against the generated Python client: every operation once, checked by ``mypy --strict`` before it runs.

    python -m tests.support.clients.generated_client.program <base URL> <API key> <PDF> <DOCX>

``countersign_client`` is the generated package. Ends with "done"; any answer that is not of its type, or has lost something in it,
ends it with an AssertionError.
"""

import base64
import datetime
import io
import sys
import time
import uuid
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from countersign_client import AuthenticatedClient, Client
from countersign_client.api.account import (
    account_dutystamps,
    account_get,
    account_test_certsign,
    account_update,
    people_get,
    people_remove_unsent,
)
from countersign_client.api.batches import (
    batches_cancel,
    batches_create,
    batches_get,
    batches_results,
    batches_retry,
    batches_rows,
    batches_search,
)
from countersign_client.api.events import events_feed, events_form, events_submission
from countersign_client.api.keys import keys_create, keys_get, keys_remove, keys_search, keys_update
from countersign_client.api.signing_form import attachments_create, phone_codes_send, submitter_form_views_create
from countersign_client.api.submissions import (
    submissions_certsign,
    submissions_create,
    submissions_create_from_docx,
    submissions_create_from_html,
    submissions_create_from_pdf,
    submissions_documents,
    submissions_dutystamp,
    submissions_emails,
    submissions_erasure,
    submissions_erasure_receipt,
    submissions_events,
    submissions_evidence,
    submissions_get,
    submissions_init,
    submissions_remove,
    submissions_seal,
    submissions_search,
    submissions_send_again,
    submissions_update,
)
from countersign_client.api.submitters import submitters_get, submitters_search, submitters_update
from countersign_client.api.templates import (
    templates_change_documents,
    templates_clone,
    templates_create_from_docx,
    templates_create_from_html,
    templates_create_from_pdf,
    templates_create_submission,
    templates_detected_fields,
    templates_evaluate,
    templates_get,
    templates_merge,
    templates_remove,
    templates_schema,
    templates_search,
    templates_submissions,
    templates_update,
)
from countersign_client.api.test_mode import (
    test_mode_advance,
    test_mode_get,
    test_mode_mails,
    test_mode_text_messages,
    test_mode_wipe,
)
from countersign_client.api.tools import tools_merge, tools_verify, tools_version
from countersign_client.api.users import (
    users_api_key,
    users_create,
    users_current,
    users_get,
    users_remove,
    users_rotate_api_key,
    users_search,
    users_update,
)
from countersign_client.api.webhooks import (
    webhooks_create,
    webhooks_deliveries,
    webhooks_get,
    webhooks_remove,
    webhooks_replace_secret,
    webhooks_replay,
    webhooks_resend,
    webhooks_search,
    webhooks_test,
    webhooks_update,
)
from countersign_client.models import (
    AboutPerson,
    Account,
    AccountChange,
    AdvancedTestClock,
    ApiKey,
    AreaInput,
    Attachment,
    Batch,
    BatchDryRun,
    BatchPage,
    BatchRowPage,
    BatchRowStatus,
    BatchSettings,
    BatchStatus,
    BoughtDutystampPage,
    ChecksumStatus,
    ConditionAction,
    ConditionInput,
    Confirmation,
    Delivery,
    DeliveryPage,
    Detection,
    DocumentChange,
    DocumentsChange,
    DryRun,
    Empty,
    ErasedEventData,
    Error,
    ErrorCode,
    Evaluated,
    Evaluation,
    EvaluationCase,
    EventFeedPage,
    EventKind,
    FieldInput,
    FieldOverride,
    FieldPreferences,
    FieldType,
    FieldValidation,
    FieldValuesInput,
    FontStyle,
    FormEventData,
    FormEventKind,
    FormView,
    InTestMode,
    Key,
    KeyChange,
    KeyScope,
    MadeKey,
    Merge,
    MergedFile,
    Message,
    MetadataInput,
    NewAttachment,
    NewBatch,
    NewDocxDocument,
    NewDocxSubmission,
    NewDocxTemplate,
    NewHtmlSubmission,
    NewHtmlTemplate,
    NewKey,
    NewPdfDocument,
    NewPdfSubmission,
    NewPdfTemplate,
    NewSubmission,
    NewSubmissionOfTemplate,
    NewSubmissionsByEmail,
    NewSubmitter,
    NewUser,
    NewWebhook,
    OneOfSubmissions,
    PaperSize,
    PhoneCodeRequest,
    PlacedDocxDocument,
    PlacedPdfDocument,
    PolledFormEventPage,
    PolledSubmissionEventData,
    PolledSubmissionEventPage,
    ReminderDelay,
    Reminders,
    Removed,
    RemovedUnsent,
    RemovedUser,
    Replay,
    Replayed,
    Role,
    SealingStatus,
    SecretHeaderInput,
    SecretReplacement,
    SendAgain,
    SigningOrder,
    Submission,
    SubmissionChange,
    SubmissionDocuments,
    SubmissionEventKind,
    SubmissionEventPage,
    SubmissionPage,
    SubmissionPreferences,
    SubmissionStatus,
    Submitter,
    SubmitterChange,
    SubmitterPage,
    SubmittersOfSubmissions,
    SubmitterStatus,
    Template,
    TemplateChange,
    TemplateCopy,
    TemplateMerge,
    TemplatePage,
    TemplatePreferences,
    TestClock,
    TestMail,
    TestMailPage,
    TestTextMessage,
    TestTextMessagePage,
    TriedValues,
    Trust,
    User,
    UserChange,
    UserWithKey,
    ValueSchema,
    Variables,
    Verification,
    Verify,
    Version,
    Webhook,
    WebhookChange,
    WebhookPage,
    WipedTestMode,
)
from countersign_client.types import File

from tests.support.clients.generated_client.answers import told, told_all

T = TypeVar("T")
MARK = uuid.uuid4().hex[:12]
CHOICE = uuid.uuid4()
HTML = '<p>Name <text-field name="Name" role="Seller" style="width: 120px; height: 20px"></text-field></p>'
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAADwAAAAYAQAAAACOuqP/AAAAh0lEQVR42m3OsQ2CUAAA0ePHRIYgQuIiupBxA+wsXYnEAgtrawew+B8KMEHPRh"
    "ILr3rlZQJACnz7i8eM24wWELSoddpnuskaEoH39g49OHrSY8Rkq2UMdBS8KrA1ORoDF5Y8AUun+mwMVoTmCky1rkrjYjrArgeS2mgMHbAGGNRB"
    "Y8iB/Pf5AznqTf0fIYnqAAAAAElFTkSuQmCC"
)


def main(url: str, key: str, pdf: str, docx: str) -> None:
    client = AuthenticatedClient(base_url=f"{url}/api", token=key, prefix="", auth_header_name="X-Auth-Token")
    nobody = Client(base_url=f"{url}/api")
    users(client)
    account(client)
    webhook = subscribe(client)
    template = templates(client, pdf, docx)
    submission = from_template(client, template)
    signing_form(nobody, submission.submitters[1])
    completed(client, submission)
    one_offs(client, template, pdf, docx)
    several(client, template)
    batches(client, template)
    happened(client, webhook, submission)
    in_test_mode(client, url)
    refused(client, url, submission)
    removed(client, template, submission)
    print("done")


def users(client: AuthenticatedClient) -> None:
    me = told(users_current.sync_detailed(client=client), User)
    assert me.role is Role.ADMIN
    body = NewUser(email=f"ana-{MARK}@example.com", first_name="Ana", role=Role.EDITOR)
    made = told(users_create.sync_detailed(client=client, body=body, idempotency_key=f"user {MARK}"), UserWithKey)
    assert (made.role, made.last_name, bool(made.api_key)) == (Role.EDITOR, "", True) or made.last_name is None
    assert told(users_get.sync_detailed(made.id, client=client), User).created_at == made.created_at
    change = UserChange(first_name="Anna", last_name=None, role=Role.VIEWER)
    assert told(users_update.sync_detailed(made.id, client=client, body=change), User).last_name is None
    assert made.id in [one.id for one in told_all(users_search.sync_detailed(client=client), User)]
    known = told(users_api_key.sync_detailed(made.id, client=client), ApiKey)
    assert told(users_rotate_api_key.sync_detailed(made.id, client=client), ApiKey).api_key != known.api_key
    keys(client, made.id)
    gone = told(users_remove.sync_detailed(made.id, client=client), RemovedUser)
    assert gone.archived_at.tzinfo is not None


def keys(client: AuthenticatedClient, user: int) -> None:
    end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=30)
    body = NewKey(name="CRM", scopes=[KeyScope.READ, KeyScope.SEND], expires_at=end)
    made = told(keys_create.sync_detailed(user, client=client, body=body), MadeKey)
    assert (made.expires_at is not None, made.last_used_at, bool(made.api_key)) == (True, None, True)
    change = KeyChange(scopes=[KeyScope.READ])
    assert told(keys_update.sync_detailed(user, made.id, client=client, body=change), Key).scopes == [KeyScope.READ]
    assert told(keys_get.sync_detailed(user, made.id, client=client), Key).name == "CRM"
    first, other = told_all(keys_search.sync_detailed(user, client=client), Key)
    assert (first.first, first.expires_at, other.id) == (True, None, made.id)
    assert told(keys_remove.sync_detailed(user, made.id, client=client), Key).name == "CRM"


def in_test_mode(client: AuthenticatedClient, url: str) -> None:
    me = told(users_current.sync_detailed(client=client), User)
    key = NewKey(name="Tests", scopes=[KeyScope.READ, KeyScope.SEND, KeyScope.TEMPLATES, KeyScope.ADMIN], test=True)
    made = told(keys_create.sync_detailed(me.id, client=client, body=key), MadeKey)
    assert made.test
    tests = AuthenticatedClient(f"{url}/api", made.api_key, prefix="", auth_header_name="X-Auth-Token")
    page = NewHtmlTemplate(html=HTML, name="In test mode")
    template = told(templates_create_from_html.sync_detailed(client=tests, body=page), Template)
    person = NewSubmitter(email="tests@example.com", phone="+43664123456", send_sms=True)
    body = NewSubmission(template_id=template.id, submitters=[person])
    sent = told(submissions_init.sync_detailed(client=tests, body=body), Submission)
    assert sent.test

    def mailed() -> TestMail | None:
        page = told(test_mode_mails.sync_detailed(client=tests, submission_id=sent.id), TestMailPage)
        return next(iter(page.data), None)

    def texted() -> TestTextMessage | None:
        page = told(test_mode_text_messages.sync_detailed(client=tests, submission_id=sent.id), TestTextMessagePage)
        return next(iter(page.data), None)

    assert wait_for(mailed).to == "tests@example.com"
    assert wait_for(texted).submission_id == sent.id
    advanced = told(test_mode_advance.sync_detailed(client=tests, body=TestClock(advance="1d")), AdvancedTestClock)
    assert advanced.seconds == 86_400
    assert told(test_mode_get.sync_detailed(client=tests), InTestMode).submissions
    assert told(test_mode_wipe.sync_detailed(client=tests), WipedTestMode).submissions
    told(keys_remove.sync_detailed(me.id, made.id, client=client), Key)


def account(client: AuthenticatedClient) -> None:
    before = told(account_get.sync_detailed(client=client), Account)
    change = AccountChange(time_zone="Europe/Vienna", reminders=Reminders(first=ReminderDelay.TWO_DAYS, second=None))
    changed = told(account_update.sync_detailed(client=client, body=change), Account)
    assert changed.reminders is not None
    assert changed.reminders.first is ReminderDelay.TWO_DAYS
    assert changed.name == before.name
    back = AccountChange(time_zone=None, reminders=None)
    assert told(account_update.sync_detailed(client=client, body=back), Account).phone_otp_webhook is None


def subscribe(client: AuthenticatedClient) -> Webhook:
    secret = SecretHeaderInput()
    secret["X-Hook-Secret"] = "s3cret"
    body = NewWebhook(url=f"http://127.0.0.1:9/{MARK}", events=[EventKind.SUBMISSION_CREATED], secret=secret)
    made = told(webhooks_create.sync_detailed(client=client, body=body), Webhook)
    assert made.events == [EventKind.SUBMISSION_CREATED]
    assert made.secret["X-Hook-Secret"] == "s3cret"
    change = WebhookChange(events=[EventKind.FORM_COMPLETED, EventKind.SUBMISSION_COMPLETED])
    assert len(told(webhooks_update.sync_detailed(made.id, client=client, body=change), Webhook).events) == 2
    page = told(webhooks_search.sync_detailed(client=client, after=made.id - 1), WebhookPage)
    assert made.id in [one.id for one in page.data]
    return told(webhooks_get.sync_detailed(made.id, client=client), Webhook)


def templates(client: AuthenticatedClient, pdf: str, docx: str) -> Template:
    choice = FieldInput(
        name="Choice", type_=FieldType.SELECT, role="Seller", required=False, options=["Yes", "No"], uuid=str(CHOICE),
        areas=[AreaInput(x=0.1, y=0.9, w=0.2, h=0.02, page=1)], default_value="Yes",
    )  # fmt: skip
    number = FieldInput(
        name="Share", type_=FieldType.NUMBER, role="Seller", required=False, default_value=12.5,
        areas=[AreaInput(x=0.5, y=0.9, w=0.2, h=0.02, page=1)],
        validation=FieldValidation(min_=1, max_=100), preferences=FieldPreferences(font_type=FontStyle.BOLD, font_size=9),
        conditions=[ConditionInput(field_uuid=str(CHOICE), action=ConditionAction.EQUAL, value="Yes")],
    )  # fmt: skip
    body = NewPdfTemplate(
        name="Agreement",
        folder_name="Generated",
        external_id=f"generated {MARK}",
        documents=[NewPdfDocument(name="agreement", file=pdf, fields=[choice, number])],
    )
    tried = told(templates_create_from_pdf.sync_detailed(client=client, body=body, dry_run=True), DryRun)
    assert (tried.accepted, tried.problems, tried.submitters) == (True, [], None)
    made = told(templates_create_from_pdf.sync_detailed(client=client, body=body), Template)
    shown = {field.name: field for field in made.fields}
    assert shown["Share"].preferences.font_type is FontStyle.BOLD
    assert (shown["Share"].default_value, shown["Share"].conditions[0].action) == (12.5, ConditionAction.EQUAL)
    assert {one.width for one in made.documents[0].pages} == {595}

    word = NewDocxTemplate(name="Letter", documents=[NewDocxDocument(name="letter.docx", file=docx)])
    letter = told(templates_create_from_docx.sync_detailed(client=client, body=word), Template)
    assert "customer" in letter.variables_schema
    page = NewHtmlTemplate(html=HTML, name="Page", size=PaperSize.A4, shared_link=False)
    html = told(templates_create_from_html.sync_detailed(client=client, body=page), Template)
    both = TemplateMerge(template_ids=[made.id, html.id], name="Both")
    merged = told(templates_merge.sync_detailed(client=client, body=both), Template)
    more = DocumentsChange(documents=[DocumentChange(name="Annex", html=HTML, position=0)])
    changed = told(templates_change_documents.sync_detailed(merged.id, client=client, body=more), Template)
    assert len(changed.documents) == 3
    copied = templates_clone.sync_detailed(merged.id, client=client, body=TemplateCopy(name="Copy"), dry_run=True)
    assert told(copied, DryRun).name == "Copy"
    copy = told(templates_clone.sync_detailed(merged.id, client=client), Template)
    assert copy.author is not None
    preferences = TemplatePreferences(submitters_order=SigningOrder.RANDOM, documents_copy_email_enabled=False)
    kept = told(
        templates_update.sync_detailed(copy.id, client=client, body=TemplateChange(preferences=preferences)), Template
    )
    assert kept.preferences.submitters_order is SigningOrder.RANDOM
    listed = told(templates_search.sync_detailed(client=client, folder="Generated", limit=100), TemplatePage)
    assert made.id in [one.id for one in listed.data]
    found = told(templates_search.sync_detailed(client=client, external_id=f"generated {MARK}"), TemplatePage)
    assert [one.id for one in found.data] == [made.id]
    assert (found.pagination.count, found.pagination.next_) == (1, made.id)
    schema = told(templates_schema.sync_detailed(made.id, client=client), ValueSchema)
    assert [*schema["properties"]] == made.roles
    answers = TriedValues()
    answers["Full name"] = "Bo"
    evaluation = Evaluation(cases=[EvaluationCase(values=answers)])
    evaluated = told(templates_evaluate.sync_detailed(made.id, client=client, body=evaluation), Evaluated)
    assert "Bo" in [field.value for field in evaluated.cases[0].fields]
    detected = told(templates_detected_fields.sync_detailed(made.id, client=client), Detection)
    assert all(0 <= field.confidence <= 1 for field in detected.fields)
    return told(templates_get.sync_detailed(made.id, client=client), Template)


def people() -> list[NewSubmitter]:
    values, metadata = FieldValuesInput(), MetadataInput()
    values["Full name"] = "Bo"
    metadata["crm"] = {"id": 7}
    override = FieldOverride(name="Colour", default_value="Green", readonly=True)
    return [
        NewSubmitter(role="Seller", email="seller@example.com", completed=True),
        NewSubmitter(role="Buyer", email="buyer@example.com", values=values, metadata=metadata, fields=[override]),
    ]


def from_template(client: AuthenticatedClient, template: Template) -> Submission:
    body = NewSubmission(
        template_id=template.id,
        submitters=people(),
        send_email=False,
        order=SigningOrder.PRESERVED,
        expire_at=datetime.datetime(2031, 1, 2, 3, 4, 5, tzinfo=datetime.UTC),
        message=Message(subject="Sign", body="Please: {{submitter.link}}"),
        preferences=SubmissionPreferences(documents_copy_email_enabled=False),
    )
    tried = told(submissions_init.sync_detailed(client=client, body=body, dry_run=True), DryRun)
    assert [one.role for one in tried.submitters or []] == ["Seller", "Buyer"]
    made = told(submissions_init.sync_detailed(client=client, body=body), Submission)
    assert made.expire_at == body.expire_at
    assert (made.status, made.sealing_status, made.order) == (SubmissionStatus.PENDING, None, SigningOrder.PRESERVED)
    assert made.preferences.documents_copy_email_enabled is False
    seller, buyer = made.submitters
    assert (seller.status, buyer.status) == (SubmitterStatus.COMPLETED, SubmitterStatus.PENDING)
    assert (buyer.values["Full name"], buyer.metadata["crm"]) == ("Bo", {"id": 7})
    other = NewSubmissionOfTemplate(submitters=people(), send_email=False)
    created = templates_create_submission.sync_detailed(template.id, client=client, body=other)
    assert len(told_all(created, Submitter)) == 2
    assert len(told_all(submissions_create.sync_detailed(client=client, body=body), Submitter)) == 2
    named = submissions_update.sync_detailed(
        made.id, client=client, body=SubmissionChange(name="Named", expire_at=None)
    )
    assert told(named, Submission).expire_at is None
    page = told(
        submissions_search.sync_detailed(
            client=client, template_id=template.id, status=SubmissionStatus.PENDING, limit=2
        ),
        SubmissionPage,
    )
    assert page.pagination.next_ == page.data[-1].id
    listed = templates_submissions.sync_detailed(template.id, client=client, q="buyer@example", archived=False)
    assert len(told(listed, SubmissionPage).data) == 3
    draft = told(submissions_documents.sync_detailed(made.id, client=client), SubmissionDocuments)
    assert draft.documents[0].preview_image_url is not None
    return told(submissions_get.sync_detailed(made.id, client=client, include="fields"), Submission)


def signing_form(nobody: Client, buyer: Submitter) -> None:
    """Needs no key."""
    assert buyer.slug is not None  # null is for viewers
    file = File(payload=io.BytesIO(PNG), file_name="signature.png", mime_type="image/png")
    upload = NewAttachment(submitter_slug=buyer.slug, type_="signature", file=file)
    assert told(attachments_create.sync_detailed(client=nobody, body=upload), Attachment).content_type == "image/png"
    told(submitter_form_views_create.sync_detailed(client=nobody, body=FormView(submitter_slug=buyer.slug)), Empty)
    asked = phone_codes_send.sync_detailed(client=nobody, body=PhoneCodeRequest(submitter_slug=buyer.slug))
    assert told(asked, Error).code is ErrorCode.CONFLICT  # none is asked for


def completed(client: AuthenticatedClient, submission: Submission) -> None:
    buyer = submission.submitters[1]
    values = FieldValuesInput()
    values["Price"], values["Terms"] = 12.5, True
    body = SubmitterChange(completed=True, values=values, reply_to="office@example.com")
    done = told(submitters_update.sync_detailed(buyer.id, client=client, body=body), Submitter)
    assert done.completed_at is not None
    assert done.preferences.reply_to == "office@example.com"

    def sealed() -> Submission | None:
        now = told(submissions_get.sync_detailed(submission.id, client=client), Submission)
        return now if now.status is SubmissionStatus.COMPLETED else None

    read = wait_for(sealed)
    assert read.sealing_status is SealingStatus.SEALED
    assert read.submitters[1].values["Price"] == 12.5
    assert told(submitters_get.sync_detailed(buyer.id, client=client), Submitter).template is not None
    since = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    page = submitters_search.sync_detailed(client=client, submission_id=submission.id, completed_after=since)
    assert len(told(page, SubmitterPage).data) == 2
    trail = told(submissions_events.sync_detailed(submission.id, client=client, limit=100), SubmissionEventPage)
    assert {"view_form", "api_complete_form"} <= {line.event_type for line in trail.data}
    final = told(submissions_documents.sync_detailed(submission.id, client=client, merge=True), SubmissionDocuments)
    answer = client.get_httpx_client().get(final.documents[0].url)
    assert answer.content.startswith(b"%PDF-")
    file = base64.b64encode(answer.content).decode()
    verified = told(tools_verify.sync_detailed(client=client, body=Verify(file=file)), Verification)
    assert verified.checksum_status in (ChecksumStatus.VALID, ChecksumStatus.UNSIGNED)
    assert all(one.trust is Trust.TRUSTED for one in verified.signatures)
    merged = told(tools_merge.sync_detailed(client=client, body=Merge(files=[file, file])), MergedFile)
    assert base64.b64decode(merged.data).startswith(b"%PDF-")
    assert told(tools_version.sync_detailed(client=client), Version).api_version == "1"
    evidence = submissions_evidence.sync_detailed(submission.id, client=client).parsed
    assert isinstance(evidence, File)
    assert "verify.py" in zipfile.ZipFile(evidence.payload).namelist()


def one_offs(client: AuthenticatedClient, template: Template, pdf: str, docx: str) -> None:
    document = PlacedPdfDocument(name="agreement", file=pdf, position=0)
    body = NewPdfSubmission(documents=[document], submitters=people(), send_email=False, template_ids=[template.id])
    assert told(submissions_create_from_pdf.sync_detailed(client=client, body=body, dry_run=True), DryRun).accepted
    once = told(submissions_create_from_pdf.sync_detailed(client=client, body=body), Submission)
    assert (once.template, [one.name for one in once.schema or []]) == (None, ["agreement", "agreement"])
    seller = [NewSubmitter(role="Seller", email="seller@example.com")]
    page = NewHtmlSubmission(submitters=seller, html=HTML, name="Page", send_email=False)
    assert told(submissions_create_from_html.sync_detailed(client=client, body=page), Submission).fields
    variables = Variables()
    variables["customer"] = "Acme"
    word = NewDocxSubmission(
        documents=[PlacedDocxDocument(name="letter.docx", file=docx)],
        submitters=seller,
        variables=variables,
        send_email=False,
    )
    assert len(told_all(submissions_create_from_docx.sync_detailed(client=client, body=word), Submitter)) == 1


def several(client: AuthenticatedClient, template: Template) -> None:
    each = [OneOfSubmissions(submitters=people(), name=name) for name in ("One", "Two")]
    many = NewSubmission(template_id=template.id, submissions=each, send_email=False)
    made = told(submissions_init.sync_detailed(client=client, body=many), SubmittersOfSubmissions)
    assert len({one.submission_id for one in made.submitters}) == 2
    body = NewSubmissionsByEmail(template_id=template.id, emails=["a@example.com", "b@example.com"], send_email=False)
    assert len(told_all(submissions_emails.sync_detailed(client=client, body=body), Submitter)) == 2


def batches(client: AuthenticatedClient, template: Template) -> None:
    def file() -> File:
        rows = b"external_id,Seller.email,Buyer.email\n1,s@example.com,b@example.com\n2,s@example.com,c@example.com\n"
        return File(payload=io.BytesIO(rows), file_name="leases.csv", mime_type="text/csv")

    settings = BatchSettings(template_id=template.id, send_email=False, rate=1)
    tried = batches_create.sync_detailed(client=client, body=NewBatch(rows=file(), settings=settings), dry_run=True)
    assert (told(tried, BatchDryRun).accepted, told(tried, BatchDryRun).tried) == (True, 2)
    sent = batches_create.sync_detailed(client=client, body=NewBatch(rows=file(), settings=settings))
    assert (sent.status_code, told(sent, Batch).status) == (202, BatchStatus.RUNNING)
    batch = told(sent, Batch)

    def begun() -> Batch | None:
        now = told(batches_get.sync_detailed(batch.id, client=client), Batch)
        return now if now.counts.created else None

    wait_for(begun)
    page = told(batches_search.sync_detailed(client=client, after=batch.id - 1), BatchPage)
    assert batch.id in [one.id for one in page.data]
    made = batches_rows.sync_detailed(batch.id, client=client, status=BatchRowStatus.CREATED, include="submitters")
    row = told(made, BatchRowPage).data[0]
    assert (row.row, row.external_id) == (2, "1")
    assert row.submitters
    assert row.submitters[0].status is SubmitterStatus.PENDING
    results = batches_results.sync_detailed(batch.id, client=client).parsed
    assert isinstance(results, File)
    assert b"Seller.email" in results.payload.read()
    assert told(batches_cancel.sync_detailed(batch.id, client=client), Batch).status is BatchStatus.CANCELLED
    assert told(batches_retry.sync_detailed(batch.id, client=client), Error).code is ErrorCode.CONFLICT


def happened(client: AuthenticatedClient, webhook: Webhook, submission: Submission) -> None:
    since = submission.created_at.timestamp() - 1

    def form() -> FormEventData | None:
        answer = events_form.sync_detailed(FormEventKind.FORM_COMPLETED, client=client, limit=100, after=since)
        events = [one.data for one in told(answer, PolledFormEventPage).data]
        return next(
            (one for one in events if isinstance(one, FormEventData) and one.submission_id == submission.id), None
        )

    def whole() -> PolledSubmissionEventData | ErasedEventData | None:
        kind = SubmissionEventKind.SUBMISSION_COMPLETED
        answer = events_submission.sync_detailed(kind, client=client, limit=100, after=since)
        events = [one.data for one in told(answer, PolledSubmissionEventPage).data]
        return next((one for one in events if one.id == submission.id), None)

    def attempted() -> Delivery | None:
        page = told(webhooks_deliveries.sync_detailed(webhook.id, client=client), DeliveryPage)
        return next((one for one in page.data if one.attempts), None)

    assert wait_for(form).submission.status
    told_of = wait_for(whole)
    assert isinstance(told_of, PolledSubmissionEventData)
    assert told_of.submitters[1].email == "buyer@example.com"
    kinds = f"{EventKind.FORM_SIGNED},{EventKind.SUBMISSION_COMPLETED}"
    feed = told(events_feed.sync_detailed(client=client, limit=100, after=0, kinds=kinds, wait=1), EventFeedPage)
    assert feed.data[0].sequence == feed.pagination.prev
    assert feed.data[0].data.additional_properties
    assert told(webhooks_test.sync_detailed(webhook.id, client=client), Confirmation).message
    delivery = wait_for(attempted)
    assert delivery.attempts[0].error is not None
    again = told(webhooks_resend.sync_detailed(webhook.id, delivery.id, client=client), Delivery)
    assert again.message_id == delivery.message_id
    other = SecretReplacement(overlap_hours=1)
    replaced = told(webhooks_replace_secret.sync_detailed(webhook.id, client=client, body=other), Webhook)
    assert [one.secret for one in replaced.former_signing_secrets] == [webhook.signing_secret]
    span = Replay(from_=submission.created_at, kinds=[EventKind.SUBMISSION_COMPLETED])
    assert told(webhooks_replay.sync_detailed(webhook.id, client=client, body=span), Replayed).queued
    assert told(webhooks_remove.sync_detailed(webhook.id, client=client), Confirmation).message


def refused(client: AuthenticatedClient, url: str, submission: Submission) -> None:
    """Whatever is refused is a typed error."""
    missing = told(templates_get.sync_detailed(2**60, client=client), Error)
    assert (missing.code, missing.status) == (ErrorCode.NOT_FOUND, 404)
    wrong = NewSubmission(template_id=1, submitters=[NewSubmitter(email="john@example")])
    bad = told(submissions_create.sync_detailed(client=client, body=wrong), Error)
    assert bad.code is ErrorCode.INVALID
    assert bad.details
    assert (bad.details[0].field, bad.details[0].reason) == ("submitters[0].email", "is invalid")
    stranger = AuthenticatedClient(f"{url}/api", "not a key", prefix="", auth_header_name="X-Auth-Token")
    assert told(users_current.sync_detailed(client=stranger), Error).code is ErrorCode.UNAUTHENTICATED
    assert told(account_test_certsign.sync_detailed(client=client), Error).code is ErrorCode.INVALID
    assert told(account_dutystamps.sync_detailed(client=client), BoughtDutystampPage).pagination.count == 0
    person = told(people_get.sync_detailed("seller@example.com", client=client), AboutPerson)
    assert person.data[0].parties[0].submitter.email == "seller@example.com"
    assert told(people_remove_unsent.sync_detailed("nobody@example.com", client=client), RemovedUnsent).batch_rows == 0
    assert told(submissions_erasure.sync_detailed(submission.id, client=client), Error).code is ErrorCode.NOT_FOUND
    no_receipt = submissions_erasure_receipt.sync_detailed(submission.id, client=client)
    assert told(no_receipt, Error).code is ErrorCode.NOT_FOUND
    for operation in (submissions_dutystamp, submissions_certsign, submissions_seal):
        assert told(operation.sync_detailed(submission.id, client=client), Error).code is ErrorCode.INVALID
    not_returned = submissions_send_again.sync_detailed(submission.id, client=client, body=SendAgain(sign_again=[]))
    assert told(not_returned, Error).code is ErrorCode.INVALID


def removed(client: AuthenticatedClient, template: Template, submission: Submission) -> None:
    assert told(submissions_remove.sync_detailed(submission.id, client=client), Removed).archived_at is not None
    gone = submissions_remove.sync_detailed(submission.id, client=client, permanently=True)
    assert told(gone, Removed).archived_at is None

    def erased() -> ErasedEventData | None:
        kind, since = SubmissionEventKind.SUBMISSION_COMPLETED, submission.created_at.timestamp() - 1
        page = told(events_submission.sync_detailed(kind, client=client, after=since), PolledSubmissionEventPage)
        events = [one.data for one in page.data if one.data.id == submission.id]
        return next((one for one in events if isinstance(one, ErasedEventData)), None)

    assert wait_for(erased).erased
    assert told(templates_remove.sync_detailed(template.id, client=client), Removed).archived_at is not None


def wait_for(look: Callable[[], T | None]) -> T:
    """What ``look`` gives as soon as it gives something."""
    deadline = time.monotonic() + 60
    while (found := look()) is None:
        assert time.monotonic() < deadline, f"{look.__name__} did not come true"
        time.sleep(0.05)
    return found


if __name__ == "__main__":
    location, api_key, *files = sys.argv[1:]
    main(location, api_key, *[base64.b64encode(Path(file).read_bytes()).decode() for file in files])
