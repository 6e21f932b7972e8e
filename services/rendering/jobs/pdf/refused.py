"""The one error that a job raises on purpose."""


class Refused(Exception):
    """The file or the request cannot be accepted; the message is one clear sentence for the user of the API.

    ``file`` (from 1) is the one at fault, where there are several; ``field`` names what else in the request it is about.
    """

    def __init__(self, message: str, *, file: int | None = None, field: str | None = None) -> None:
        super().__init__(message)
        self.file, self.field = file, field
