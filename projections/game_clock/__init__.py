"""The clock of a game, replayed from its events: timers at any instant, and why somebody was removed.

Events come as plain mappings with `type` and `data`; `docs/clock.md` tells the rules. Anna has 4 s to roll the dice and
takes 3 s; half of the second that is left is hers:

    >>> from projections.game_clock import show
    >>> data = {"game_id": "g-1"}
    >>> events = [
    ...     {"type": "clock.started", "data": data | {"at": 0, "players": ["anna", "ben"]}},
    ...     {"type": "clock.offered", "data": data | {"at": 1000, "player": "anna", "choice": "roll-dice"}},
    ...     {"type": "clock.decided", "data": data | {"at": 4000, "player": "anna"}},
    ... ]
    >>> [player["main_ms"] for player in show(events)["players"]]
    [120500, 120000]
"""

from projections.game_clock.events import replay as replay
from projections.game_clock.events import take as take
from projections.game_clock.explanation import explain as explain
from projections.game_clock.explanation import show as show
from projections.game_clock.state import GameClock as GameClock
