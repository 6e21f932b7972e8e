"""What people are shown of a submission: its documents, a signer's page, and what has changed of that since."""
