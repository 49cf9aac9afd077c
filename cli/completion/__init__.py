"""What a shell completes: commands, options, and the names of a ledger. Nothing here loads the rest of the program."""
