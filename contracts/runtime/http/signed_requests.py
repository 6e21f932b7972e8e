"""Requests that their receiver can check: the headers of Standard Webhooks (github.com/standard-webhooks/standard-webhooks),
for webhooks and for services of the operator's own.

The package that signs is in the extras of the services that send such requests."""

from collections.abc import Sequence
from datetime import datetime

from standardwebhooks.webhooks import EmptyWebhookSecretError, Webhook


class UnusableSecret(ValueError):
    """The secret is not base64, with or without ``whsec_`` before it."""


def signed_headers(
    secret: str, message_id: str, body: bytes, moment: datetime, former_secrets: Sequence[str] = ()
) -> dict[str, str]:
    """Return the headers for ``body``, JSON in UTF-8, of which ``message_id`` tells repeats. Who still checks with one of the
    ``former_secrets`` finds a signature of it, too: those of all are separated by blanks. Raises UnusableSecret."""
    try:
        signers = [Webhook(each) for each in (secret, *former_secrets)]
    except (ValueError, EmptyWebhookSecretError) as error:
        raise UnusableSecret("must be base64, as whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw") from error
    return {
        "Content-Type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": str(int(moment.timestamp())),
        "webhook-signature": " ".join(signer.sign(message_id, moment, body.decode()) for signer in signers),
    }
