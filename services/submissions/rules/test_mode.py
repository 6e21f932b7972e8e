"""What is different for submissions of test mode (docs/testing.md): under which settings they are made, what they cannot ask.

All that is sent is kept for testers, so that SMS and codes to phones are there without a provider. Nothing is bought: no
provider signs, stamps or proves an identity.
"""

from collections.abc import Iterable

from contracts.problems import Problems
from contracts.rpc.submissions.api import CertsignWish, NewSubmission
from contracts.stored_documents import StoredDocument
from contracts.types import Account

NOT_BOUGHT = "cannot be true in test mode, where nothing is bought"
SIGNED_BY_OTHERS = "has a document that others have signed, on whose pages nothing can say that it is a test"


def account_of(request: NewSubmission) -> Account:
    """Return the account's settings as they hold for the submission."""
    if not request.actor.test:
        return request.account
    return request.account.model_copy(
        update={
            "sms_available": True,
            "phone_codes_available": True,
            "identity_checks_available": False,
            "identity_checks_qes_available": False,
        }
    )


def adapted(request: NewSubmission, problems: Problems) -> NewSubmission:
    """Return what is planned of a request: in test mode nothing that costs money. What it asks for by name is refused; what the
    account or a template would have had done by a provider is left out."""
    if not request.actor.test:
        return request
    if request.certsign.enabled:
        problems.add("certsign.enabled", NOT_BOUGHT)
    if request.dutystamp is not None:
        problems.add("dutystamp.enabled", NOT_BOUGHT)
    return request.model_copy(update={"account": account_of(request), "certsign": CertsignWish(), "dutystamp": None})


def check_documents(
    request: NewSubmission, documents: Iterable[StoredDocument], basis: str, problems: Problems
) -> None:
    """Refuse documents on which a test could not be told from what counts; ``basis`` is the key of the request that names
    them."""
    if request.actor.test and any(document.signed for document in documents):
        problems.add(basis, SIGNED_BY_OTHERS)
