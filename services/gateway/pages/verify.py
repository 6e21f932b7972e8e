"""``/verify``: is this document what was sealed here? For anybody who has a file, or a receipt of a signature.

A file is put beside the uploads, checked as ``tools/verify`` checks it, and removed; nothing of it is kept. Names are told only
to somebody who has the sealed file itself, whose SHA-256 is known: it bears them, too. A receipt tells no names.
"""

import contextlib
import hashlib
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address, ip_network

import flask
from werkzeug.exceptions import RequestEntityTooLarge

from contracts.blobs import INCOMING, BlobRef
from contracts.errors import ServiceError, not_found
from contracts.evidence import statements
from contracts.rpc import rendering, submissions
from contracts.rpc.submissions.receipts import FoundReceipt, FoundSealed
from contracts.runtime.bus.caller import acting_for
from contracts.runtime.monitoring import observe
from services.gateway.http import page_bodies
from services.gateway.http.client_address import Network
from services.gateway.pages.answering.context import PagesContext
from services.gateway.pages.answering.delivery import content_disposition, file_headers
from services.gateway.pages.answering.pace import Pace
from services.gateway.pages.answering.turns import Turns
from services.gateway.pages.answering.visitor import address

log = observe.logger(__name__)

AT_ONCE = 6
"""Files that are checked at once in a process: each holds a thread of the pages for up to 40 s, and signers need them, too."""
SHARE = 2
"""Those of them for one visitor."""
_FILES, _FILES_PER_SECOND = 20, 0.1
_RECEIPTS, _RECEIPTS_PER_SECOND = 60, 1.0
_CALLER = "page/verify"
_LONGEST_NUMBER = 19


@dataclass(frozen=True)
class Checked:
    """The result of checking a file. ``kind`` chooses the words: see ``kind_of``."""

    kind: str
    filename: str
    sha256: str
    recognised: rendering.Recognised
    sealed: FoundSealed | None

    @property
    def others(self) -> list[rendering.VerifiedSignature]:
        """The signatures that are not ours."""
        return [
            signature
            for signature in self.recognised.verification.signatures
            if signature.field not in self.recognised.own_seals
        ]


def routes(context: PagesContext, trusted: list[Network]) -> flask.Blueprint:
    blueprint = flask.Blueprint("verify", __name__, url_prefix="/verify")
    files = Pace(_FILES, _FILES_PER_SECOND)
    receipts = Pace(_RECEIPTS, _RECEIPTS_PER_SECOND)
    turns = Turns(AT_ONCE, SHARE)

    @blueprint.get("")
    def page() -> str | tuple[str, int]:
        typed = flask.request.args.get("receipt", "").strip()
        if not typed:
            return _page(context)
        try:
            receipts.count(_visitor(trusted))
            return _page(context, typed=typed[:100], receipt=_receipt(context, typed))
        except ServiceError as error:
            return _refused(context, error, "receipt", typed=typed[:100])

    @blueprint.post("")
    def check() -> str | tuple[str, int]:
        try:
            visitor = _visitor(trusted)
            files.count(visitor)
            with turns.turn(visitor):
                return _page(context, checked=_checked(context))
        except ServiceError as error:
            return _refused(context, error, "file")
        except RequestEntityTooLarge:
            return _refused(context, ServiceError("too_large", "The file is too large."), "file")

    @blueprint.get("/root.crt")
    def root() -> flask.Response:
        certificate: rendering.Root = context.bus.call(rendering.ROOT, rendering.GetRoot())
        answer = flask.Response(certificate.pem, mimetype="application/pem-certificate-chain")
        answer.headers["Content-Disposition"] = content_disposition("root.crt", inline=False)
        return file_headers(answer)

    return blueprint


def kind_of(recognised: rendering.Recognised) -> str:
    """Choose what is said of a file.

    ``sealed``: it is one of ours, byte for byte. ``changed``: it bears our seal, and that does not hold, or something was
    changed since. ``extended``: our seal holds, but the file is none that we know: others have signed it since, or our record
    of it is gone. ``unknown``: it could not be checked. ``others``, ``others_broken``: others' signatures. ``unsigned``: none.
    """
    verification = recognised.verification
    if verification.sealed_here:
        return "sealed"
    our_seals = [signature for signature in verification.signatures if signature.field in recognised.own_seals]
    if any(signature.integrity == "invalid" or signature.changed_after_signing for signature in our_seals):
        return "changed"
    if our_seals:
        return "extended" if all(signature.integrity == "valid" for signature in our_seals) else "unknown"
    kind_by_status = {"valid": "others", "invalid": "others_broken", "unsigned": "unsigned"}
    return kind_by_status.get(verification.checksum_status, "unknown")


