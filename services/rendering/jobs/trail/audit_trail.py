"""The audit trail: a document that says what was signed, by whom, when and how that is known (peer facts 4.5).

It is in the account's language. It carries the account's name and never the branding of a recipient, every time with its zone,
every hash as SHA-256 in lower-case hex. What the API did is never called signing. The event log is a hash chain, which is
checked before it is printed; its head is printed whole.
"""

import hashlib
import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import pikepdf
from asn1crypto import x509

from contracts.evidence.audit_chain import START
from contracts.fields import paper as values
from contracts.fields.kinds import WITHOUT_CONTENT
from contracts.fields.paper import mark_of_test
from contracts.formats.markdown_text import plain_title
from contracts.languages.saying import Section, language_for
from contracts.rpc.rendering import FieldValue, FilledAttachment, PartySummary, SealRequest, TrailEvent
from contracts.types import ActsAs, FieldType
from services.rendering.jobs.drawing.footer import draw_test_mark
from services.rendering.jobs.paper import sheets
from services.rendering.jobs.paper.canvas import RED, Canvas
from services.rendering.jobs.paper.qr_code import qr_code
from services.rendering.jobs.paper.sheets import Block, Margins, Paper, readable
from services.rendering.jobs.pdf.geometry import Rectangle
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.text.layout import Color, Style, layout
from services.rendering.protocol.messages import SealedSummary, Waiver
from services.rendering.rules import differences

PRODUCT = "Countersign"

INK: Color = (0.106, 0.141, 0.188)
SOFT: Color = (0.302, 0.345, 0.4)
FAINT: Color = (0.847, 0.827, 0.784)
ACCENT: Color = (0.09, 0.361, 0.298)
TINT: Color = (0.898, 0.945, 0.929)

_TITLE = Style(size=23, bold=True, color=INK)
_SECTION = Style(size=12.5, bold=True, color=ACCENT)
_STRONG = Style(size=10.5, bold=True, color=INK)
_BODY = Style(size=9, color=INK, leading=1.3)
_QUIET = Style(size=8.5, color=SOFT, leading=1.3)
_LABEL = Style(size=7, bold=True, color=SOFT)
_HASH = Style(family="Courier", size=8, color=INK, leading=1.25)
_SMALL_HASH = Style(family="Courier", size=7.5, color=SOFT)
_FURNITURE = Style(size=7.5, color=SOFT, wrap=False)
_MARK = Style(size=7.5, bold=True, color=ACCENT, wrap=False)

_TEST = Style(size=12, bold=True, color=RED)

_CODE_SIDE = 76.0
_SHORT_HASH = 12
_RIGHT_TO_LEFT = "\u200f"
_DETAILS = (
    "to",
    "email",
    "phone",
    "method",
    "identified_as",
    "proved_email",
    "subject",
    "issuer",
    "acr",
    "certificate",
    "certificate_issuer",
    "certificate_serial",
    "certificate_sha256",
    "reason",
    "error",
    "provider",
    "ip",
    "key_id",
    "agent",
    "agent_key_id",
)
_MOST_CHANGES = 12
_PICTURE_HEIGHT = 46.0
_LETTER_ZONES = ("America/", "US/", "Pacific/Honolulu")
_NO_VALUE = frozenset({FieldType.HEADING}) | WITHOUT_CONTENT
_PICTURES = frozenset({FieldType.SIGNATURE, FieldType.INITIALS, FieldType.IMAGE, FieldType.STAMP})


class Sentence(str):
    """A message of ours, with the marks that keep the direction of what is filled in; a stranger's text has none."""

    __slots__ = ()


@dataclass(frozen=True)
class Seal:
    """Whose seal is on the documents and on this trail, and since when. ``waiver``: a provider was to sign the documents."""

    signer: str
    issuer: str
    sealed_at: datetime
    waiver: Waiver | None = None


