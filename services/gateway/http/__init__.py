"""HTTP: from the socket to a validated request."""
