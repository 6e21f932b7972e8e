"""Notice that a database was put back to an earlier moment, and give no number out a second time."""
