"""The command line: people and cron. One file per command group, rendering in one place."""
