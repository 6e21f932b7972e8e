"""A service that exists for the runtime's own tests and benchmarks, run by the very same code as the real ones."""
