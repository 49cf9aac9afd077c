"""Standings kept for other programs: computed, promoted, verified, exposed to SQL."""
