"""The commands: one file per command, or per group of commands."""
