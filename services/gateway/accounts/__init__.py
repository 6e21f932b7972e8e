"""Users, keys and pictures of the account."""
