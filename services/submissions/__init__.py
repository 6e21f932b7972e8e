"""Submissions: the signing requests, their state machine, values, audit trail. See README.md."""
