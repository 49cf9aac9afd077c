#!/bin/sh
# The server runs this once, when it creates its folder: the roles of docs/postgresql.md with their passwords, and the
# database. `set-up-postgresql` does the rest.
set -eu
psql --quiet --no-psqlrc --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres \
    --set owner="$RATINGS_OWNER_PASSWORD" --set writer="$RATINGS_WRITER_PASSWORD" \
    --set rebuilder="$RATINGS_REBUILDER_PASSWORD" --set reader="$RATINGS_READER_PASSWORD" << 'SQL'
CREATE ROLE ratings_owner LOGIN PASSWORD :'owner';
CREATE ROLE ratings_writer LOGIN PASSWORD :'writer';
CREATE ROLE ratings_rebuilder LOGIN PASSWORD :'rebuilder';
CREATE ROLE ratings_reader LOGIN PASSWORD :'reader';
CREATE ROLE ratings_dashboard LOGIN;
CREATE DATABASE ratings OWNER ratings_owner ENCODING 'UTF8' TEMPLATE template0;
SQL
