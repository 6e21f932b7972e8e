"""Providers outside: remote certificates and duty stamps. Each port is one module, each way to speak to a provider another."""