def verdict_of(signature: rendering.VerifiedSignature) -> str:
    """Choose what is said of a signature: ``holds``, of somebody known here or not, ``broken`` or ``unknown``."""
    if signature.integrity == "invalid" or signature.changed_after_signing:
        return "broken"
    if signature.integrity != "valid":
        return "unknown"
    return "holds" if signature.trust == "trusted" else "holds_unknown"


def _checked(context: PagesContext) -> Checked:
    """Check the file that was sent, and forget it."""
    upload = page_bodies.upload(context.settings.max_file_size)
    stored = context.blobs.put(upload.data, upload.media_type, INCOMING)
    try:
        with acting_for(_CALLER):
            request = rendering.Verify(file=stored, trust_anchors=context.trust_anchors())
            recognised: rendering.Recognised = context.bus.call(rendering.RECOGNISE, request)
    finally:
        _remove(context, stored)
    return Checked(
        kind=kind_of(recognised),
        filename=upload.filename,
        sha256=hashlib.sha256(upload.data).hexdigest(),
        recognised=recognised,
        sealed=_sealed(context, recognised, stored.sha256),
    )


def _remove(context: PagesContext, stored: BlobRef) -> None:
    try:
        context.blobs.delete(stored.key)
    except ServiceError as error:  # then the daily sweep removes it
        log.warning("upload.not_removed", key=stored.key, reason=error.message)


def _sealed(context: PagesContext, recognised: rendering.Recognised, sha256: str) -> FoundSealed | None:
    """Ask the submissions service for the very file that was sent, whose SHA-256 both services know; None of a file that was
    made of several."""
    if recognised.submission_id is None:
        return None
    request = submissions.receipts.FindSealed(submission_id=recognised.submission_id, sha256=sha256)
    try:
        sealed: FoundSealed = context.bus.call(submissions.receipts.SEALED_FILE, request)
    except ServiceError as error:
        if error.code != "not_found":
            raise
        return None
    return sealed


def _receipt(context: PagesContext, typed: str) -> FoundReceipt:
    receipt = statements.read_receipt(typed)
    if receipt is None:
        raise not_found("Receipt")
    match: FoundReceipt = context.bus.call(
        submissions.receipts.RECEIPT, submissions.receipts.FindReceipt(receipt=receipt)
    )
    return match


def _page(
    context: PagesContext,
    *,
    checked: Checked | None = None,
    receipt: FoundReceipt | None = None,
    typed: str = "",
    problem: str | None = None,
    about: str = "",
) -> str:
    number = flask.request.args.get("submission", "")
    return flask.render_template(
        "verify.html",
        checked=checked,
        receipt=receipt,
        test_mode=any(
            of_test_mode.test
            for of_test_mode in (checked.sealed if checked else None, receipt)
            if of_test_mode is not None
        ),
        typed=typed,
        problem=problem,
        about=about,
        expected=int(number) if number.isdecimal() and number.isascii() and len(number) < _LONGEST_NUMBER else None,
        root_sha256=_root_sha256(context),
        most=f"{context.settings.max_file_size / page_bodies.MEGABYTE:g}",
        verdict_of=verdict_of,
    )


def _root_sha256(context: PagesContext) -> str | None:
    """None where it cannot be had now: the page is of use without it."""
    with contextlib.suppress(ServiceError):
        certificate: rendering.Root = context.bus.call(rendering.ROOT, rendering.GetRoot())
        return certificate.sha256
    return None


_PROBLEMS = {"rate_limited": "busy", "unavailable": "busy", "too_large": "too_large", "not_found": "no_receipt"}


def _refused(context: PagesContext, error: ServiceError, about: str, typed: str = "") -> tuple[str, int]:
    """The page with what went wrong, in the visitor's words."""
    missing = any(
        "missing" in str(detail.get("reason")) or "empty" in str(detail.get("reason")) for detail in error.details
    )
    kind = "missing" if missing else _PROBLEMS.get(error.code, "not_pdf" if error.code == "invalid" else "failed")
    if kind == "failed":
        log.error("public_check.failed", code=error.code, reason=error.message)
    return _page(context, problem=f"verify.problem.{kind}", about=about, typed=typed), error.status


def _visitor(trusted: list[Network]) -> str:
    """Return the visitor who is counted: an address, of IPv6 the network that one household has."""
    client_address = address(trusted) or ""
    parsed = ip_address(client_address) if client_address else None
    return str(ip_network((parsed, 64), strict=False)) if isinstance(parsed, IPv6Address) else client_address