class AuditTrail:
    """Laid out but for the documents, which may still be about to be sealed; ``attachments`` are file contents by uuid.

    Raises Refused when the hash chain of the events does not hold.
    """

    def __init__(self, request: SealRequest, attachments: Mapping[str, bytes], seal: Seal) -> None:
        check_chain(request.trail)
        self._say = say = language_for(request.account.locale).section("trail")
        size = sheets.LETTER if request.account.time_zone.startswith(_LETTER_ZONES) else sheets.A4
        self._name, self._trail = readable(request.name, 200), request.trail
        self._sheet = Paper(
            size,
            Margins(),
            partial(
                _furniture,
                say,
                readable(request.name, 80),
                request.submission_id,
                mark_of_test(request.account) if request.test else "",
            ),
            right_to_left=say.direction == "rtl",
        )
        self._sections = sections = _Sections(request, self._sheet, attachments, seal, say)
        self._before, self._after = sections.head(), [*sections.parties(), *sections.events(), *sections.verification()]

    def finish(self, documents: Sequence[SealedSummary]) -> pikepdf.Pdf:
        """The finished document, unsigned and still open. To be called once."""
        self._sheet.flow([*self._before, *self._sections.documents(documents), *self._after])
        pdf = self._sheet.save(title=self._say("file_title", name=self._name), language=self._say.language)
        # For programs, in plain text: what is printed binds the evidence to this trail, and so to its seal.
        pdf.docinfo["/CountersignEvents"] = f"{len(self._trail)} {self._trail[-1].hash if self._trail else START}"
        pdf.docinfo["/CountersignSealed"] = " ".join(document.sealed_sha256 for document in documents)
        return pdf


def check_chain(trail: Sequence[TrailEvent]) -> None:
    """Raises Refused naming the first line whose hash is not the one that its content and the line before it give, unless an
    admin has accepted that, which is on the trail itself."""
    accepted = set(differences.accepted_in(trail))
    for broken in differences.broken_lines(trail):
        if broken not in accepted:
            raise Refused(broken)


