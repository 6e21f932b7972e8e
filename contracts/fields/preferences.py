"""What submissions, templates and the account say of mails and whom they go to (specification 2.8), and of how long what has
ended is kept."""

MAIL_TOGGLES = (
    "completed_notification_email_enabled",
    "completed_notification_email_attach_audit",
    "completed_notification_email_attach_documents",
    "documents_copy_email_enabled",
    "documents_copy_email_attach_audit",
    "documents_copy_email_attach_documents",
)
"""Which mails are sent on completion, and with what."""

KEEP_DAYS = "keep_days"
FEWEST_DAYS, MOST_DAYS = 7, 36_500
"""Of keeping what has ended. Webhooks are tried for five days: nothing is erased before it was told or given up."""


def wrong_keep_days(value: object) -> str | None:
    """Return why a submission cannot be kept for so many days, or None. 0 is for ever."""
    if isinstance(value, bool) or not isinstance(value, int):
        return "must be a whole number of days"
    if value != 0 and not FEWEST_DAYS <= value <= MOST_DAYS:
        return f"must be 0 (for ever) or from {FEWEST_DAYS} to {MOST_DAYS} days"
    return None


MOST_ADDRESSES = 20
"""In one list of e-mail addresses."""
