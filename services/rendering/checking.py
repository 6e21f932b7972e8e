"""What ``check`` tries for this service: children, fonts, LibreOffice, the seal's key, time-stamps."""

import io
import os
import tempfile
import zipfile
from functools import partial
from urllib.parse import urlsplit

import pikepdf

from contracts.runtime.clock import now
from contracts.runtime.operations.checking import Fault, Trial
from services.rendering.children import confinement
from services.rendering.jobs.sealing import certificates
from services.rendering.jobs.sealing.certificates import FILE, Names
from services.rendering.settings import Settings
from services.rendering.signatures.workshop import Workshop

_SOON_DAYS = 60
_SCRIPTS = "Ää Žž Ελ Жя Ωω שלום سلام नमस्ते 你好 こんにちは 안녕 ไทย ☺ ∑"
"""Something of each of the packages of fonts."""

_TEMPORARY_BYTES = 1_000_000


def trials(settings: Settings) -> list[Trial]:
    workshop = Workshop(settings)
    has_key = settings.has_own_key or (settings.certificates is not None and (settings.certificates / FILE).exists())
    return [
        Trial("TMPDIR", _temporary_folder, "make room there, or point TMPDIR elsewhere"),
        Trial(
            "walls of the children",
            _walls,
            "run it on Linux 5.13 or later with Landlock, in a runtime that lets it through",
        ),
        Trial("fonts", partial(_fonts, workshop)),
        Trial(
            "LibreOffice",
            partial(_office, settings, workshop),
            "install libreoffice-writer, or set RENDERING_OFFICE_DIR",
        ),
        *(
            [
                Trial(
                    "seal: key", partial(_key, workshop), "give it a key with a certificate that is in force for long"
                ),
                Trial("seal: a document", partial(_sealed, workshop)),
            ]
            if has_key
            else [Trial("seal: key", partial(_no_key, settings))]
        ),
        Trial("TRUST_ANCHORS_DIR", partial(_anchors, settings), "keep certificates there, in PEM or DER"),
        *(
            [
                Trial(
                    f"time-stamps of {urlsplit(url).hostname}",
                    partial(_time_stamp, url, workshop),
                    "correct TSA_URL, or ask the authority",
                )
                for url in settings.tsa_urls
            ]
            or [Trial("time-stamps", lambda: "TSA_URL is not set: seals are PAdES B-B, without time-stamps")]
        ),
    ]


def _temporary_folder() -> str:
    # Python goes elsewhere without a word when there is no room in TMPDIR.
    folder = os.environ.get("TMPDIR") or tempfile.gettempdir()
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(_TEMPORARY_BYTES))
        file.flush()
        os.fsync(file.fileno())
    return folder


def _walls() -> str:
    lacking = confinement.lacking()
    return f"but {'; '.join(lacking)}" if lacking else "Landlock and seccomp"


def _fonts(workshop: Workshop) -> str:
    """In a child, as all that is drawn."""
    workshop.start_children()
    missing = "".join(workshop.renderer.check_text([_SCRIPTS]))
    if missing:
        raise Fault(f"no font has {missing}: a package of fonts is not installed (services/Dockerfile lists them)")
    return "a child process has them"


def _office(settings: Settings, workshop: Workshop) -> str:
    if not (settings.rendering_office_dir / "libmergedlo.so").exists():
        return f"but it is not in {settings.rendering_office_dir}: DOCX files are refused"
    workshop.start_children()
    prepared = workshop.renderer.prepare_docx(_docx(), "check.docx", None, remove_tags=False)
    return f"a DOCX file became {len(prepared.pages)} page"


def _no_key(settings: Settings) -> str:
    folder = settings.certificates
    assert folder is not None, "the settings see to it"
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not os.access(existing, os.W_OK):
        raise Fault(f"there is no {FILE} in CERTIFICATE_DIR, and none can be made: {existing} is not writable")
    return f"there is no {FILE} in {folder} yet: it is made when the service starts"


def _key(workshop: Workshop) -> str:
    identity = workshop.identity
    if (problem := identity.problem(now())) is not None:
        raise Fault(problem)
    days = (identity.expires_at - now()).days
    last = identity.chain[-1]
    words = f"{identity.name}, expires in {days} days"
    if last.subject != last.issuer:
        return f"but its chain is not complete: {last.issuer.rfc4514_string()} is not in the file; {words}"
    return f"but {words}" if days < _SOON_DAYS else words


def _sealed(workshop: Workshop) -> str:
    """A page is sealed without a time-stamp, and the file read back by a child."""
    workshop.start_children()
    sealer = workshop.sealer
    moment = now()
    assurance = sealer.assurance(moment, with_time_stamp=False)
    merged = workshop.renderer.combine_and_reserve([_pdf()], "check", sealer.place(assurance, moment))
    return f"sealed and read back: {sealer.check(sealer.sign(merged.reserved, assurance), pages=1)}"


def _anchors(settings: Settings) -> str:
    if settings.trust_anchors_dir is None:
        return "not set"
    return f"{len(certificates.read_anchors(settings.trust_anchors_dir))} certificates"


def _time_stamp(url: str, workshop: Workshop) -> str:
    """A time-stamp over chance. Whose key the seal has makes no difference, so a new one does."""
    workshop.start_children()
    nobody = certificates.parse(certificates.make(Names(), "ec-p256", now()))
    return f"a token of {len(workshop.time_stamping([url], nobody).stamp(os.urandom(32)))} bytes"


def _pdf() -> bytes:
    output = io.BytesIO()
    with pikepdf.new() as pdf:
        pdf.add_blank_page()
        pdf.save(output)
    return output.getvalue()


def _docx() -> bytes:
    """The smallest Word document: ECMA-376, parts 1 and 2."""
    package = "http://schemas.openxmlformats.org/package/2006"
    word = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
    text = "<w:body><w:p><w:r><w:t>check</w:t></w:r></w:p></w:body>"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/word/document.xml" ContentType="{word}"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships">'
        f'<Relationship Id="main" Type="{office}" Target="word/document.xml"/></Relationships>',
        "word/document.xml": '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">'
        f"{text}</w:document>",
    }
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return output.getvalue()
