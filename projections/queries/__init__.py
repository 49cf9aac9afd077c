"""The answers: standings, explanations, what a change does, why points differ, what would be if."""
