"""Seeds: recorded one by one and from a file, refused where they come too late or contradict each other."""

import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest

Ratings = Callable[..., Any]
Event = dict[str, Any]
LADDER = "elo-chess/all"
WHY = ("--reason", "from the old list", "--by", "tester")
AT = "2024-02-01T12:00:00Z"


@pytest.fixture
def db(store: str, ratings: Ratings) -> str:
    """A ledger without games, of each kind of store."""
    assert ratings("init", "--for", "chess", "--zone", "UTC", db=store).exit_code == 0
    return store


@pytest.fixture
def one_db(ratings: Ratings, tmp_path: Path) -> str:
    """The same in a file alone."""
    url = f"sqlite:///{tmp_path / 'ratings.db'}"
    assert ratings("init", "--for", "chess", "--zone", "UTC", db=url).exit_code == 0
    return url


def seed(ratings: Ratings, db: str, *arguments: object) -> Any:
    return ratings("seed", LADDER, *arguments, *WHY, db=db)


def code(told: Any) -> str:
    """The code with which a command was refused, empty if it was not; notes come before it."""
    lines = [line for line in told.stderr.splitlines() if not line.startswith("note: ")]
    found = re.match(r"(?:[^:]*:\d+: )?([a-z-]+): ", lines[0]) if told.exit_code == 1 else None
    return found[1] if found else ""


def game(number: int, *players: str, at: str = AT, **labels: Any) -> Event:
    seats = [{"player": player, "place": place} for place, player in enumerate(players, 1)]
    data = {"game_id": f"g-{number}", "game": "chess", "participants": seats, **labels}
    return {"type": "game.recorded", "occurred_at": at, "data": data}


def event(name: str, event_id: str = "", **data: Any) -> Event:
    return {"type": name, "occurred_at": AT, "data": data} | ({"id": event_id} if event_id else {})


def seeded(player: str, points: str, event_id: str = "", **data: Any) -> Event:
    return event("player.seeded", event_id, ladder=LADDER, player=player, state={"points": points}, **data)


def enter(ratings: Ratings, db: str, *events: Event, options: tuple[str, ...] = ()) -> list[tuple[int, str]]:
    """Import some events; returns the lines and codes of what is refused."""
    text = "\n".join(map(json.dumps, events))
    told = ratings("import", "-", "--format", "json", "--new-names", "accept", *options, db=db, input=text)
    return [(one["line"], one["code"]) for one in json.loads(told.stdout)["rejected"]]


def rows(ratings: Ratings, db: str) -> list[Any]:
    found: list[Any] = json.loads(ratings("log", "--type", "player.seeded", "--format", "json", db=db).stdout)["rows"]
    return found


def test_a_seed_is_recorded_shown_and_undone(ratings: Ratings, db: str) -> None:
    """One command seeds a player; the log says so in words, and undo takes it back."""
    told = seed(ratings, db, "anna", "points=+1650.50", "--games", "12")
    assert (told.exit_code, told.stdout.splitlines()[0]) == (0, "player.seeded is recorded at position 3."), told
    data = {"ladder": LADDER, "player": "anna", "state": {"points": "1650.5"}, "games": 12}
    assert rows(ratings, db)[0]["data"] == data | {"reason": "from the old list"}
    shown = ratings("log", "--type", "player.seeded", db=db).stdout
    assert "anna starts on elo-chess/all with points 1650.5, after 12 games elsewhere: from the old list" in shown
    assert code(seed(ratings, db, "anna", "points=1650.5", "--games", "12")) == "nothing-to-correct"
    assert code(seed(ratings, db, "anna", "points=1650.5")) == "seed-exists"
    undone = ratings("undo", "--yes", "--by", "tester", db=db)
    assert undone.exit_code == 0, undone
    assert "the seed at position 3" in ratings("log", "--type", "event.voided", db=db).stdout
    assert seed(ratings, db, "anna", "points=1700").exit_code == 0
    assert ratings("verify", db=db).exit_code == 0


