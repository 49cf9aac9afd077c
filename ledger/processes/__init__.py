"""Other processes: forked workers, and whether a given process is still there."""
