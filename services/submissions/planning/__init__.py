"""What a call is going to write, decided before the transaction."""
