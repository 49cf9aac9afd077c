"""Events: their types and fields, games and their types, and the record that is hashed."""
