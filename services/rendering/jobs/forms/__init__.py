"""Forms that others made: their fields, and the signatures in them."""
