"""From facts to points: which games count, on which ladders, and the single loop through a rule."""
