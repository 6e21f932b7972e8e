"""The service's side of the children: one method per thing they can do, typed, with errors that a caller understands.

``for_caller`` turns what went wrong with a stranger's file into a refusal; seal jobs use the methods without it, because
there a failure means another attempt.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any

from contracts.errors import ServiceError, invalid
from contracts.fields.boxes import FieldBox
from contracts.rpc.rendering import (
    CheckValues,
    DrawnArea,
    DrawValues,
    FillRequest,
    PageFooter,
    SealRequest,
    TagField,
    Verification,
)
from contracts.runtime.bus import caller
from contracts.runtime.monitoring import observe
from contracts.types import FieldDefinition, FieldType, Notice, PageSize
from services.rendering.frames import Bytes
from services.rendering.jobs.sealing.certificates import SealIdentity
from services.rendering.pool import (
    Busy,
    ChildPool,
    JobCrashed,
    JobFailed,
    JobNotPossible,
    JobRefused,
    JobTimedOut,
    Message,
)

log = observe.logger(__name__)

HOSTILE_SECONDS = 20.0
"""For files of strangers, while somebody waits."""
HOSTILE_WAIT = HOSTILE_SECONDS + 2.0
"""For a free child, then: where there is but one, another caller's job has it until it is killed at the latest."""
PREVIEW_SECONDS, PREVIEW_WAIT = 5.0, 2.0
"""For what a page shows while somebody types: it asks again, so it is given up soon."""
SEAL_SECONDS = 120.0
"""For files that were accepted, while nobody waits."""
_SEAL_WAIT = 2 * SEAL_SECONDS
"""For a free child, then: jobs under way need one for reading back while another of them draws."""


@dataclass(frozen=True)
class Prepared:
    """``converted``: the PDF that an HTML document became, before it was normalised. ``variables``: what a DOCX asks for."""

    file: bytes
    pages: list[PageSize]
    fields: list[TagField]
    signed: bool
    report: list[Notice]
    converted: bytes | None = None
    variables: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SealMaterial:
    """In DER: the ``chain`` of a seal, signer first, ``roots``, revocation ``lists`` and OCSP ``answers``."""

    chain: list[bytes] = field(default_factory=list)
    roots: list[bytes] = field(default_factory=list)
    lists: list[bytes] = field(default_factory=list)
    answers: list[bytes] = field(default_factory=list)


@dataclass(frozen=True)
class Material:
    """What PAdES B-LT puts into a file (DER): certificates, OCSP answers, revocation lists."""

    certificates: tuple[bytes, ...] = ()
    ocsp_responses: tuple[bytes, ...] = ()
    revocation_lists: tuple[bytes, ...] = ()

    @property
    def counts(self) -> list[int]:
        return [len(self.certificates), len(self.ocsp_responses), len(self.revocation_lists)]

    @property
    def parts(self) -> list[bytes]:
        return [*self.certificates, *self.ocsp_responses, *self.revocation_lists]


@dataclass(frozen=True)
class Place:
    """How the signature is announced in the file and how much room it gets: ``size`` in octets."""

    name: str
    reason: str
    signed_at: datetime
    size: int
    material: Material

    def arguments(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "reason": self.reason,
            "signed_at": self.signed_at.isoformat(),
            "size": self.size,
            "material": self.material.counts,
        }


@dataclass(frozen=True)
class Unsigned:
    """A finished file but for the signature: ``size`` hexadecimal digits at ``start``, ``digest`` over the rest."""

    data: bytes
    start: int
    size: int
    digest: bytes
    answer: dict[str, Any]


@dataclass(frozen=True)
class Token:
    """A time-stamp that was checked: ``token`` and the ``certificates`` in it (DER), the authority's first."""

    token: bytes
    time: datetime
    certificates: tuple[bytes, ...]