class _Sections:
    """Widths are of the printed part of the sheet."""

    def __init__(
        self, request: SealRequest, sheet: Paper, attachments: Mapping[str, bytes], seal: Seal, messages: Section
    ) -> None:
        self._request, self._sheet, self._attachments, self._seal = request, sheet, attachments, seal
        self._messages = messages
        self._width = sheet.width
        self._files: dict[str, FilledAttachment] = {attachment.uuid: attachment for attachment in request.attachments}
        self._parties = {party.id: party for party in request.parties}
        self._reasons = {note.field_uuid: note.reason for note in request.notes if note.reason}

    # --- sections

    def head(self) -> list[Block]:
        request, say = self._request, self._say
        facts = [
            (say("fact.submission"), str(request.submission_id)),
            (say("fact.created"), self._time(request.created_at)),
            (say("fact.completed"), self._time(request.completed_at)),
            (say("fact.sealed"), self._time(self._seal.sealed_at)),
        ]
        column = self._width / 2 - 14
        cells = [self._fact(label, value, column - 14) for label, value in facts]
        rows = [sheets.row([(0, cells[0]), (column, cells[1])]), sheets.row([(0, cells[2]), (column, cells[3])])]
        if request.account.with_signature_id:
            rows.append(
                self._fact(say("fact.document_id"), values.document_id(request.submission_slug), self._width - 28)
            )
        grid = sheets.stack(rows, gap=9)
        return [
            self._text(request.account.name, Style(size=10, bold=True, color=ACCENT), longest=120),
            sheets.space(5),
            self._text(say("title"), _TITLE),
            *([self._text(mark_of_test(request.account), _TEST)] if request.test else []),
            sheets.space(2),
            self._text(request.name, Style(size=12, color=SOFT), longest=300),
            sheets.space(16),
            sheets.panel(grid, self._width, TINT, 14),
        ]

    def documents(self, documents: Sequence[SealedSummary]) -> list[Block]:
        blocks = self._section(self._say("documents"))
        sealed_at = self._time(self._seal.sealed_at)
        for document in documents:
            sealed = self._say("documents.sealed", moment=sealed_at)
            quiet = [
                self._say("documents.pages", count=document.pages),
                _size(document.size),
                sealed,
                f"PAdES {document.level}",
            ]
            width = self._width - 14
            entry = sheets.stack(
                [
                    self._text(document.name, _STRONG, width, longest=300),
                    self._text(_joined(quiet), _QUIET, width),
                    *self._provider(document, width),
                    *self._stamps(document, width),
                    sheets.space(2),
                    *self._hashes(document),
                ],
                gap=2,
            )
            blocks += [sheets.barred(entry, ACCENT), sheets.space(13)]
        return blocks

    def _hashes(self, document: SealedSummary) -> list[Block]:
        last = "hash.stamped" if document.stamps else "hash.sealed"
        hashes = [
            ("hash.uploaded", document.original_sha256),
            ("hash.sealed", document.unstamped_sha256),
            (last, document.sealed_sha256),
        ]
        blocks = [
            block
            for title, digest in hashes
            if digest
            for block in (sheets.space(1), self._hash(self._say(title), digest))
        ]
        return blocks[1:]

    def _stamps(self, document: SealedSummary, width: float) -> list[Block]:
        if (stamps := document.stamps) is None:
            return []
        line = self._say(
            "documents.stamped",
            serials=", ".join(stamps.serials),
            provider=stamps.provider,
            moment=self._time(stamps.stamped_at),
        )
        return [self._text(line, _QUIET, width, longest=600)]

    def _provider(self, document: SealedSummary, width: float) -> list[Block]:
        """Return who signed a document in place of this installation, or should have."""
        if (signature := document.signature) is not None:
            certificate = x509.Certificate.load(signature.certificate)
            line = self._say(
                "documents.signed_by",
                signer=_common_name(certificate.subject),
                issuer=_common_name(certificate.issuer),
                provider=signature.provider,
                moment=self._time(signature.signed_at),
            )
            digest = hashlib.sha256(signature.certificate).hexdigest()
            return [self._text(line, _QUIET, width, longest=600), self._hash(self._say("hash.certificate"), digest)]
        if (waiver := self._seal.waiver) is not None:
            line = self._say("documents.waived", provider=waiver.provider, by=waiver.by, moment=self._time(waiver.at))
            return [self._text(line, _QUIET, width, longest=600)]
        return []

    def parties(self) -> list[Block]:
        blocks = self._section(self._say("parties"))
        are_several = len(self._request.parties) > 1
        for party in self._request.parties:
            head = [self._text(_name_of(party), _STRONG, longest=200)]
            about = [party.role] if are_several else []
            about += [text for text in (party.email, party.phone) if text and text != _name_of(party)]
            if about:
                head.append(self._text(_joined(about), _QUIET, longest=500))
            head.append(
                self._text(self._outcome(party), Style(size=9, bold=True, color=ACCENT, leading=1.3), longest=600)
            )
            blocks.append(sheets.keep_with_next(sheets.stack(head, gap=2)))
            blocks += [sheets.keep_with_next(sheets.space(7)), self._facts(self._evidence(party)), sheets.space(6)]
            blocks += self._values(party)
            blocks += [sheets.space(5), sheets.rule(self._width, FAINT), sheets.space(11)]
        return blocks

    def events(self) -> list[Block]:
        blocks = self._section(self._say("events"))
        widths = (0.0, 158.0, self._width - 92.0)
        titles = [("events.time", widths[0]), ("events.event", widths[1]), ("events.hash", widths[2])]
        header = sheets.row([(x, self._text(self._label(self._say(title)), _LABEL, 120)) for title, x in titles])
        blocks += [sheets.keep_with_next(header), sheets.keep_with_next(sheets.space(4))]
        for event in self._request.trail:
            column = [self._text(self._what(event), _BODY, widths[2] - widths[1] - 12, longest=300)]
            # Each has a line of its own: nobody whose name is "Ana · IP 192.0.2.1" says what another column should.
            about = (*self._whom(event), self._about(event), *self._changes(event), *self._accepted(event))
            column += [self._text(entry, _QUIET, widths[2] - widths[1] - 12, longest=600) for entry in about if entry]
            line = sheets.row(
                [
                    (widths[0], self._text(self._time(event.occurred_at), _BODY, widths[1] - 10)),
                    (widths[1], sheets.stack(column, gap=1)),
                    (widths[2], self._text(f"{event.hash[:_SHORT_HASH]}…", _SMALL_HASH, 92)),
                ]
            )
            blocks.append(sheets.stack([sheets.rule(self._width, FAINT, 0.4), sheets.space(4), line, sheets.space(5)]))
        return blocks

    def verification(self) -> list[Block]:
        """Return how anybody can check it, with and without us."""
        with_stamps = any(event.event_type == "request_dutystamp" for event in self._request.trail)
        say = self._say
        seal_step = say(self._seal_step(), signer=self._seal.signer, issuer=self._seal.issuer)
        head = self._request.trail[-1].hash if self._request.trail else START
        steps = [
            (say("verify.seal"), Sentence(f"{seal_step} {say('verify.seal.stamped')}") if with_stamps else seal_step),
            (say("verify.documents"), say("verify.documents.step")),
            (say("verify.log"), say("verify.log.step")),
        ]
        inner = self._width - 28
        blocks = self._page(inner)
        for title, step in steps:
            blocks += [self._text(title, _STRONG, inner), self._text(step, _BODY, inner), sheets.space(7)]
        blocks.append(self._text(head, _HASH, inner))
        whole = sheets.panel(sheets.stack(blocks), self._width, TINT, 14)
        return [*self._section(say("verify")), whole]

    # --- parts of sections

    def _seal_step(self) -> str:
        is_provided = self._request.certsign is not None and self._seal.waiver is None
        return "verify.seal.provided" if is_provided else "verify.seal.step"

    def _page(self, width: float) -> list[Block]:
        """Return where anybody can check a file, to be typed and as a QR code. None where the outside cannot reach us."""
        if not self._request.base_url:
            return []
        address = f"{self._request.base_url}/verify?submission={self._request.submission_id}"
        code = qr_code(address, _CODE_SIDE)
        beside = width - _CODE_SIDE - 14
        blocks = [
            self._text(self._say("verify.page"), _STRONG, beside),
            sheets.linked(self._text(address, _HASH, beside), beside, address),
            sheets.space(3),
            self._text(self._say("verify.page.step"), _BODY, beside),
        ]
        return [sheets.row([(0, code), (_CODE_SIDE + 14, sheets.stack(blocks, gap=1))]), sheets.space(11)]

    def _section(self, title: str) -> list[Block]:
        heading = sheets.stack([sheets.space(20), self._text(title, _SECTION), sheets.space(8)])
        return [sheets.keep_with_next(heading)]

    def _evidence(self, party: PartySummary) -> list[tuple[str, str]]:
        consent = party.consent or {}
        invited = party.invited_at or party.sent_at
        agreed_at = _moment(consent.get("agreed_at") or consent.get("time"))
        say = self._say
        facts = [
            (say("evidence.invited"), self._time(invited) if invited else ""),
            (say("evidence.sent"), self._time(party.sent_at) if party.sent_at and party.invited_at else ""),
            (say("evidence.opened"), self._time(party.opened_at) if party.opened_at else ""),
            (say("evidence.ip"), party.ip or ""),
            (say("evidence.time_zone"), party.time_zone or ""),
            (say("evidence.email_verified"), self._verified(party, "email_verified")),
            (say("evidence.phone_verified"), self._verified(party, "phone_verified")),
            *((say("evidence.identity"), proof) for proof in self._proofs(party)),
            (say("evidence.let_in"), self._let_in_by(party)),
            (say("evidence.consent"), self._time(agreed_at) if agreed_at else ""),
            (say("evidence.consent_text"), str(consent.get("text") or "")),
            (say("evidence.consent_url"), str(consent.get("url") or "")),
            (say("evidence.statement"), self._statement(party)),
            (say("evidence.user_agent"), party.user_agent or ""),
        ]
        return [(label, value) for label, value in facts if value]

    def _completion(self, party: PartySummary) -> TrailEvent | None:
        done = differences.standing(self._request.trail)
        return next((line for line in done if line.submitter_id == party.id), None)

    def _let_in_by(self, party: PartySummary) -> str:
        """Return how this party was let in to the form that it completed. Lines of older versions do not say it."""
        done = self._completion(party)
        ways = done.data.get("let_in_by") if done else None
        return ", ".join(filter(None, map(self._way, ways))) if isinstance(ways, list) else ""

    def _statement(self, party: PartySummary) -> str:
        done = self._completion(party)
        statement = done.data.get("statement") if done else None
        return str(statement.get("words") or "") if isinstance(statement, dict) else ""

    def _verified(self, party: PartySummary, event_type: str) -> str:
        """Return when this party passed a one-time code last before it was done; the event log has every time."""
        done = party.completed_at
        moments = [
            line.occurred_at
            for line in self._request.trail
            if (line.submitter_id, line.event_type) == (party.id, event_type)
            and (done is None or line.occurred_at <= done)
        ]
        return self._say("evidence.by_code", moment=self._time(max(moments))) if moments else ""

    def _proofs(self, party: PartySummary) -> list[str]:
        """Return whom identity providers named when this party proved who it is, and how they were asked. What was proved
        before its address was another one fills no field any more."""
        values = [entry for entry in self._request.values if entry.submitter_id == party.id and entry.value]
        fields = sum(entry.field.type is FieldType.VERIFICATION for entry in values)
        proofs = []
        for line in self._request.trail:
            if (line.submitter_id, line.event_type) != (party.id, "complete_verification"):
                continue
            names = [str(line.data[key]) for key in ("identified_as", "subject") if line.data.get(key)]
            key, level = (
                ("evidence.proof_assured", line.data["acr"]) if line.data.get("acr") else ("evidence.proof", "")
            )
            placeholders = {
                "names": " · ".join(names),
                "issuer": line.data.get("issuer"),
                "moment": self._time(line.occurred_at),
            }
            proofs.append(self._say(key, **placeholders, level=level))
        return list(dict.fromkeys(proofs[-fields:])) if fields else []

    def _facts(self, facts: Sequence[tuple[str, str]]) -> Block:
        """Label and value, two pairs beside each other while they are short."""
        rows: list[Block] = []
        half = self._width / 2
        waiting: list[Block] = []
        for label, value in facts:
            if len(value) > 48:
                rows.append(self._fact(label, value, self._width))
                continue
            waiting.append(self._fact(label, value, half - 14))
            if len(waiting) == 2:
                rows.append(sheets.row([(0, waiting[0]), (half, waiting[1])]))
                waiting = []
        return sheets.stack([*rows, *waiting], gap=6)

    def _values(self, party: PartySummary) -> list[Block]:
        """Return what the party filled in, two fields beside each other; pictures small, files by name and hash."""
        own_values = [
            entry
            for entry in self._request.values
            if entry.submitter_id == party.id and entry.field.type not in _NO_VALUE
        ]
        counts: dict[str, int] = {}
        cells = []
        for entry in own_values:
            counts[entry.field.type] = counts.get(entry.field.type, 0) + 1
            if (shown := self._shown(entry)) is not None:
                title = (
                    plain_title(entry.field.title or "")
                    or entry.field.name
                    or self._unnamed(entry.field.type, counts[entry.field.type])
                )
                label = self._text(self._label(title), _LABEL, self._width / 2 - 14, longest=120)
                cells.append(sheets.stack([label, shown], gap=2))
        half = self._width / 2 - 6
        pairs = [cells[index : index + 2] for index in range(0, len(cells), 2)]
        blocks = []
        for pair in pairs:
            line = sheets.row([(index * half, cell) for index, cell in enumerate(pair)])
            blocks.append(sheets.barred(sheets.stack([line, sheets.space(7)]), FAINT))
        return [sheets.space(4), *blocks]

    def _shown(self, entry: FieldValue) -> Block | None:
        width = self._width / 2 - 14
        uuids = entry.value if isinstance(entry.value, list) else [entry.value]
        if any(uuid in self._files and self._files[uuid].branding for uuid in uuids if isinstance(uuid, str)):
            return None
        if entry.field.type in _PICTURES:
            data = self._attachments.get(str(entry.value))
            picture = self._sheet.picture(data, 170, _PICTURE_HEIGHT) if data else None
            picture = picture or (self._text(self._say("value.picture"), _BODY, width) if entry.value else None)
            reason = self._reasons.get(entry.field.uuid)
            if picture is None or reason is None:
                return picture
            return sheets.stack(
                [picture, self._text(self._say("value.reason", reason=reason), _BODY, width, longest=300)], gap=3
            )
        if entry.field.type == FieldType.FILE:
            files = [self._files[uuid] for uuid in uuids if uuid in self._files]
            lines = [
                sheets.stack(
                    [
                        self._text(file.filename, _BODY, width, longest=200),
                        self._text(_halved(file.file.sha256), _SMALL_HASH, width),
                    ]
                )
                for file in files
            ]
            return sheets.stack(lines, gap=3) if lines else None
        if entry.field.type == FieldType.CHECKBOX:
            return self._text(self._say("value.checked"), _BODY, width) if entry.value else None
        if entry.field.type == FieldType.VERIFICATION:
            return self._text(self._say("value.verified"), _BODY, width) if entry.value else None
        text = values.display(entry.field, entry.value, self._request.account)
        return self._text(text, _BODY, width) if text else None

    def _outcome(self, party: PartySummary) -> str:
        moment = self._time(party.completed_at) if party.completed_at else ""
        at = "_at" if moment else ""
        if party.completed_by_api:
            return self._say(f"outcome.api{at}", name=party.completed_by_api, moment=moment)
        if party.status == "completed":
            deed = "approved" if party.acts_as == ActsAs.APPROVER else "signed"
            return self._say(f"outcome.{deed}{at}", moment=moment)
        if party.acts_as == ActsAs.VIEWER:
            read = self._time(party.opened_at) if party.opened_at else ""
            return self._say("outcome.read_at", moment=read) if read else self._say("outcome.sent_to_read")
        if party.status == "declined":
            because = party.decline_reason
            return self._say("outcome.declined_because", reason=because) if because else self._say("outcome.declined")
        return self._say("outcome.pending") if party.status == "pending" else Sentence(party.status.capitalize())

    def _what(self, event: TrailEvent) -> str:
        if event.event_type == "complete_form" and event.data.get("acts_as") == ActsAs.APPROVER:
            return self._say("event.approve_form")
        key = f"event.{event.event_type}"
        return self._say(key) if key in self._messages else event.event_type.replace("_", " ").capitalize()

    def _whom(self, event: TrailEvent) -> list[str]:
        """Return whom a line is about, as it says itself, and which API user acted. Lines of older versions do not say the
        former: of them it is what the parties are called today."""
        party = event.data.get("party")
        sentences: list[str] = []
        if isinstance(party, dict):
            sent_to = ("to", "email", "phone")  # a message says for itself where it went
            keys = ["name"] if any(event.data.get(key) for key in sent_to) else ["name", "email", "phone"]
            sentences = [str(party[key]) for key in keys if party.get(key)] or [str(party.get("role") or "")]
        elif event.submitter_id is not None and event.submitter_id in self._parties:
            sentences = [_name_of(self._parties[event.submitter_id])]
        if event.data.get("by"):
            name = f"{event.data['by_name']}, " if event.data.get("by_name") else ""
            sentences.append(self._say("events.by", who=f"{name}{event.data['by']}"))
        if event.event_type == "create_submission" and isinstance(parties := event.data.get("parties"), list):
            sentences += [_listed(party_named) for party_named in parties if isinstance(party_named, dict)]
        if isinstance(named := event.data.get("named"), dict):
            sentences.append(_listed(named))
        return sentences

    def _about(self, event: TrailEvent) -> str:
        details = [
            self._say(f"detail.{key}", value=value)
            for key in _DETAILS
            if isinstance(value := event.data.get(key), str | int | float) and value != ""
        ]
        if sent := _moment(event.data.get("sent_at")):
            details.append(self._say("detail.sent_at", moment=self._time(sent)))
        return _joined(details)

    def _changes(self, event: TrailEvent) -> list[str]:
        """Return what a line of a change says, each change in words."""
        changes = event.data.get("changes")
        well_formed = [change for change in changes if isinstance(change, dict)] if isinstance(changes, list) else []
        sentences = [sentence for change in well_formed for sentence in self._change(change)]
        if len(sentences) > _MOST_CHANGES:
            sentences = [*sentences[:_MOST_CHANGES], self._say("change.more", count=len(sentences) - _MOST_CHANGES)]
        return sentences

    def _accepted(self, event: TrailEvent) -> list[str]:
        """The differences that somebody has taken upon themselves, all of them."""
        return differences.accepted_in([event])

    def _change(self, change: Mapping[str, object]) -> list[str]:
        key, before, after = str(change.get("what") or ""), change.get("before"), change.get("after")
        group, _, name = key.partition(".")
        label = readable(self._changed(key, group, name), 120)
        if group == "fields" and isinstance(before, dict) and isinstance(after, dict):  # the keys that differ
            return [
                self._became(
                    self._say("change.property", what=label, property=str(key).replace("_", " ")),
                    before.get(key),
                    after.get(key),
                )
                for key in {**before, **after}
            ]
        return [self._became(label, before, after)]

    def _changed(self, key: str, group: str, name: str) -> str:
        """Return what a line of a change calls what was changed."""
        if f"change.{key}" in self._messages:
            return self._say(f"change.{key}")
        return self._say(f"group.{group}", name=name) if f"group.{group}" in self._messages else key

    def _became(self, label: str, before: object, after: object) -> str:
        return self._say(
            "change.became", what=label, before=self._value_in_words(before), after=self._value_in_words(after)
        )

    def _value_in_words(self, value: object) -> str:
        if value is None or value in ("", [], {}):
            return self._say("change.unset")
        if isinstance(value, bool):
            return self._say("change.yes" if value else "change.no")
        if isinstance(value, str) and (moment := _moment(value)):
            return self._time(moment)
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return self._say("change.quoted", value=readable(text, 160))

    def _hash(self, label: str, digest: str) -> Block:
        return sheets.row([(0, self._text(label, _QUIET, 124)), (126, self._text(digest, _HASH, self._width - 140))])

    def _fact(self, label: str, value: str, width: float) -> Block:
        return sheets.stack(
            [self._text(self._label(label), _LABEL, width), self._text(value, _BODY, width, longest=1_000)], gap=2
        )

    def _say(self, key: str, **values: object) -> str:
        """Return the message in the account's language. What is filled in comes from strangers and is made readable here."""
        clean = {name: value if isinstance(value, int) else _cleaned(value) for name, value in values.items()}
        return Sentence(self._messages(key, **clean))

    def _label(self, text: str) -> str:
        """A label in capitals, where the script has them; in Turkish an i keeps its dot (Unicode, SpecialCasing)."""
        if any(unicodedata.category(character) == "Lo" for character in text):
            return text
        capitals = (text.replace("i", "İ") if self._messages.language == "tr" else text).upper()
        return Sentence(capitals) if isinstance(text, Sentence) else capitals

    def _unnamed(self, kind: FieldType, number: int) -> str:
        key = f"kind.{kind.value}"
        return self._say("value.unnamed", kind=self._say(key) if key in self._messages else kind.value, number=number)

    def _way(self, entry: object) -> str:
        """Return how somebody was let in, in words."""
        if not isinstance(entry, Mapping):
            return ""
        kind = str(entry.get("way"))
        if kind == "code":
            key = f"way.code.{entry.get('method')}"
            return self._say(key if key in self._messages else "way.code", address=entry.get("to"))
        if kind == "identity_provider":
            return self._say("way.identity_provider", issuer=entry.get("issuer"))
        if kind == "in_person":
            return self._say("way.in_person", name=entry.get("by"))
        return self._say(f"way.{kind}") if f"way.{kind}" in self._messages else kind

    def _text(self, text: str, style: Style, width: float | None = None, longest: int = sheets.LONGEST_TEXT) -> Block:
        content = _cleaned(text, longest)
        if self._messages.direction == "rtl":  # each paragraph runs so; a name or a hash keeps its own direction in it
            content = "\n".join(f"{_RIGHT_TO_LEFT}{line}" for line in content.split("\n"))
        return sheets.text(content, style, self._width if width is None else width)

    def _time(self, moment: datetime) -> str:
        return values.printed_time(moment, self._request.account.time_zone, self._request.account.locale)


