"""Duty stamps: each is bought once and placed once, whatever is killed, lost or delivered twice.

``orders`` is what others call; ``work`` is what the background process does with a due row; ``serials`` keeps the books of what
was paid for; ``reconciliation`` compares them with the provider's."""
