"""Tables as people keep them: their columns, dates and layouts, and the games in their rows."""
