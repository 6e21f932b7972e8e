"""Secrets that are being replaced: one signs and seals, the next and the previous one are accepted beside it.

Processes are replaced one after the other, so a secret is replaced in three steps, in each of which all of them understand each
other: the next one is accepted everywhere; then it signs, and the previous one is accepted; then that is forgotten.
"""


class Secret(str):
    """The secret that signs: a ``str`` for whoever does. What was signed with ``following`` or ``previous`` is accepted."""

    __slots__ = ("following", "previous")
    following: str | None
    previous: str | None

    def __new__(cls, secret: str, *, following: str | None = None, previous: str | None = None) -> "Secret":
        instance = super().__new__(cls, secret)
        instance.following, instance.previous = following, previous
        return instance


def each(secret: str) -> tuple[str, ...]:
    """Return every secret that is accepted, the one that signs first. A plain ``str`` is the only one."""
    also_accepted = (secret.following, secret.previous) if isinstance(secret, Secret) else ()
    return (secret, *(other for other in also_accepted if other is not None and other != secret))
