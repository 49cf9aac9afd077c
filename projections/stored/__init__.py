"""Stored standings for other programs: compute, promote and verify them, and expose them to SQL."""
