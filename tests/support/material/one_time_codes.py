"""Material for the tests of one-time codes: what a signer does with them, and submissions that ask for one."""

from datetime import timedelta
from typing import Any

from contracts.errors import ServiceError
from contracts.formats.one_time_code import code_of
from contracts.rpc import submissions as rpc
from contracts.runtime.clock import uuid7
from contracts.types import Account, Submission, Submitter
from services.submissions.commands.signing import codes
from services.submissions.settings import Settings
from services.submissions.views import forms
from tests.support.material.submissions import SITE, Desk, Slug, field, template
from tests.support.present import present

EMAIL = {"require_email_2fa": True}
PHONE = {"phone": "+14155550123", "require_phone_2fa": True}
READY = Account(phone_codes_available=True)
WEBHOOK = "a sealed webhook"
LIMITS = Settings(
    amqp_url="amqp://nowhere",
    blob_url="file:///nowhere",
    base_url=SITE.base_url,
    link_secret="a link secret that is long enough for every check",
    database_url="sqlite:////nowhere",
)


class CodeDesk(Desk):
    """Does what a signer does with codes, whose mails it reads."""

    code_limits = LIMITS

    def send(self, slug: Slug, *proofs: str, **more: Any) -> rpc.codes.CodeSent:
        command = rpc.codes.SendCode(slug=slug, proofs=[*self.proofs, *proofs], **{"request_id": uuid7(), **more})
        return self.database.write(codes.send, command, self.code_limits, SITE, self.now)

    def check(self, slug: Slug, code: str, *proofs: str, **more: Any) -> rpc.codes.PassedCode:
        command = rpc.codes.CheckCode(
            slug=slug, code=code, proofs=[*self.proofs, *proofs], **{"request_id": uuid7(), **more}
        )
        judged, passed = self.database.write(codes.check, command, SITE, self.now)
        return judged.passed(passed)

    def code(self, number: int = -1) -> str:
        """The code of the last mail, or of another."""
        return code_of(SITE.link_secret, self.events("code.due")[number]["data"]["seed"])

    def passed(self, slug: Slug, *proofs: str) -> str:
        """Asks for a code and passes it; the proof."""
        self.later(minutes=2)
        self.send(slug, *proofs)
        return present(self.check(slug, self.code(), *proofs).proof)

    def later(self, **time: float) -> None:
        self.now += timedelta(**time)

    def opened(self, slug: Slug, *proofs: str) -> rpc.form.SigningForm:
        visit = rpc.form.OpenForm(slug=slug, proofs=[*self.proofs, *proofs])
        return self.database.read(forms.form, visit, SITE, self.now)

    def lines(self, submission_id: int) -> list[str]:
        return [one.event_type for one in self.get(submission_id).submission_events or []]


def one_signer(desk: CodeDesk, **submitter: Any) -> tuple[Submission, Submitter]:
    """A submission whose signer must pass a mailed code."""
    found = template(field(name="Name"), field(name="Sign", type="signature", required=False), name="Secret Agreement")
    made = desk.create(found, {"name": "Bo Buyer", **EMAIL, **submitter})
    return made, made.submitters[0]


def by_phone(desk: CodeDesk, *fields: Any, **submitter: Any) -> Submitter:
    """A signer in an account that can send codes to telephones."""
    found = template(*(fields or (field(name="Name"),)))
    return desk.create(found, {"name": "Bo Buyer", **submitter}, account=READY).submitters[0]


def wrong(code: str) -> str:
    """A code that is not this one."""
    return f"{(int(code) + 1) % 10**6:06}"


def reason(error: ServiceError) -> tuple[str, Any, Any]:
    """Of a refused code: the error's code, the reason, how many tries are left."""
    detail = error.details[0]
    return error.code, detail["reason"], detail.get("tries_left")
