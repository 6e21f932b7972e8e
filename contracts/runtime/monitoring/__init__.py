"""Logs, metrics, and whether the threads of a process make progress."""
