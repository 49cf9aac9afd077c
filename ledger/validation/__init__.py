"""Check a new event against the events before it: revisions, identities, leagues, published lists, names."""
