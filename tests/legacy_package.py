"""A wheel of a rule package for an earlier version of this program, and a ruleset that uses its rule."""

from pathlib import Path

WHEEL = Path(__file__).parent / "packages" / "flat_points-1.0-py2.py3-none-any.whl"
RULESET = """id = "petanque-points"
version = "2025"
rule = "flat-points/1"
effective_from = "2025-01-01"

[scope]
game = ["petanque"]

[params]
points = { "3" = [3, 1, 0] }
"""
