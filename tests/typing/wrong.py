"""Errors that a type checker reports, exactly in the lines with a comment that begins with `wrong`."""

from datetime import datetime
from fractions import Fraction

import ratings_ledger as rl

with rl.open("ratings.db") as ledger:
    view = ledger.at(as_of="2024-12-31")
    view.standing("elo-catan/all")  # wrong: the method is `standings`
    row = view.standings("elo-catan/all").rows[0]
    rank: Fraction = row.rank  # wrong: a rank is an int or None
    points: float = row.points  # wrong: points are exact
    print(row.point)  # wrong: the member is `points`  # noqa: T201
    view.standings("elo-catan/all")["anna"]  # wrong: rows have numbers, from 0
    change: rl.Change = view.standings("elo-catan/all")[0]  # wrong: its rows are of another kind
    len(view.balance("elo-catan/all"))  # wrong: a balance is no sequence of rows
    view.standings("elo-catan/all").to_pandas(exactly=True)  # wrong: the option is `exact`
    view.balance("elo-catan/all").to_polars()  # wrong: it has no rows
    view.standings("elo-catan/all")[0] = row  # wrong: results are frozen
    view.standings("elo-catan/all", limit="3")  # wrong: a limit is a number
    view.standings()  # wrong: of which ladder?
    view.history("elo-catan/all")  # wrong: whose?
    ledger.at(as_off="2024-12-31")  # wrong: the coordinate is `as_of`
    ledger.at(rules=1)  # wrong: a version is a text
    row.points = Fraction(1000)  # wrong: results are frozen
    when: str = view.last_event("elo-catan/all").recorded_at  # wrong: a moment is a datetime
    later: datetime = view.history("elo-catan/all", "mira").rows[0].occurred_at
    ledger.propose({"game_id": "g-1"})  # wrong: by whom?
    ledger.propose([], by="mira", new_names="take")  # wrong: refuse or accept
    ledger.propose([], by="mira").comit()  # wrong: the method is `commit`
    ledger.publish("elo-chess")  # wrong: by whom?
    ledger.publish(5, by="mira")  # wrong: a number is no ruleset
    ledger.log(after="g-1")  # wrong: a position is a number
    ledger.follow(poll="1s")  # wrong: the option is `poll_seconds`
    is_known = ledger.propose([], by="mira").commit().events[0].existed  # wrong: the member is `appended`
rl.create("ratings.db", "Europe/Berlin")  # wrong: the zone is named
rl.create("ratings.db", rulesets=[5])  # wrong: a number is no ruleset
last = rl.create("ratings.db").heads  # wrong: the property is `head`
rl.example("club")  # wrong: there is one example
rl.opne("ratings.db")  # wrong: the function is `open`
raise rl.Refused  # wrong: a refusal has a code and a message
