"""Submissions: one signing request each, its submitters, and the signing page's side of it (``signing``), by who calls."""

from contracts.rpc.submissions import api, batches, erasures, links, people, progress, receipts, test_mode, visit
from contracts.rpc.submissions.signing import codes, confirmation, form, handover, identity, phone, ways

__all__ = [
    "api",
    "batches",
    "codes",
    "confirmation",
    "erasures",
    "form",
    "handover",
    "identity",
    "links",
    "people",
    "phone",
    "progress",
    "receipts",
    "test_mode",
    "visit",
    "ways",
]
