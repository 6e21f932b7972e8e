"""Formats of what people write: addresses, numbers, text; each checked and put into one form in one place."""
