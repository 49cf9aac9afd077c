"""How fast the program is, measured against other programs: see docs/performance.md.

A row of the table is a function in `benchmarks.rows`. It measures functions of `benchmarks.ours` against functions of
`benchmarks.baselines` in turn, each time in a fresh process, on games that `benchmarks.games` draws from a seed.
"""
