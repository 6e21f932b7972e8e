"""Write docs/error-sentences.md, every sentence with which something is refused: ``python -m docs.programs.make_errors``."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from contracts.errors import STATUS
from docs.wording import refusals
from docs.wording.refusals import Refusal

PAGE = Path(__file__).parents[1] / "error-sentences.md"
_NOT_TOLD = frozenset(
    {"Confirmation", "Notice", "SignatureText", "Meaning", "Candidate", "Span", "StuckRow", "JobFailed"}
)
"""What says something else than that a request is refused: docs/preflight.md and RUNBOOK have the sentences of these."""
_TO_OPERATORS = frozenset({
    "BadKey", "CannotStart", "Fault", "FontsMissing", "KeyUnavailable", "SecretFileFaults", "UnusableCertificate",
})  # fmt: skip
_IN_STATES = frozenset({"ProviderFailed", "SealBroken", "StampBroken", "CertsignState", "DutystampState", "Differs"})
_IN_LOGS = frozenset({
    "BadLink", "BadToken", "BlobDamaged", "Busy", "CannotBundle", "IdentityFailed", "NotArchived", "NotOurs", "NotProven",
    "NotSigned", "Superseded", "TakenOver", "TimeStampFailed", "UnknownKey", "Unreadable", "WeakIdentity", "WrongStage",
})  # fmt: skip


class Group(NamedTuple):
    """A heading of the page: what is said of all sentences below it, and which modules tell them."""

    title: str
    advice: str
    modules: tuple[str, ...]


GROUPS = (
    Group(
        "Formulas",
        "In `preferences.formula` of a field, and in `cases` of `POST /templates/:id/evaluate`. [formulas.md](formulas.md) has "
        "the functions.",
        ("contracts/fields/formulas/", "contracts/fields/trying.py"),
    ),
    Group(
        "Fields, values and tags",
        "In definitions of fields of templates and overrides, in tags of documents, and of values that a request or a signer "
        "gives. [fields.md](fields.md) has every type with its rules.",
        ("contracts/fields/", "contracts/formats/", "services/rendering/jobs/tags/", "services/rendering/jobs/drawing/"),
    ),
    Group(
        "Documents, HTML and pictures",
        "The file that is named must be changed: its content is refused. `details` name it as `documents[0].file` or the like. "
        "[preflight.md](preflight.md) says what is accepted.",
        (
            "services/rendering/jobs/intake/", "services/rendering/jobs/docx/", "services/rendering/jobs/html/",
            "services/rendering/jobs/pictures/", "services/rendering/jobs/merging/", "services/rendering/jobs/forms/",
            "services/rendering/jobs/pdf/", "services/rendering/jobs/previews/", "services/rendering/jobs/reading/",
            "services/rendering/jobs/detection/", "services/rendering/jobs/trail/", "services/rendering/jobs/content/",
            "services/rendering/jobs/text/", "services/rendering/children/", "services/rendering/service.py",
            "services/rendering/commands.py",
        ),
    ),
    Group(
        "Providers of signatures, seals and stamps",
        "In `problem` or `message` of `certsign` and `dutystamp` states, and in `sealing_error`: the request was accepted, "
        "but the provider, its settings or its answer is at fault. [certsign.md](certsign.md) and "
        "[dutystamp.md](dutystamp.md) say what is tried again by itself.",
        ("services/rendering/",),
    ),
    Group(
        "Templates",
        "In calls of `/templates`.",
        ("services/templates/", "services/gateway/api/templates.py", "services/gateway/api/requests/intake.py"),
    ),
    Group(
        "Batches",
        "In calls of `/submissions/batch`. `row` says which row of the file is meant. [bulk.md](bulk.md) has the format.",
        ("services/submissions/batches/", "services/gateway/api/requests/batches/", "services/gateway/api/batches.py",
         "services/submissions/entrypoints/batches.py"),
    ),
    Group(
        "Signing pages",
        "Said to signers and visitors of links, in their language, and to programs that call the pages' own paths (`/s/...`, "
        "`/d/...`).",
        (
            "services/gateway/pages/", "services/submissions/commands/signing/", "services/submissions/views/forms.py",
            "services/submissions/commands/shared_links.py", "services/submissions/commands/progress.py",
            "services/submissions/storage/", "services/submissions/evidence/shown.py",
            "services/submissions/evidence/reasons.py",
        ),
    ),
    Group(
        "Submissions and submitters",
        "In calls of `/submissions` and `/submitters`.",
        ("services/submissions/", "services/gateway/api/submissions.py", "services/gateway/api/requests/bulk.py",
         "services/gateway/api/accounts/people.py", "services/gateway/evidence/archive.py"),
    ),
    Group(
        "Users, keys and the account",
        "In calls of `/users`, `/user`, `/account` and of test mode (`/test_clock`, `/test_data`).",
        ("services/gateway/accounts/", "services/gateway/api/accounts/", "services/gateway/rights.py"),
    ),
    Group(
        "Webhooks and events",
        "In calls of `/webhooks` and `/events`.",
        ("services/webhooks/", "services/gateway/http/streams.py", "contracts/runtime/http/signed_requests.py"),
    ),
    Group(
        "Any request",
        "About the request as such, its key, its address, its size, and the state of the installation. After 503 send it again "
        "when the seconds in `Retry-After` have passed.",
        ("",),
    ),
)  # fmt: skip
OPERATORS = Group(
    "What operators are told",
    "When a process starts, by `python -m services.<name> check`, and about settings that are not valid. `deploy/RUNBOOK.md` "
    "says what to do.",
    ("",),
)
_HEAD = """\
# Every sentence

