"""Copies of the log: a folder of backups, and restoring one into an empty ledger."""
