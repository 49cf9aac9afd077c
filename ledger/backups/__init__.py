"""Copies of the log: a folder of them, and the way back from one into an empty ledger."""
