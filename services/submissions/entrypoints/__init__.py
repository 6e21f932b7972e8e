"""Entrypoints, by who calls: contract in, one use case, contract out. What is slow (other services, files) is done before."""
