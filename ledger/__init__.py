"""Facts: what was recorded, by whom and when. Knows nothing about ratings."""
