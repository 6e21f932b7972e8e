"""The outcome of sending, in the words of every channel."""


class NotSent(Exception):
    """It failed; the same again may succeed. The text is the server's answer or the network's complaint."""


class Refused(Exception):
    """The server will never take this mail for this recipient. ``too_large``: it might without its attachments."""

    def __init__(self, answer: str, *, too_large: bool = False) -> None:
        super().__init__(answer)
        self.too_large = too_large
