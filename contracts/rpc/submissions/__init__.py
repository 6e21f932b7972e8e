"""Submissions: one signing request each, its submitters, and the signing page's side of it. A room for each of its callers."""

from contracts.rpc.submissions import (
    api,
    batches,
    codes,
    confirmation,
    erasures,
    form,
    handover,
    identity,
    links,
    people,
    phone,
    progress,
    receipts,
    test_mode,
    visit,
    ways,
)

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
