"""Replay a game's clock from its events: the timers at any instant, and the reasons for removals.

Events are plain mappings with `type` and `data`; the rules are in `docs/clock.md`. Anna has 4 s to roll the dice and
takes 3 s; half of the remaining second is added to her main timer:

    >>> from ratings_ledger.projections.game_clock import clock_at
    >>> data = {"game_id": "g-1"}
    >>> events = [
    ...     {"type": "clock.started", "data": data | {"at": 0, "players": ["anna", "ben"]}},
    ...     {"type": "clock.offered", "data": data | {"at": 1000, "player": "anna", "choice": "roll-dice"}},
    ...     {"type": "clock.decided", "data": data | {"at": 4000, "player": "anna"}},
    ... ]
    >>> [player.main_ms for player in clock_at(events).players.values()]
    [120500, 120000]
"""

from ratings_ledger.projections.game_clock.events import apply_clock_event as apply_clock_event
from ratings_ledger.projections.game_clock.events import clock_at as clock_at
from ratings_ledger.projections.game_clock.events import replay_clock as replay_clock
from ratings_ledger.projections.game_clock.state import GameClock as GameClock
