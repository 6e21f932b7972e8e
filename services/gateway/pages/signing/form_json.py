"""The signing form as the browser gets it: the service's answer, with labels and cleaned HTML, and without what this
signer has no business to see."""

from collections import Counter
from typing import Any
from urllib.parse import quote, urlsplit

from contracts import links
from contracts.fields.conditions import hidden
from contracts.fields.formulas.references import EXPRESSIONS, expression
from contracts.fields.kinds import KINDS
from contracts.fields.rules import is_empty
from contracts.languages.saying import Section
from contracts.rpc.submissions.signing.form import FormDocument, FormField, SigningForm
from contracts.types import ActsAs, Attachment, DocumentLink
from services.gateway.pages.answering import autocomplete
from services.gateway.pages.answering.context import PagesContext
from services.gateway.pages.answering.markdown import block_html, inline_html, plain
from services.gateway.pages.texts import APPROVAL, STATEMENT

_SHOWN_OTHERWISE = {"documents", "drawn_from", "fields", "attachments", "results", "audit_log_url", "signed"}
_OF_OTHERS = {"uuid", "type", "areas", "preferences", "options", "conditions", "value", "display", "mine", "label"}


def form_json(context: PagesContext, slug: str, form: SigningForm, texts: Section) -> dict[str, Any]:
    """Return what the page's script starts from."""
    labels = _labels(form.fields, texts)
    offered = autocomplete.tokens(form.fields, {uuid: text for uuid, (text, _) in labels.items()})
    redirect = web_address(form.completed_redirect_url)
    return {
        **form.model_dump(mode="json", exclude=_SHOWN_OTHERWISE),
        "documents": [
            {
                "uuid": document.uuid,
                "name": document.name,
                "url": file_url(context, slug, document.url) if document.url else None,
                "text_url": f"{context.root}/s/{slug}/text/{quote(document.uuid, safe='')}",
                "conditions": [condition.model_dump(mode="json") for condition in document.conditions],
                "pages": [
                    {**page.model_dump(), "url": page_url(context, slug, document.uuid, number)}
                    for number, page in enumerate(document.pages, start=1)
                ],
            }
            for document in form.documents
        ],
        "fields": [_field(field, labels[field.uuid], offered.get(field.uuid)) for field in form.fields],
        "attachments": [attachment_json(context, slug, attachment) for attachment in form.attachments],
        **results_json(context, form),
        "signed_picture": _picture(context, slug, form),
        "completed_redirect_url": redirect["url"] if redirect else None,
        "consent": _consent(form),
        "statement": texts(APPROVAL if form.acts_as == ActsAs.APPROVER else STATEMENT),
        "logo_url": context.local(form.logo_url) if form.logo_url else None,
        "max_file_size": context.settings.max_file_size,
        "identity_provider": context.identity.name if context.identity else None,
    }


def start_json(form: SigningForm) -> dict[str, Any]:
    """Return what the start screen says, before a script is there. ``steps``: the fields that the signer goes through."""
    mine = [field for field in form.fields if field.mine and not field.readonly and KINDS[field.type].control]
    gone = _gone(form)
    return {
        "may_complete": form.acts_as != ActsAs.VIEWER if form.acts_as else any(field.mine for field in form.fields),
        "steps": sum(field.uuid not in gone for field in mine),
        "resumed": form.go_to_last and any(not is_empty(field.value) for field in mine),
    }


def first_document(form: SigningForm) -> FormDocument | None:
    """Return the document whose first page is seen first; one whose conditions do not hold is not there."""
    gone = _gone(form)
    return next((document for document in form.documents if document.pages and document.uuid not in gone), None)


def first_page_url(context: PagesContext, slug: str, form: SigningForm) -> str | None:
    """Return where the picture is that is seen first."""
    first = first_document(form)
    return page_url(context, slug, first.uuid, 1) if first is not None else None


def _gone(form: SigningForm) -> set[str]:
    """Return the fields and the documents that are not shown, by the answers that are there."""
    of_documents = {document.uuid: document.conditions for document in form.documents if document.conditions}
    return hidden(form.fields, of_documents, {field.uuid: field.value for field in form.fields})


def results_json(context: PagesContext, form: SigningForm) -> dict[str, Any]:
    """Return what the page polls while the documents are being sealed."""
    return {
        "state": form.state,
        "sealing_status": form.sealing_status,
        "waits_for_provider": form.waits_for_provider,
        "results": [_link(context, link) for link in form.results],
        "audit_log_url": context.local(form.audit_log_url) if form.audit_log_url else None,
        "code": form.code.model_dump() if form.code else None,
    }


def attachment_json(context: PagesContext, slug: str, attachment: Attachment) -> dict[str, Any]:
    return {**attachment.model_dump(mode="json"), "url": file_url(context, slug, attachment.url)}


def file_url(context: PagesContext, slug: str, url: str) -> str:
    """A link to a file, as one of this page alone: when the page's link is replaced, it is worth nothing any more."""
    token = url.partition("/file/")[2].partition("/")[0]
    secret = context.settings.link_secret.get_secret_value()
    try:
        link = links.read(secret, token)
    except links.BadLink:
        return context.local(url)  # nobody can fetch it, here or there
    return f"{context.root}/s/{slug}/file/{links.sign(secret, link, slug)}/{quote(link.filename, safe='')}"


def page_url(context: PagesContext, slug: str, document_uuid: str, number: int) -> str:
    return f"{context.root}/s/{slug}/pages/{quote(document_uuid, safe='')}/{number}"


def web_address(url: str | None) -> dict[str, str] | None:
    """``url`` with its host when a browser may be sent there: http and https, never ``javascript:`` or ``data:``."""
    try:
        parts = urlsplit(url or "")
        host = parts.hostname
    except ValueError:
        return None
    if not url or not host or parts.scheme not in ("http", "https"):
        return None
    return {"url": url, "host": host}


def _picture(context: PagesContext, slug: str, form: SigningForm) -> str | None:
    """Return where the picture is that a completed form was signed with."""
    picture = form.signed.picture if form.signed else None
    return file_url(context, slug, picture.url) if picture else None


def _consent(form: SigningForm) -> dict[str, Any] | None:
    """Return the words that the signer has to agree to, with where the terms can be read."""
    return {"text": form.consent.text, "terms": web_address(form.consent.url)} if form.consent else None


def _link(context: PagesContext, link: DocumentLink) -> dict[str, Any]:
    return {"name": link.name, "url": context.local(link.url), "sha256": link.sha256}


def _field(field: FormField, label: tuple[str, str], offered: str | None) -> dict[str, Any]:
    text, title_html = label
    values = {**field.model_dump(mode="json"), "label": text}
    if not field.mine:
        public = {key: values[key] for key in _OF_OTHERS}
        return {**public, "value": None} if field.preferences.get("mask") else public
    description = block_html(field.description or "")
    trees = {key: tree for key in EXPRESSIONS if (tree := expression(field, key)) is not None}
    return {
        **values,
        "title_html": title_html,
        "description_html": description,
        "autocomplete": offered,
        "expressions": trees,
    }


def _labels(fields: list[FormField], texts: Section) -> dict[str, tuple[str, str]]:
    """For each field its name in plain text and in HTML: ``title``, else ``name``, else its kind with a number."""
    labels = {}
    unnamed: Counter[str] = Counter()
    for field in fields:
        title_html = inline_html(field.title or "")
        text = plain(title_html)
        if not text:
            text, title_html = field.name.strip(), ""
        if not text:
            unnamed[field.type] += 1
            text = texts.of_kind(field.type, unnamed[field.type])
        labels[field.uuid] = (text, title_html)
    return labels
