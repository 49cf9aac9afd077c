"""The command line, for people and cron. One file per command group, rendering in one place."""
