"""What signing forms send that stand on other pages than ours: no API key, the submitter's slug is the authorisation."""
