"""Run work in forked processes, recognise running processes, and respect memory limits."""
