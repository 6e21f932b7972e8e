"""What holds for submissions, fields and values, without a database."""
