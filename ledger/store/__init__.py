"""The log in SQL: opening a ledger, reading, appending, and what differs between SQLite and PostgreSQL."""
