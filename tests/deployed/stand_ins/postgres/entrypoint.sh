#!/bin/sh
# The first start makes the cluster and runs the scripts, listening on a Unix socket only; then the server replaces this shell.
set -eu
export PGDATA="${PGDATA:-/var/lib/postgresql/data}" PGHOST=/tmp
if [ ! -s "$PGDATA/made" ]; then
    rm -rf "$PGDATA"
    install -d -m 700 "$PGDATA"
    printf '%s\n' "$POSTGRES_PASSWORD" > /tmp/password
    initdb --encoding UTF8 --locale C.UTF-8 --username "$POSTGRES_USER" --pwfile /tmp/password \
        --auth-local trust --auth-host scram-sha-256 > /dev/null
    rm /tmp/password
    echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
    pg_ctl --options "-c listen_addresses='' -c unix_socket_directories=/tmp" --wait start
    createdb --username "$POSTGRES_USER" "$POSTGRES_USER"
    for script in /docker-entrypoint-initdb.d/*.sh; do
        "$script"
    done
    pg_ctl --mode fast --wait stop
    echo made > "$PGDATA/made"
fi
shift
exec postgres -c "listen_addresses=*" -c unix_socket_directories=/tmp "$@"