def test_a_file_of_seeds_is_one_command(ratings: Ratings, db: str, tmp_path: Path) -> None:
    """All rows of a file are recorded or none; those who begin like that already are left alone."""
    file = tmp_path / "list.csv"
    file.write_text("Player;Points;Games;Reason\nanna;1500,5;;\nben;1200;7;a friend\n", encoding="utf-8")
    planned = seed(ratings, db, "--file", file, "--dry-run")
    assert planned.stdout.startswith("Nothing was recorded; this is what player.seeded would do."), planned
    told = seed(ratings, db, "--file", file)
    assert told.stdout.splitlines()[0] == "2 events player.seeded are recorded, the last at position 4."
    assert [(row["data"]["state"], row["data"].get("games"), row["data"]["reason"]) for row in rows(ratings, db)] == [
        ({"points": "1500.5"}, None, "from the old list"), ({"points": "1200"}, 7, "a friend")
    ]  # fmt: skip
    assert code(seed(ratings, db, "--file", file)) == "nothing-to-correct"
    file.write_text("player,points\nanna,1500.5\ncleo,900\n", encoding="utf-8")
    assert seed(ratings, db, "--file", file).exit_code == 0
    assert [row["data"]["player"] for row in rows(ratings, db)] == ["anna", "ben", "cleo"]
    file.write_text("player,points\ndora,900\nben,900\n", encoding="utf-8")
    assert code(seed(ratings, db, "--file", file)) == "seed-exists"
    assert len(rows(ratings, db)) == 3


FILES = {
    "": "empty-file",
    "player,rating\nanna,1\n": "unknown-column",
    "player,points,points\nanna,1,2\n": "unknown-column",
    "player,games\nanna,1\n": "missing-column",
    "points\n1\n": "missing-column",
    "player,points\nanna,\n": "missing-member",
    "player,points\n,5\n": "missing-member",
    "player,points\nanna,many\n": "bad-decimal",
    "player,points\nanna,1e3\n": "bad-decimal",
    "player;points\nanna;1,500\n": "bad-decimal",
    "player,points,games\nanna,1,-1\n": "not-an-integer",
    "player,points,games\nanna,1,1.5\n": "not-an-integer",
    "player,points,games\nanna,1,1000001\n": "out-of-range",
    "player,points\nanna,1\nanna,2\n": "player-twice",
    "player,points\nanna,0.0000001\n": "finer-than-scale",
    "player,points\na/b,1\n": "bad-identifier",
}


@pytest.mark.parametrize("text", FILES)
def test_bad_files_of_seeds_are_refused(text: str, ratings: Ratings, one_db: str, tmp_path: Path) -> None:
    """A file that says nothing clear is refused with a code, and nothing of it is recorded."""
    file = tmp_path / "list.csv"
    file.write_text(text, encoding="utf-8")
    told = seed(ratings, one_db, "--file", file)
    assert code(told) == FILES[text], told
    assert "list.csv" in told.stderr
    assert rows(ratings, one_db) == []


ARGUMENTS = {
    "another column": (("anna", "rating=1650"), "seed-column"),
    "a close column": (("anna", "pionts=1650"), "seed-column"),
    "no value": (("anna", "points"), "bad-value"),
    "no column": (("anna", "=5"), "bad-value"),
    "two values": (("anna", "points=5", "points=6"), "bad-value"),
    "no number": (("anna", "points=much"), "bad-decimal"),
    "too fine": (("anna", "points=0.0000001"), "finer-than-scale"),
    "too much": (("anna", "points=10000000001"), "out-of-range"),
    "too little": (("anna", "points=-10000000001"), "out-of-range"),
    "too many games": (("anna", "points=5", "--games", "1000001"), "out-of-range"),
    "less than no games": (("anna", "points=5", "--games", "-1"), "out-of-range"),
    "a bad name": (("an/na", "points=5"), "bad-identifier"),
}


@pytest.mark.parametrize("what", ARGUMENTS)
def test_bad_seeds_are_refused(what: str, ratings: Ratings, one_db: str) -> None:
    """A seed that does not fit the rule of its ladder is refused with a code."""
    arguments, wanted = ARGUMENTS[what]
    assert code(seed(ratings, one_db, *arguments)) == wanted
    assert rows(ratings, one_db) == []


