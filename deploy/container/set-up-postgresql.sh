#!/bin/sh
# Create or upgrade the ledger in PostgreSQL as its owner, and give the other roles their rights. The arguments are those of
# `ratings init`. It can be run as often as you like.
set -eu
ratings init "$@"
ratings grants --sql --as owner | python -c '
import os, sys
import psycopg

with psycopg.connect(os.environ["RATINGS_DB"], autocommit=True) as owner:
    owner.execute(sys.stdin.read())
'
