"""The log in SQL: opening a ledger, reading and appending, and what differs between SQLite and PostgreSQL."""
