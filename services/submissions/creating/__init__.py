"""What makes submissions, one or several, up to their transaction: what they are made from, whether values fit, a dry run."""
