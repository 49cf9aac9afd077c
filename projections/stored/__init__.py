"""Standings that are kept for other programs: computed, promoted, verified, shown to SQL."""
