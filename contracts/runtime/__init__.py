"""The runtime of every service: settings, database, outbox, background work, the bus, files, HTTP to the outside, logs and
metrics."""
