"""What can be recorded: the types of events, their fields, games and their types, and the record that is hashed."""
