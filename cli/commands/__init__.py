"""One file per command, or per group of commands."""
