"""The pages of a ledger: what people see without a terminal, from a server or as a folder of files."""
