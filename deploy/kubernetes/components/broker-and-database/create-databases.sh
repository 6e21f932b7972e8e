#!/bin/sh
# Runs once, when the PostgreSQL container starts with an empty folder: a database for each service.
set -eu
for name in gateway templates submissions rendering notifications webhooks; do
    createdb --username "$POSTGRES_USER" "$name"
done