What [errors.md](errors.md) says of codes, this page says of sentences: find here the one that you got. It is made of the code
by `python -m docs.programs.make_errors`, which follows every literal to where it is told (`docs/wording/refusals.py`).

`‹name›` stands for what is filled in. A sentence that begins with a small letter is a *reason*: it continues the name of the
field at fault, and stands in `details[].reason`; in `error` the name stands before it. Where no field is named below, it is
the one that `details` name. Where no status is named, it depends on the call, and is mostly 422. Programs compare `code` and
`details[].field`: sentences may be reworded in any version.
"""


def page() -> str:
    """Return the page as it should be now."""
    refusals_told = [refusal for refusal in refusals.all_refusals() if refusal.told_by not in _NOT_TOLD | _IN_LOGS]
    in_order = (GROUPS[-1], *GROUPS[:-1], OPERATORS)
    return "\n".join(
        [
            _HEAD,
            *(
                _section(group, [refusal for refusal in refusals_told if group_of(refusal) is group])
                for group in in_order
            ),
        ]
    )


def group_of(refusal: Refusal) -> Group:
    """Find the heading of a sentence: the first whose modules it is of."""
    is_setting = refusal.told_by == "ValueError" and refusal.module.endswith("settings.py")
    if refusal.told_by in _TO_OPERATORS or is_setting or refusal.module.startswith("services/notifications/"):
        return OPERATORS
    return next(group for group in GROUPS if refusal.module.startswith(group.modules))


def _section(group: Group, refusals_told: Iterable[Refusal]) -> str:
    rows: dict[tuple[str, str], tuple[set[str], set[str]]] = {}
    for refusal in refusals_told:
        fields, modules = rows.setdefault((refusal.text.rstrip(), _status(refusal)), (set(), set()))
        fields |= {refusal.field} - {""}
        modules.add(_short(refusal.module))
    lines = [
        f"| {_shown(text)} | {_fields(fields)} | {status} | {', '.join(sorted(modules))} |"
        for (text, status), (fields, modules) in sorted(rows.items(), key=lambda row: (_plain(row[0][0]), row[0]))
    ]
    head = f"## {group.title}\n\n{group.advice}\n\n| Sentence | Field | Status | Raised in |\n|---|---|---|---|\n"
    return head + "\n".join(lines) + "\n"


def _status(refusal: Refusal) -> str:
    if refusal.told_by in _IN_STATES or refusal.told_by in _TO_OPERATORS:
        return ""
    return str(STATUS.get(refusal.code, "")) or (
        "422" if refusal.told_by in ("BadValue", "Problems", "FieldRefused") else ""
    )


def _fields(fields: set[str]) -> str:
    shown = sorted(re.sub(r"\{(\w*)\}", r"‹\1›", field).strip(".") for field in fields)
    return ", ".join(f"`{field}`" for field in shown[:4] if field) + (", …" if len(shown) > 4 else "")


def _short(module: str) -> str:
    return module.removeprefix("services/").removesuffix(".py")


def _shown(text: str) -> str:
    escaped = re.sub(r"([|<*_])", r"\\\1", re.sub(r"\s+", " ", text))
    return re.sub(r"\{(\w+)\}", lambda match: f"‹{match[1].replace('_', ' ')}›", escaped.replace("\\_", "_"))


def _plain(text: str) -> str:
    return re.sub(r"\{\w+\}|\W+", " ", text).strip().lower()


if __name__ == "__main__":
    PAGE.write_text(page())
