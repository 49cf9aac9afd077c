"""The command line, for people and cron: `commands/` has a file per command or group, `output/` prints the results."""
