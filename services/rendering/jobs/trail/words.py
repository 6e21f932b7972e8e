"""What the audit trail calls what happened, and how it tells its reader to check it."""

EVENTS = {
    "create_submission": "Submission created",
    "send_email": "Invitation sent by e-mail",
    "send_reminder_email": "Reminder sent by e-mail",
    "bounce_email": "E-mail could not be delivered",
    "complaint_email": "E-mail was reported as spam",
    "send_sms": "Invitation sent by SMS",
    "bounce_sms": "SMS could not be delivered",
    "send_2fa_sms": "Verification code sent by SMS",
    "send_2fa_email": "Verification code sent by e-mail",
    "send_2fa_phone": "Verification code sent by phone",
    "send_completion_email": "Completion told by e-mail",
    "send_copy_email": "Copy sent by e-mail",
    "send_decline_email": "Refusal told by e-mail",
    "send_wrong_recipient_email": "Wrong recipient told by e-mail",
    "open_email": "E-mail opened",
    "click_email": "Link in the e-mail followed",
    "click_sms": "Link in the SMS followed",
    "phone_verified": "Phone number verified",
    "email_verified": "E-mail address verified",
    "view_form": "Form viewed",
    "start_form": "Signing started",
    "invite_party": "Party invited",
    "invite_party_again": "Invitation asked for again by the sender",
    "name_party": "Next party named",
    "give_consent": "Consent given",
    "start_verification": "Identity check started",
    "complete_verification": "Identity verified",
    "fail_verification": "Identity check failed",
    "complete_form": "Signing completed",
    "api_complete_form": "Completed via API",
    "decline_form": "Signing declined",
    "delegate_form": "Signing delegated",
    "expire_submission": "Submission expired",
    "reschedule_submission": "Expiry changed",
    "update_submitter": "Details changed by the sender",
    "update_submission": "Submission changed by the sender",
    "replace_link": "Address changed by the sender, the link replaced",
    "drop_answers": "What was filled in and not signed removed",
    "wrong_recipient": "Recipient said “This is not me”, the link replaced",
    "archive_submission": "Submission archived",
    "restore_submission": "Submission restored",
    "fail_sealing": "Sealing failed",
    "retry_sealing": "Sealing asked for again",
    "accept_differences": "Accepted by an admin, although it is not what was signed",
    "start_confirmation": "Signature at the provider begun",
    "complete_confirmation": "Signed at the provider with a certificate of their own",
    "fail_confirmation": "Not signed at the provider",
    "leave_confirmation": "Went back from the provider to the form",
    "request_certsign": "Signature of a provider asked for",
    "complete_certsign": "Signed by the provider",
    "fail_certsign": "Not signed by the provider",
    "retry_certsign": "Signature of the provider asked for again",
    "waive_certsign": "Signature of the provider given up",
    "request_dutystamp": "Duty stamps asked for",
    "complete_dutystamp": "Duty stamps put on",
    "fail_dutystamp": "Duty stamps could not be had",
    "retry_dutystamp": "Duty stamps asked for again",
    "complete_submission": "Submission completed",
}
DETAILS = {
    "to": "to",
    "email": "to",
    "phone": "to",
    "method": "method",
    "identified_as": "as",
    "proved_email": "with the address",
    "subject": "known there as",
    "issuer": "at",
    "acr": "assurance",
    "certificate": "certificate",
    "certificate_issuer": "issued by",
    "certificate_serial": "serial number",
    "certificate_sha256": "SHA-256 of the certificate",
    "reason": "reason",
    "error": "error",
    "provider": "provider",
    "ip": "IP",
    "key_id": "API key",
}
CHANGED = {
    "name": "name",
    "email": "e-mail address",
    "phone": "phone number",
    "external_id": "external id",
    "message": "message of the invitation",
    "metadata": "metadata",
    "expire_at": "expiry",
    "preferences.require_email_2fa": "code by e-mail required",
    "preferences.require_phone_2fa": "code by phone required",
    "preferences.send_email": "invitation by e-mail",
    "preferences.send_sms": "invitation by SMS",
    "preferences.reply_to": "reply address",
}
"""What a line of a change calls what was changed."""

CHANGED_GROUPS = {"values.": "value of", "fields.": "field", "preferences.": "preference", "branding.": "picture:"}
WAYS = {"link": "the link of the invitation", "shared_link": "the shared link", "api": "the API"}
CODES = {"email": "a code sent by e-mail to", "phone": "a code sent by phone to"}

PAGE_STEP = (
    "Drop the file that you have on this page, and it tells you whether it was sealed here and is unchanged. Nothing of the"
    " file is kept."
)
SEAL_STEP = (
    "Open a sealed document or this trail in a PDF reader that checks signatures, or send it to POST /tools/verify. The"
    " signature is made with the certificate of {signer}, issued by {issuer}, and covers the whole file: a single changed"
    " byte breaks it."
)
PROVIDED_SEAL_STEP = (
    "Open a sealed document or this trail in a PDF reader that checks signatures, or send it to POST /tools/verify. The"
    " signature of a document is made with the certificate that is named above, that of this trail with the certificate of"
    " {signer}, issued by {issuer}. Each covers the whole file: a single changed byte breaks it."
)
STAMPED_SEAL_STEP = (
    " A duty stamp is one more signature, made after the seal: the seal of a stamped document covers the file as it was sealed,"
    " which is the beginning of the stamped one, and the stamp's signature covers all of it."
)
SIGNED_BY = "Signed with the certificate of {signer}, issued by {issuer}, by {provider} on {at}"
STAMPED = "Duty stamped with {serials} by {provider} on {at}"
WAIVED = "The signature of {provider} was waived by {by} on {at}: it is sealed with this installation's own certificate"
DOCUMENTS_STEP = (
    "The SHA-256 of a file (sha256sum on a command line) must equal the one printed above, as it was uploaded or as it"
    " was sealed."
)
LOG_STEP = (
    "Each line's hash is SHA-256 over the previous line's hash and the line as JSON, as the API shows it: keys data,"
    " event_timestamp, event_type, submitter_id in this order, no white space. Changing, removing or adding a line changes"
    " every later hash. The last one is:"
)