def test_seeds_need_a_ladder_whose_points_run_on(ratings: Ratings, one_db: str) -> None:
    """There are no seeds for a ladder that does not exist, nor for lists of what games gave."""
    assert ratings("rules", "publish", "--shipped", db=one_db).exit_code == 0
    state = {"player": "anna", "state": {"points": "5"}}
    ladders = ("elo-go/all", "galactic-points/x", "catan-monthly/b/basic/2024-01", "galactic-points")
    events = [event("player.seeded", ladder=ladder, **state) for ladder in ladders]
    assert enter(ratings, one_db, *events) == [
        (1, "unknown-ladder"), (2, "unknown-ladder"), (3, "ladder-not-adjustable")
    ]  # fmt: skip


def test_a_seed_comes_before_the_first_counted_game(ratings: Ratings, db: str) -> None:
    """A seed after a counted game is refused, whenever it claims to have occurred, unless it replaces a withdrawn one.

    Games that do not count there, voided ones and those of others do not matter; an import is read in its order.
    """
    unrated = game(4, "dora", "emil", rated=False), game(5, "dora", "emil", aborted=True)
    assert enter(ratings, db, *unrated, seeded("dora", "1")) == []
    uncounted = [game(1, "anna", "ben", rated=False), game(2, "anna", "ben", at="2023-01-01T12:00:00Z")]
    assert enter(ratings, db, *uncounted, event("game.voided", game_id="g-2", reason="r")) == []
    early = seeded("anna", "1", "late") | {"occurred_at": "1999-01-01T12:00:00Z"}
    assert enter(ratings, db, game(3, "anna", "cleo"), early, options=("--dry-run",)) == [(2, "seed-late")]
    assert enter(ratings, db, seeded("anna", "1650", "s-1"), game(3, "anna", "cleo")) == []
    assert enter(ratings, db, seeded("cleo", "1"), seeded("ben", "1", "s-2")) == [(1, "seed-late")]
    assert enter(ratings, db, seeded("ben", "1", "s-2")) == []
    # a wrong seed is replaced
    assert enter(ratings, db, event("event.voided", "v-1", id="s-1", reason="r"), seeded("anna", "1660", "s-3")) == []
    again = event("event.voided", "v-2", id="v-1", reason="r")
    assert enter(ratings, db, again) == [(1, "seed-exists")]
    assert enter(ratings, db, event("event.voided", "v-3", id="s-3", reason="r"), again) == []
    # once her first game is voided, cleo may have one
    assert enter(ratings, db, event("game.voided", game_id="g-3", reason="r")) == []
    assert enter(ratings, db, seeded("cleo", "1", "s-4")) == []
    assert ratings("verify", db=db).exit_code == 0


def test_one_person_begins_in_one_way(ratings: Ratings, db: str) -> None:
    """Two ids with different seeds do not become one person; equal seeds do, and part again."""
    assert enter(ratings, db, seeded("anna", "1650", "s-1"), seeded("anne", "1651", "s-2"),
                 seeded("ann", "1650", "s-3", games=0)) == []  # fmt: skip
    rename = event("player.renamed", "r-1", player="anna", new_player="anne")
    assert enter(ratings, db, rename) == [(1, "seeds-differ")]
    assert enter(ratings, db, event("player.renamed", "r-2", player="anna", new_player="ann")) == []
    assert enter(ratings, db, seeded("ann", "1700")) == [(1, "seed-exists")]
    # through the chain
    assert enter(ratings, db, event("player.renamed", player="anne", new_player="anna")) == [(1, "seeds-differ")]
    assert enter(ratings, db, event("event.voided", id="r-2", reason="r"),
                 event("event.voided", id="s-2", reason="r"), rename) == []  # fmt: skip
    # the withdrawn one is in force again only for a person without another
    void = next(row["id"] for row in log(ratings, db) if row["data"].get("id") == "s-2")
    assert enter(ratings, db, event("event.voided", id=void, reason="r")) == [(1, "seed-exists")]
    assert ratings("verify", db=db).exit_code == 0


def log(ratings: Ratings, db: str) -> list[Any]:
    found: list[Any] = json.loads(ratings("log", "--limit", "1000", "--format", "json", db=db).stdout)["rows"]
    return found


