"""PDF/A and PDF/UA: what a file claims to be, and what that asks of what is drawn."""
