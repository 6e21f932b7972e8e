"""Ways on from the signing page beside signing and declining."""

from contracts.rpc import Rpc
from contracts.rpc.submissions.form import Done
from contracts.rpc.submissions.visit import Visit

DELEGATE, RETURN = "delegate", "return"
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


DELEGATE_FORM = Rpc("submissions", "delegate_form", DelegateForm, Done)
RETURN_FORM = Rpc("submissions", "return_form", ReturnForm, Done)
