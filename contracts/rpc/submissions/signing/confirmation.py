"""The last step of a signer who signs with a certificate of their own: they confirm their identity at the provider
(docs/certsign-signer.md).

No call waits for the provider: the page asks again (``confirmation``) until there is something to do.
"""

from pydantic import Field

from contracts.providers import ConfirmationView
from contracts.rpc import Rpc
from contracts.rpc.submissions.signing.form import Done, InviteAndComplete
from contracts.rpc.submissions.visit import Visit


class StartConfirmation(InviteAndComplete):
    """The same as completing, with the same contents: what completing would refuse is refused. The values are locked from then
    on, and the form is completed once the provider has signed."""


class AnswerConfirmation(Visit):
    """Answers to the questions of the view with this ``ask``, by their ids."""

    request_id: str
    ask: int
    answers: dict[str, str] = Field(repr=False)


class ReturnConfirmation(Visit):
    """The person came back from the provider's page with this ``state``; ``answers`` is the rest of the query (``code``; or
    ``error``, ``error_description``)."""

    request_id: str
    state: str = Field(repr=False)
    answers: dict[str, str] = Field(repr=False)


class LeaveConfirmation(Visit):
    """Go back to the form, or have the person asked again."""

    request_id: str


START_CONFIRMATION = Rpc("submissions", "start_confirmation", StartConfirmation, ConfirmationView, timeout=30)
CONFIRMATION = Rpc("submissions", "confirmation", Visit, ConfirmationView)
ANSWER_CONFIRMATION = Rpc("submissions", "answer_confirmation", AnswerConfirmation, ConfirmationView)
RETURN_CONFIRMATION = Rpc("submissions", "return_confirmation", ReturnConfirmation, ConfirmationView)
TRY_CONFIRMATION_AGAIN = Rpc("submissions", "try_confirmation_again", LeaveConfirmation, ConfirmationView)
LEAVE_CONFIRMATION = Rpc("submissions", "leave_confirmation", LeaveConfirmation, Done)