class Renderer:
    """Thread-safe. ``office``: children with LibreOffice in them, None where it is not installed."""

    def __init__(self, pool: ChildPool, office: ChildPool | None = None, *, most_bytes: int, most_pages: int) -> None:
        self._pool, self._office, self._previews = pool, office, Previews(pool.size)
        self._limits = {"most_bytes": most_bytes, "most_pages": most_pages}

    # --- documents that come in

    def prepare_pdf(self, data: bytes, name: str, *, remove_tags: bool, flatten: bool) -> Prepared:
        arguments = {"name": name, "remove_tags": remove_tags, "flatten": flatten, **self._limits}
        answer, files = self._hostile("prepare_pdf", arguments, [data])
        return _prepared(answer, files)

    def prepare_docx(self, data: bytes, name: str, variables: dict[str, Any] | None, *, remove_tags: bool) -> Prepared:
        """Three children in turn: one reads the DOCX, one with LibreOffice lays it out, one treats the PDF as any other."""
        if self._office is None:
            raise invalid("DOCX files cannot be converted: LibreOffice is not installed on this server", "file")
        arguments = {"name": name, "variables": variables, **self._limits}
        read, files = self._hostile("prepare_docx", arguments, [data])
        with for_caller("convert"):
            converted = self._office.run(
                "convert", {}, files, seconds=HOSTILE_SECONDS, wait=30, caller=caller.current()
            )[1]
        arguments = {
            "name": name,
            "remove_tags": remove_tags,
            "flatten": False,
            "docx_tags": read["tags"],
            "docx_fonts": read["fonts"],
            **self._limits,
        }
        answer, files = self._hostile("prepare_pdf", arguments, converted)
        prepared = _prepared({**answer, "report": [*read["report"], *answer["report"]]}, files)
        return replace(prepared, variables=read["variables"])

    def external_urls(self, texts: Sequence[str], assets: dict[str, bytes]) -> list[str]:
        """Which files the HTML would load, besides those in ``assets``."""
        arguments = {"texts": list(texts), "fetched": list(assets)}
        urls: list[str] = self._hostile("external_urls", arguments, list(assets.values()))[0]["urls"]
        return urls

    def prepare_html(
        self,
        html: str,
        header: str | None,
        footer: str | None,
        size: str,
        name: str,
        assets: dict[str, bytes],
        *,
        today: date,
    ) -> Prepared:
        """``today`` is what header and footer say where they ask for it."""
        arguments = {
            "html": html,
            "header": header,
            "footer": footer,
            "size": size,
            "name": name,
            "fetched": list(assets),
            "today": today.isoformat(),
            **self._limits,
        }
        answer, files = self._hostile("prepare_html", arguments, list(assets.values()))
        return _prepared(answer, files)

    # --- sealing

    def fill_and_reserve(
        self, request: FillRequest, document: str, data: bytes, attachments: Sequence[bytes], place: Place
    ) -> Unsigned:
        """Draw the values of the document with that uuid; ``attachments`` are in the request's order."""
        arguments = {"request": _without_trail(request), "document": document, **place.arguments()}
        parts = [data, *attachments, *place.material.parts]
        return _unsigned(*self._sealing("fill_and_reserve", arguments, parts))

    def audit_trail(
        self,
        request: SealRequest,
        attachments: Sequence[bytes],
        place: Place,
        issuer: str,
        documents: Callable[[], Sequence[dict[str, Any]]],
    ) -> Unsigned:
        """``documents`` waits for them to be sealed and returns the fields of ``audit_trail.SealedSummary`` of each; what does
        not depend on them is drawn meanwhile, where there are children enough."""
        arguments = {"request": request.model_dump(mode="json"), "issuer": issuer, **place.arguments()}
        parts = [*attachments, *place.material.parts]

        def rest() -> Message:
            return {"documents": list(documents())}, ()

        made = self._pool.run_ahead("audit_trail", arguments, parts, rest, seconds=SEAL_SECONDS, wait=_SEAL_WAIT)
        return _unsigned(*made)

    def check_seal(
        self,
        data: bytes,
        certificate: bytes,
        *,
        pages: int,
        drawn: Sequence[dict[str, Any]] = (),
        fields: Sequence[FieldDefinition] = (),
    ) -> str:
        """Read a sealed file back; the PAdES level. JobRefused says what is wrong."""
        wanted = {one["field"] for one in drawn}
        arguments = {
            "pages": pages,
            "drawn": list(drawn),
            "fields": [field.model_dump(mode="json") for field in fields if field.uuid in wanted],
        }
        level: str = self._sealing("check_seal", arguments, [data, certificate])[0]["level"]
        return level

    def read_time_stamp(self, response: bytes, signature: bytes, nonce: int) -> Token:
        """JobRefused when the answer is no time-stamp for ``signature``."""
        answer, files = self._pool.run("read_time_stamp", {"nonce": nonce}, [response, signature])
        return Token(files[0], datetime.fromisoformat(answer["time"]), tuple(files[1:]))

    def revocation_questions(self, leaves: Sequence[bytes], known: Sequence[bytes]) -> list[dict[str, Any]]:
        answer, _ = self._pool.run("revocation_questions", {"leaves": len(leaves)}, [*leaves, *known])
        questions: list[dict[str, Any]] = answer["questions"]
        return questions

    def check_revocation(
        self, kind: str, answer: bytes, serial: str, known: Sequence[bytes], now: datetime
    ) -> dict[str, str]:
        """``{"until": ...}`` or ``{"revoked": ...}``; JobRefused when the answer proves nothing."""
        arguments = {"kind": kind, "serial": serial, "now": now.isoformat()}
        return self._pool.run("check_revocation", arguments, [answer, *known])[0]

    # --- tools

    def fill_draft(self, request: FillRequest, document: str, data: bytes, attachments: Sequence[bytes]) -> bytes:
        arguments = {"request": _without_trail(request), "document": document}
        return self._hostile("fill_draft", arguments, [data, *attachments])[1][0]

    def verify(self, data: bytes, anchors: Sequence[bytes], now: datetime, *, sealed_here: bool) -> Verification:
        """The verdict. A check that fails, or takes too long or too much, says nothing about the file: ``unknown``."""
        arguments = {"now": now.isoformat(), "sealed_here": sealed_here}
        with for_caller("verify"):
            try:
                answer, _ = self._pool.run(
                    "verify",
                    arguments,
                    [data, *anchors],
                    seconds=HOSTILE_SECONDS,
                    wait=HOSTILE_WAIT,
                    caller=caller.current(),
                )
            except (JobRefused, JobNotPossible):
                raise
            except JobFailed as failed:
                log.error("verify.not_checked", reason=failed.reason, trace=failed.trace)  # noqa: TRY400 - the child's trace
                return Verification(checksum_status="unknown", sealed_here=sealed_here)
        return Verification.model_validate(answer)

    def seal_material(self, data: bytes, signatures: Sequence[bytes]) -> SealMaterial:
        """What the seal of ``data`` carries, and the roots of the chains in these ``signatures`` (CMS)."""
        answer, parts = self._hostile("seal_material", {}, [data, *signatures])
        found = SealMaterial()
        for kind, part in zip(answer["kinds"], parts, strict=True):
            getattr(found, kind).append(part)
        return found

    def combine(self, files: Sequence[bytes], title: str) -> tuple[bytes, list[str]]:
        """The merged file and warnings."""
        arguments = {"files": len(files), "title": title, "seal": False}
        answer, parts = self._hostile("combine", arguments, list(files))
        return parts[0], answer["warnings"]

    def combine_and_reserve(self, files: Sequence[bytes], title: str, place: Place) -> Unsigned:
        """The same with a place for a seal; ``answer`` has the warnings."""
        arguments = {"files": len(files), "title": title, "seal": True, **place.arguments()}
        return _unsigned(*self._hostile("combine", arguments, [*files, *place.material.parts]))

    def draw_page(
        self,
        data: bytes,
        page: int,
        width: int,
        boxes: Sequence[FieldBox] = (),
        footer: PageFooter | None = None,
    ) -> bytes:
        below = footer.model_dump() if footer else None
        arguments = {"page": page, "width": width, "boxes": [box.model_dump() for box in boxes], "footer": below}
        return self._hostile("draw_page", arguments, [data])[1][0]

    def draw_values(self, request: DrawValues, attachments: Sequence[bytes]) -> list[DrawnArea]:
        """``attachments`` are in the request's order, empty where they are no pictures."""
        with self._previews.turn(), for_caller("draw_values"):
            answer, _ = self._pool.run(
                "draw_values",
                {"request": request.model_dump(mode="json")},
                attachments,
                seconds=PREVIEW_SECONDS,
                wait=PREVIEW_WAIT,
            )
        return [DrawnArea.model_validate(one) for one in answer["areas"]]

    def prepare_image(self, data: bytes, field_type: FieldType) -> bytes:
        return self._hostile("prepare_image", {"type": field_type.value}, [data])[1][0]

    def draw_signature(self, text: str) -> bytes:
        return self._hostile("draw_signature", {"text": text}, [])[1][0]

    def check_text(self, texts: Sequence[str]) -> list[str]:
        characters: list[str] = self._hostile("check_text", {"texts": list(texts)}, [])[0]["characters"]
        return characters

    def check_values(self, request: CheckValues) -> dict[str, str]:
        """Why which value cannot be drawn, by field uuid."""
        arguments = request.model_dump(mode="json")
        faults: dict[str, str] = self._hostile("check_values", arguments, [])[0]["faults"]
        return faults

    def _sealing(
        self, task: str, arguments: dict[str, Any], parts: Sequence[Bytes]
    ) -> tuple[dict[str, Any], list[bytes]]:
        return self._pool.run(task, arguments, parts, seconds=SEAL_SECONDS, wait=_SEAL_WAIT)

    def _hostile(
        self, task: str, arguments: dict[str, Any], parts: Sequence[Bytes]
    ) -> tuple[dict[str, Any], list[bytes]]:
        with for_caller(task):
            return self._pool.run(
                task, arguments, parts, seconds=HOSTILE_SECONDS, wait=HOSTILE_WAIT, caller=caller.current()
            )


