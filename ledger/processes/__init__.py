"""Other processes: forked ones that work for this one, and which process is still there."""
