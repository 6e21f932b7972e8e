"""What goes out: events, mails, messages."""
