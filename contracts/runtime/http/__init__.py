"""HTTP to the outside: one guarded way out, and signatures that receivers check."""