def _furniture(say: Section, name: str, submission_id: int, mark: str, canvas: Canvas, number: int, pages: int) -> None:
    """Bars at top and bottom; below, whose product it is, what this is, which page. ``mark``: that it is a test."""
    width, height = canvas.page.width, canvas.page.height
    canvas.fill(Rectangle(0, height - 9, width, height), ACCENT)
    canvas.fill(Rectangle(0, height - 13, width, height - 9), TINT)
    canvas.fill(Rectangle(0, 0, width, 32), TINT)
    margin, base = Margins().left, 20 if mark else 13  # above the mark
    canvas.text(layout(PRODUCT, _MARK), margin, base)
    middle = layout(say("of_submission", number=str(submission_id), name=name), _FURNITURE)
    canvas.text(middle, (width - middle.width) / 2, base)
    page = layout(say("page", number=number, pages=pages), _FURNITURE)
    canvas.text(page, width - margin - page.width, base)
    if mark:
        draw_test_mark(canvas, mark)


def _cleaned(text: object, longest: int = sheets.LONGEST_TEXT) -> str:
    """Text of strangers as it can be printed; a sentence of ours is, with what was filled in, already."""
    if isinstance(text, Sentence):
        return text if len(text) <= longest else f"{text[: longest - 1]}…"
    return readable(text, longest)


def _joined(parts: Sequence[str]) -> str:
    return Sentence(" · ".join(_cleaned(part) for part in parts))


def _listed(party: Mapping[str, object]) -> str:
    """A party as a list of parties has it."""
    role, *details = [str(party[key]) for key in ("role", "name", "email", "phone") if party.get(key)] or [""]
    return f"{role}: {', '.join(details)}" if details else role


def _name_of(party: PartySummary) -> str:
    return party.name or party.email or party.phone or party.role


def _halved(digest: str) -> str:
    return f"{digest[:32]}\n{digest[32:]}"


def _size(size: int) -> str:
    return f"{size / 1_000_000:.1f} MB" if size >= 1_000_000 else f"{max(1, round(size / 1000))} KB"


def _moment(text: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return moment if moment.tzinfo else None


def _common_name(name: x509.Name) -> str:
    native = name.native
    return str(native.get("common_name") or native.get("organization_name") or name.human_friendly)
