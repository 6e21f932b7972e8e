"""What the page for operators says of each kind of work, each state and each action, in one sentence or two.

It is in English, as the runbook, the log and the reasons of failures are.
"""

from contracts.rpc.operating import GIVE_UP, RETRY, SEAL
from contracts.runtime.operations import stuck

STATES = {
    stuck.GIVEN_UP: "given up",
    stuck.FAILING: "failing",
    stuck.UNTOUCHED: "due, and nobody is at it",
    stuck.UNDER_WAY: "under way for long",
}
"""What the states of stuck work are called."""

REQUEUE, DROP = "requeue", "drop"

ACTIONS = {
    RETRY: "Try again",
    GIVE_UP: "Give up",
    SEAL: "Seal again",
    REQUEUE: "Handle again",
    DROP: "Drop",
}
"""What stands on the buttons."""

CONSEQUENCES = {
    RETRY: "It is due again at once, with its whole schedule of attempts before it. Mend the reason first, or it fails again.",
    GIVE_UP: "It is tried no longer, and whoever waits for it is told that it has failed, as at the end of its schedule.",
    SEAL: "The submission is sealed again in your name. What differs from what was signed is not accepted by this.",
    REQUEUE: "The event goes back to the queue that it came from, with a clean slate, and its handler takes it as a new one.",
    DROP: "The event counts as dealt with, and what waited for it goes on without it. This cannot be undone.",
}
"""What becomes of it."""

PARKED = "parked events"
"""What events of a parking queue are called where work is named."""

EXPLAINED = {
    "archived_files": "Sealed documents whose archive time-stamps are renewed before they run out.",
    "batches": "Files of rows that become as many submissions.",
    "blob_removals": "Files of erased submissions that are taken out of the file store.",
    "certsign_jobs": "Documents that wait for the signature of a provider of certificates, which is asked again and again.",
    "confirmations": "Signers who sign with a certificate of their own at a provider.",
    "deliveries": "Deliveries to webhooks, in order: one that fails holds back those of the same submission behind it.",
    "duty_stamps": "Duty stamps that are bought at a provider. Each is bought once, whatever happens.",
    "erasure_receipts": "Receipts of deletions that are to be signed.",
    "mails": "Mails to signers, senders and admins. The reason is what the mail server said.",
    "phone_messages": "Invitations by SMS, and one-time codes to phones.",
    "reminders": "Reminders to signers who have not signed yet.",
    "seal_jobs": "Documents that are filled, sealed and read back once everybody has signed.",
    "stamped_seals": "Sealed documents that wait for a duty stamp to be placed.",
    "statements": "Statements of what signers confirmed, which are signed and kept.",
    "test_wipes": "Test mode, which is emptied of all that was there when somebody asked for it.",
    stuck.SEALING: "Everybody has signed, and the sealed documents are not there yet.",
    stuck.TOLD: "Events that a service has recorded and the broker has not taken.",
    stuck.TAKEN: "Events that others have told, and this service has not taken yet. It fetches them by itself.",
    "deletions by retention": "Submissions that are deleted because they were kept for long enough. Those on legal hold wait.",
    "receipts of deletions": "Deleted submissions of which not every service has confirmed that nothing is left.",
    PARKED: "Events whose handler failed each time. What comes after them may wait for them.",
}
"""What each kind of work is."""


def subject(service: str, work: str, key: str) -> str:
    """Name what an action is done to, as the log has it."""
    return f"{service}: {work} {key}".strip()