def test_a_ruleset_with_seeds_is_needed(ratings: Ratings, one_db: str) -> None:
    """The only version of a ruleset stays as long as its ladders have seeds."""
    assert enter(ratings, one_db, seeded("anna", "1", "s-1"), seeded("ben", "1")) == []
    (ruleset,) = (row["id"] for row in log(ratings, one_db) if row["type"] == "ruleset.published")
    told = ratings("void", "--event", ruleset, *WHY, db=one_db)
    assert code(told) == "still-needed"
    assert "2 seeds; first void those" in told.stderr
    assert enter(ratings, one_db, event("event.voided", id="s-1", reason="r")) == []
    assert "1 seed; first void that" in ratings("void", "--event", ruleset, *WHY, db=one_db).stderr


class Oracle:
    """What may be recorded, worked out from the whole list of events each time."""

    def __init__(self) -> None:
        self.log: list[Event] = []

    def live(self) -> list[Event]:
        gone: set[str] = set()
        for one in self.log:
            if one["type"] == "event.voided":
                target = one
                while target["type"] == "event.voided":
                    target = next(other for other in self.log if other.get("id") == target["data"]["id"])
                gone ^= {target["id"]}
        return [one for one in self.log if one.get("id") not in gone]

    def person(self, player: str) -> str:
        renames = (one["data"] for one in self.live() if one["type"] == "player.renamed")
        names = {data["player"]: data["new_player"] for data in renames}
        while player in names:
            player = names[player]
        return player

    def seeds(self, player: str, live: bool = True) -> list[tuple[Any, Any]]:
        """Those of a person, or the withdrawn ones."""
        there = self.live()
        return [
            (one["data"]["state"], one["data"].get("games", 0)) for one in self.log
            if one["type"] == "player.seeded" and self.person(one["data"]["player"]) == self.person(player)
            and (one in there) == live
        ]  # fmt: skip

    def code(self, new: Event) -> str | None:
        data = new["data"]
        if new["type"] == "player.renamed":
            both = self.seeds(data["player"])[:1] + self.seeds(data["new_player"])[:1]
            return "seeds-differ" if len(both) == 2 and both[0] != both[1] else None
        if new["type"] == "player.seeded":
            played = {
                self.person(seat["player"]) for one in self.log if one["type"] == "game.recorded"
                for seat in one["data"]["participants"]
            }  # fmt: skip
            if self.seeds(data["player"]):
                return "seed-exists"
            if self.person(data["player"]) in played and not self.seeds(data["player"], live=False):
                return "seed-late"
        return None