class Previews:
    """Previews leave a child to everything else, where there is more than one: documents that come in never wait for what is
    only looked at. (Seal jobs have children of their own, those of the background process.)"""

    def __init__(self, children: int) -> None:
        self._free = threading.BoundedSemaphore(max(1, children - 1))

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Raises ServiceError("unavailable") when none comes soon."""
        if not self._free.acquire(timeout=PREVIEW_WAIT):
            raise ServiceError("unavailable", "Too many values are being drawn, try again")
        try:
            yield
        finally:
            self._free.release()


@contextmanager
def for_caller(task: str) -> Iterator[None]:
    """What went wrong in a child, as an answer to the one who sent the file."""
    try:
        yield
    except JobRefused as refused:
        field = refused.field if refused.file is None else f"files[{refused.file - 1}]"
        raise invalid(refused.reason.rstrip("."), field) from refused
    except JobTimedOut as late:
        log.warning("job.killed", task=task, reason=late.reason)
        raise invalid("The file takes too long to process") from late
    except JobNotPossible as failed:
        log.error("job.not_possible", task=task, reason=failed.reason)  # noqa: TRY400 - the child's trace is no news
        raise ServiceError("unavailable", "Documents cannot be processed at the moment, try again later") from failed
    except JobCrashed as crashed:
        log.warning("job.killed", task=task, reason=crashed.reason, trace=crashed.trace)
        raise invalid("The file cannot be processed: it needs too much memory or is damaged") from crashed
    except JobFailed as failed:
        log.error("job.failed", task=task, reason=failed.reason, trace=failed.trace)  # noqa: TRY400 - the child's trace
        raise invalid("The file cannot be processed") from failed
    except Busy as busy:
        whose = "Too many of your documents" if busy.own else "Too many documents"
        raise ServiceError("unavailable", f"{whose} are being processed, try again") from busy


def seal_name(identity: SealIdentity) -> str:
    """The issuer of the sealing certificate, as the audit trail names it."""
    names = identity.chain[0].issuer.rdns
    values = {attribute.oid.dotted_string: str(attribute.value) for rdn in names for attribute in rdn}
    return values.get("2.5.4.3") or identity.chain[0].issuer.rfc4514_string()


def _prepared(answer: dict[str, Any], files: Sequence[bytes]) -> Prepared:
    return Prepared(
        file=files[0],
        pages=[PageSize.model_validate(page) for page in answer["pages"]],
        fields=[TagField.model_validate(field) for field in answer["fields"]],
        signed=answer["signed"],
        report=[Notice.model_validate(notice) for notice in answer["report"]],
        converted=files[1] if len(files) > 1 else None,
    )


def _unsigned(answer: dict[str, Any], files: Sequence[bytes]) -> Unsigned:
    return Unsigned(files[0], answer["start"], answer["size"], bytes.fromhex(answer["digest"]), answer)


def _without_trail(request: FillRequest) -> dict[str, Any]:
    return request.model_dump(mode="json", exclude={"trail"})
