"""What submissions, templates and the account say of mails and whom they go to (specification 2.8)."""

MAIL_TOGGLES = (
    "completed_notification_email_enabled",
    "completed_notification_email_attach_audit",
    "completed_notification_email_attach_documents",
    "documents_copy_email_enabled",
    "documents_copy_email_attach_audit",
    "documents_copy_email_attach_documents",
)
"""Which mails are sent on completion, and with what."""

MOST_ADDRESSES = 20
"""In one list of e-mail addresses."""
