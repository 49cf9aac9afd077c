"""Whether an event fits those before it: revisions, identities, leagues, published lists, names."""
