"""From facts to points: which games count, on which ladders, and the one loop through a rule."""
