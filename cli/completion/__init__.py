"""Complete commands, options, and the names of a ledger in a shell. Nothing here loads the rest of the program."""
