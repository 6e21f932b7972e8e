"""What proves a completion: what was shown, agreed to and stated, and what is sealed."""
