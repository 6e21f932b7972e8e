#!/bin/sh
# A database for each service, and a role that may connect to this one only, with the password <SERVICE>_POSTGRES_PASSWORD. Runs when
# the PostgreSQL container starts with an empty folder. May be run again at any time: it gives a role what an older form left to the
# superuser, and sets the passwords anew.
set -eu
export PGOPTIONS="-c client_min_messages=warning"
psql --no-psqlrc --quiet --username "$POSTGRES_USER" --dbname postgres --set ON_ERROR_STOP=1 <<'SQL'
SELECT format('REVOKE ALL ON DATABASE %I FROM PUBLIC', datname)
FROM pg_database WHERE datname IN ('postgres', 'template1', :'USER')
\gexec
SQL
for name in gateway templates submissions rendering notifications webhooks; do
    variable="$(echo "$name" | tr '[:lower:]' '[:upper:]')_POSTGRES_PASSWORD"
    printenv "$variable" > /dev/null || { echo "$variable is missing" >&2; exit 1; }
    psql --no-psqlrc --quiet --username "$POSTGRES_USER" --dbname postgres --set ON_ERROR_STOP=1 --set name="$name" \
        --set variable="$variable" <<'SQL'
\set password `printenv :'variable'`
SELECT format('CREATE ROLE %I', :'name') WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'name') \gexec
ALTER ROLE :"name" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS PASSWORD :'password';
SELECT format('CREATE DATABASE %I', :'name') WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = :'name') \gexec
ALTER DATABASE :"name" OWNER TO :"name";
REVOKE ALL ON DATABASE :"name" FROM PUBLIC;
\connect :"name"
ALTER SCHEMA public OWNER TO :"name";
-- What the superuser made here when all services shared it. Sequences of a column, and what an extension made, follow their owner.
SELECT format('ALTER TABLE %s OWNER TO %I', oid::regclass, :'name')
FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'S')
    AND pg_get_userbyid(relowner) <> :'name'
    AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND deptype IN ('a', 'i', 'e'))
\gexec
SELECT format('ALTER ROUTINE %s OWNER TO %I', oid::regprocedure, :'name')
FROM pg_proc
WHERE pronamespace = 'public'::regnamespace AND pg_get_userbyid(proowner) <> :'name'
    AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_proc'::regclass AND objid = pg_proc.oid AND deptype = 'e')
\gexec
SELECT format('ALTER TYPE %s OWNER TO %I', oid::regtype, :'name')
FROM pg_type
WHERE typnamespace = 'public'::regnamespace AND typtype IN ('e', 'd') AND pg_get_userbyid(typowner) <> :'name'
    AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_type'::regclass AND objid = pg_type.oid AND deptype = 'e')
\gexec
SQL
done
