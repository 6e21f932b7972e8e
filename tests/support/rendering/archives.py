"""PAdES B-LTA as pyHanko judges it (EN 319 102-1, 5.6.3), now and in years."""

import asyncio
import io
from collections.abc import Sequence
from datetime import datetime

from asn1crypto import crl, x509
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.sign.validation.ades import AdESLTAValidationResult, ades_lta_validation
from pyhanko.sign.validation.policy_decl import (
    LocalKnowledge,
    PdfSignatureValidationSpec,
    RevinfoOnlineFetchingRule,
    RevocationInfoGatheringSpec,
    SignatureValidationSpec,
)
from pyhanko_certvalidator.context import CertValidationPolicySpec
from pyhanko_certvalidator.ltv.types import ValidationTimingInfo
from pyhanko_certvalidator.policy_decl import CertRevTrustPolicy, RevocationCheckingPolicy
from pyhanko_certvalidator.registry import SimpleTrustManager
from pyhanko_certvalidator.revinfo.archival import CRLContainer


def judged(
    data: bytes, anchors: Sequence[bytes], at: datetime, *, fetched: Sequence[bytes] = ()
) -> AdESLTAValidationResult:
    """What pyHanko says of the first signature at that time, with what the file brings along and the trusted roots (DER). Every
    certificate needs a proof; ``fetched`` are revocation lists that a reader gets at that time: of the authority of the newest
    time-stamp, whose proofs in the file are as old as that."""
    roots = [x509.Certificate.load(anchor) for anchor in anchors]
    policy = CertValidationPolicySpec(
        trust_manager=SimpleTrustManager.build(trust_roots=roots),
        revinfo_policy=CertRevTrustPolicy(RevocationCheckingPolicy.from_legacy("hard-fail"), retroactive_revinfo=True),
    )
    lists = [CRLContainer(crl.CertificateList.load(one)) for one in fetched]
    offline = RevocationInfoGatheringSpec(online_fetching_rule=RevinfoOnlineFetchingRule.LOCAL_ONLY)
    spec = PdfSignatureValidationSpec(
        SignatureValidationSpec(
            policy, revinfo_gathering_policy=offline, local_knowledge=LocalKnowledge(known_crls=lists)
        )
    )
    embedded = PdfFileReader(io.BytesIO(data)).embedded_regular_signatures[0]
    timing = ValidationTimingInfo(at, at, point_in_time_validation=True)
    return asyncio.run(ades_lta_validation(embedded, spec, timing_info=timing))
