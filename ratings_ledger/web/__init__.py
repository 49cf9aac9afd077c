"""Show the pages of a ledger to people without a terminal, from a server or as a folder of files."""
