"""One-time codes that signers pass before they see the form, or to confirm the number in a telephone field."""

from contracts.rpc import Rpc
from contracts.rpc.submissions.visit import Visit
from contracts.types import Moment, Tolerant


class CodeAsked(Tolerant):
    """The one-time code that this browser must pass next. ``sent_to`` is the masked address, None when there is none on file.
    ``sent``: a code is on its way that can still be passed; ``failed``: the last one could not be delivered. ``retry_after``:
    seconds until another one may be asked for."""

    method: str
    sent_to: str | None = None
    sent: bool = False
    failed: bool = False
    retry_after: int = 0


class SendCode(Visit):
    """Send the one-time code that is asked for next: to the signer's address, or, when they have passed those, to the number
    ``phone`` that they want to put into a field which asks for a code. ``phone_otp_webhook`` is the account's, sealed (see
    contracts.events.CodeDue); None when there is none."""

    request_id: str
    phone: str | None = None
    phone_otp_webhook: str | None = None


class CodeSent(Tolerant):
    """``sent_to`` is the masked address; another code may be asked for ``retry_after`` seconds later."""

    sent_to: str
    retry_after: int
    expires_at: Moment


class CheckCode(Visit):
    """Check the code that somebody typed. A wrong code is refused with ``tries_left`` in the details; every guess is counted.
    ``phone`` as in SendCode."""

    request_id: str
    code: str
    phone: str | None = None


class PassedCode(Tolerant):
    """``proof`` goes to the browser that typed the code, and comes back with each of its visits until ``expires_at``. None for
    the number in a field: that is kept with the submission."""

    method: str
    proof: str | None = None
    expires_at: Moment | None = None


SEND_CODE = Rpc("submissions", "send_code", SendCode, CodeSent)
CHECK_CODE = Rpc("submissions", "check_code", CheckCode, PassedCode)
