"""Providers that run on this machine, for `make up`, `make demo` and the tests: to be tried, never to be relied on."""
