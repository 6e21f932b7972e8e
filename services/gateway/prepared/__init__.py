"""Submissions that an agent has prepared: kept, confirmed by a person, sent once."""
