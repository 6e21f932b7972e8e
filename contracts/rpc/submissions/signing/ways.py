"""Ways on from the signing page beside signing and declining."""

from contracts.rpc import Rpc
from contracts.rpc.submissions.signing.form import Done
from contracts.rpc.submissions.visit import Visit
from contracts.types import Tolerant

LATER, ASK, DELEGATE, RETURN = "later", "ask", "delegate", "return"
"""What ``SigningForm.ways`` names."""


class DelegateForm(Visit):
    """The signer hands the form over to somebody else, who gets a link of their own; this one opens nothing any more. ``phone``
    where ``SigningForm.delegate_needs_phone`` says so, and nowhere else."""

    request_id: str
    email: str
    name: str = ""
    phone: str = ""
    reason: str = ""


class ReturnForm(Visit):
    """The signer sends the form back to the sender, to be corrected."""

    request_id: str
    reason: str = ""


class SendLink(Visit):
    """The signer goes on later, and wants the link to the form in their mailbox, or on their phone where they have none."""

    request_id: str


class LinkSent(Tolerant):
    """``to``: the address or number that it goes to, crossed out but for what its owner knows it by."""

    to: str


class AskSender(Visit):
    """The signer asks the sender a question, which nobody else reads."""

    request_id: str
    question: str


SEND_LINK = Rpc("submissions", "send_link", SendLink, LinkSent)
ASK_SENDER = Rpc("submissions", "ask_sender", AskSender, Done)
DELEGATE_FORM = Rpc("submissions", "delegate_form", DelegateForm, Done)
RETURN_FORM = Rpc("submissions", "return_form", ReturnForm, Done)
