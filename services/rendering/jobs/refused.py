"""The one error that a job raises on purpose."""


class Refused(Exception):
    """The file or the request cannot be accepted; the message is one clear sentence for the user of the API."""