@pytest.mark.parametrize("number", range(6))
def test_random_histories_are_refused_as_an_oracle_says(
    number: int, ratings: Ratings, one_db: str, at_length: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether events come one by one or in pieces, the same are refused, with the codes of a plain reading."""
    if number > 1 and not at_length:
        pytest.skip("at length")
    monkeypatch.chdir(tmp_path)  # an import of standard input writes its rejects there
    chance, oracle, players = Random(number), Oracle(), [f"p{n}" for n in range(9)]
    count = 0
    for _ in range(12):
        events: list[Event] = []
        wanted: list[tuple[int, str]] = []
        for line in range(1, chance.choice((2, 4, 7))):
            count += 1
            new = random_event(chance, count, oracle, players)
            events.append(new)
            if found := oracle.code(new):
                wanted.append((line, found))
            else:
                oracle.log.append(new)
        assert enter(ratings, one_db, *events, options=("--keep-going",)) == wanted, events
    assert ratings("verify", db=one_db).exit_code == 0
    assert any(one["type"] == "event.voided" for one in oracle.log)


def random_event(chance: Random, count: int, oracle: Oracle, players: list[str]) -> Event:
    what = chance.choice(("seed", "seed", "seed", "game", "rename", "void"))
    live = [one for one in oracle.live() if one["type"] == "player.seeded"]
    if what == "void" and live:
        return event("event.voided", f"e-{count}", id=chance.choice(live)["id"], reason="r")
    if what == "rename":
        player, new_player = chance.sample(players, 2)
        met = [{*(seat["player"] for seat in one["data"]["participants"])} for one in oracle.log
               if one["type"] == "game.recorded"]  # fmt: skip
        people = [{oracle.person(name) for name in names} for names in met]
        pair = {oracle.person(player), oracle.person(new_player)}
        named = any(player in json.dumps(one["data"]) for one in oracle.log)
        if oracle.person(player) == player and len(pair) == 2 and named and not any(pair <= one for one in people):
            return event("player.renamed", f"e-{count}", player=player, new_player=new_player)
    if what == "game":
        left, right = chance.sample(players, 2)
        if oracle.person(left) != oracle.person(right):
            return game(count, left, right)
    games = {"games": chance.randint(0, 1)} if chance.random() < 0.3 else {}
    return seeded(chance.choice(players), str(chance.randint(1, 2)), f"e-{count}", **games)


def points_of(ratings: Ratings, db: str, ladder: str, *options: str) -> dict[str, Fraction]:
    told = ratings("standings", ladder, *options, "--format", "json", db=db)
    assert told.exit_code == 0, told
    return {row["player"]: Fraction(row["points"]) for row in json.loads(told.stdout)["rows"]}


@pytest.mark.parametrize("system", ["elo", "glicko"])
def test_a_seed_decides_every_answer(system: str, ratings: Ratings, store: str) -> None:
    """What a player begins with shows in standings, previews, attributions and adjustments; undone, it is gone."""
    assert ratings("init", "--for", "chess", "--zone", "UTC", "--system", system, db=store).exit_code == 0
    ladder, column = f"{system}-chess/all", {"elo": "points", "glicko": "rating"}[system]
    late = event("game.recorded", **game(1, "anna", "ben")["data"])
    state = {"ladder": ladder, "player": "anna", "state": {column: "2000"}}
    assert enter(ratings, store, event("player.seeded", "s-1", **state), late) == []
    with_seed = points_of(ratings, store, ladder)
    assert 2000 < with_seed["anna"] < 2050
    history = json.loads(ratings("history", "anna", ladder, "--format", "json", db=store).stdout)["rows"]
    assert history[0]["before"] == "2000"
    # neither axis of time reorders it
    assert points_of(ratings, store, ladder, "--as-of", "2024-02-02") == with_seed
    withdrawn = ratings("void", "--event", "s-1", *WHY, db=store)
    assert withdrawn.exit_code == 0, withdrawn
    assert re.search(r"\nanna +20\d\d", withdrawn.stdout), withdrawn.stdout
    without = points_of(ratings, store, ladder)
    assert without["anna"] < 2000
    assert points_of(ratings, store, ladder, "--known-at", "4") == with_seed
    told = ratings("explain", "--change", "anna", ladder, "--from", "4", "--format", "json", db=store)
    causes = json.loads(told.stdout)["causes"] if told.exit_code == 0 else told
    assert [one["cause"] for one in causes] == ["taken back"], causes
    assert Fraction(causes[0]["amount"]) == without["anna"] - with_seed["anna"]
    # the wrong seed is replaced, and that is taken back
    other = ratings("seed", ladder, "anna", f"{column}=1800", *WHY, db=store)
    assert re.search(r"\nanna +", other.stdout), other
    assert with_seed["anna"] > points_of(ratings, store, ladder)["anna"] > 1800
    assert ratings("undo", "--yes", "--by", "tester", db=store).exit_code == 0
    assert points_of(ratings, store, ladder) == without
    # who is to have points that they begin with already needs none
    assert ratings("seed", ladder, "zoe", f"{column}=1700", *WHY, db=store).exit_code == 0
    assert "zoe" not in points_of(ratings, store, ladder)
    assert code(ratings("adjust", ladder, "zoe", "--to", "1700", *WHY, db=store)) == "nothing-to-correct"
    assert ratings("adjust", ladder, "zoe", "--to", "1750", *WHY, db=store).exit_code == 0
    assert points_of(ratings, store, ladder)["zoe"] == 1750
    assert ratings("verify", db=store).exit_code == 0
    assert ratings("rebuild", "--check", db=store).exit_code in (0, 1)
