"""What pyHanko says was changed in a PDF after each of its signatures: the strictest judge of that which there is."""

import asyncio
import io
from dataclasses import dataclass

from asn1crypto import x509
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.sign.diff_analysis import ModificationLevel
from pyhanko.sign.validation import async_validate_pdf_signature
from pyhanko.sign.validation.status import SignatureCoverageLevel
from pyhanko_certvalidator import ValidationContext


@dataclass(frozen=True)
class Judged:
    """``permitted``: intact, and nothing but what the signature itself and those before it allow came later."""

    field: str
    permitted: bool
    level: ModificationLevel
    whole_file: bool


def judged(data: bytes) -> list[Judged]:
    """Each signature of the file, in the order in which they were made. Nobody is trusted."""
    reader = PdfFileReader(io.BytesIO(data))
    if reader.encrypted:
        reader.decrypt("")
    found = []
    for embedded in reader.embedded_regular_signatures:
        roots = [x509.Certificate.load(embedded.signer_cert.dump())]
        context = ValidationContext(trust_roots=roots, allow_fetching=False)
        status = asyncio.run(async_validate_pdf_signature(embedded, signer_validation_context=context))
        permitted = status.intact and status.valid and status.modification_level is not ModificationLevel.OTHER
        found.append(
            Judged(
                field=embedded.field_name,
                permitted=permitted and status.docmdp_ok is not False and status.seed_value_ok,
                level=status.modification_level,
                whole_file=status.coverage == SignatureCoverageLevel.ENTIRE_FILE,
            )
        )
    return found
