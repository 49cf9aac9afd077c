"""The answers: standings, explanations, what a change does, why points differ, and what-ifs."""
