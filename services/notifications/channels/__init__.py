"""Ways out for a mail: a mail server, or a folder when there is none."""
