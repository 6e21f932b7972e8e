"""What a provider outside did not do, in words for the admin."""

from datetime import timedelta


class ProviderFailed(Exception):
    """The provider does not do what was asked. ``code`` is a word for programs, the message one for an admin, and neither
    holds a secret. ``retryable``: asking again later may do. ``retry_after``: not before. ``counts``: the try is counted
    against the credential, which too many of them lock, as a wrong PIN."""

    def __init__(
        self, code: str, message: str, *, retryable: bool, retry_after: timedelta | None = None, counts: bool = False
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.retryable, self.retry_after, self.counts = (
            code,
            message,
            retryable,
            retry_after,
            counts,
        )
