"""Who takes part: roles, addresses, and what a party may do beside signing. Pure."""
