"""Seeds: recorded one by one and from a file, refused when they come too late or contradict each other."""

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
    """Return the URL of a ledger without games, in each kind of store in turn."""
    assert ratings("init", "--for", "chess", "--zone", "UTC", db=store).exit_code == 0
    return store


@pytest.fixture
def one_db(ratings: Ratings, tmp_path: Path) -> str:
    """Return the URL of a ledger without games in a SQLite file."""
    url = f"sqlite:///{tmp_path / 'ratings.db'}"
    assert ratings("init", "--for", "chess", "--zone", "UTC", db=url).exit_code == 0
    return url


def record_seed(ratings: Ratings, db: str, *arguments: object) -> Any:
    return ratings("seed", LADDER, *arguments, *WHY, db=db)


def find_code(result: Any) -> str:
    """Return the code with which a command was refused, or an empty text. Notes before the code are skipped."""
    lines = [line for line in result.stderr.splitlines() if not line.startswith("note: ")]
    match = re.match(r"(?:[^:]*:\d+: )?([a-z-]+): ", lines[0]) if result.exit_code == 1 else None
    return match[1] if match else ""


def build_game(number: int, *players: str, at: str = AT, **labels: Any) -> Event:
    participants = [{"player": player, "place": place} for place, player in enumerate(players, 1)]
    data = {"game_id": f"g-{number}", "game": "chess", "participants": participants, **labels}
    return {"type": "game.recorded", "occurred_at": at, "data": data}


def build_event(name: str, event_id: str = "", **data: Any) -> Event:
    return {"type": name, "occurred_at": AT, "data": data} | ({"id": event_id} if event_id else {})


def build_seed(player: str, points: str, event_id: str = "", **data: Any) -> Event:
    return build_event("player.seeded", event_id, ladder=LADDER, player=player, state={"points": points}, **data)


def import_events(ratings: Ratings, db: str, *events: Event, options: tuple[str, ...] = ()) -> list[tuple[int, str]]:
    """Import events and return the lines and codes of the rejections."""
    text = "\n".join(map(json.dumps, events))
    result = ratings("import", "-", "--format", "json", "--new-names", "accept", *options, db=db, input=text)
    return [(rejection["line"], rejection["code"]) for rejection in json.loads(result.stdout)["rejected"]]


def list_seeds(ratings: Ratings, db: str) -> list[Any]:
    seeds: list[Any] = json.loads(ratings("log", "--type", "player.seeded", "--format", "json", db=db).stdout)["rows"]
    return seeds


def test_seed_is_recorded_logged_and_undone(ratings: Ratings, db: str) -> None:
    """`seed` records a seed, the log describes it in words, and `undo` withdraws it."""
    result = record_seed(ratings, db, "anna", "points=+1650.50", "--games", "12")
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "player.seeded is recorded at position 3."), result
    data = {"ladder": LADDER, "player": "anna", "state": {"points": "1650.5"}, "games": 12}
    assert list_seeds(ratings, db)[0]["data"] == data | {"reason": "from the old list"}
    stdout = ratings("log", "--type", "player.seeded", db=db).stdout
    assert "anna starts on elo-chess/all with points 1650.5, after 12 games elsewhere: from the old list" in stdout
    assert find_code(record_seed(ratings, db, "anna", "points=1650.5", "--games", "12")) == "nothing-to-correct"
    assert find_code(record_seed(ratings, db, "anna", "points=1650.5")) == "seed-exists"
    undo_result = ratings("undo", "--yes", "--by", "tester", db=db)
    assert undo_result.exit_code == 0, undo_result
    assert "the seed at position 3" in ratings("log", "--type", "event.voided", db=db).stdout
    assert record_seed(ratings, db, "anna", "points=1700").exit_code == 0
    assert ratings("verify", db=db).exit_code == 0


def test_file_of_seeds_is_recorded_as_one_command(ratings: Ratings, db: str, tmp_path: Path) -> None:
    """A file of seeds is recorded as a whole or not at all; seeds that exist already are skipped."""
    file = tmp_path / "list.csv"
    file.write_text("Player;Points;Games;Reason\nanna;1500,5;;\nben;1200;7;a friend\n", encoding="utf-8")
    preview = record_seed(ratings, db, "--file", file, "--dry-run")
    assert preview.stdout.startswith("Nothing was recorded; this is what player.seeded would do."), preview
    result = record_seed(ratings, db, "--file", file)
    assert result.stdout.splitlines()[0] == "2 player.seeded events are recorded, the last at position 4."
    assert [
        (row["data"]["state"], row["data"].get("games"), row["data"]["reason"]) for row in list_seeds(ratings, db)
    ] == [({"points": "1500.5"}, None, "from the old list"), ({"points": "1200"}, 7, "a friend")]
    assert find_code(record_seed(ratings, db, "--file", file)) == "nothing-to-correct"
    file.write_text("player,points\nanna,1500.5\ncleo,900\n", encoding="utf-8")
    assert record_seed(ratings, db, "--file", file).exit_code == 0
    assert [row["data"]["player"] for row in list_seeds(ratings, db)] == ["anna", "ben", "cleo"]
    file.write_text("player,points\ndora,900\nben,900\n", encoding="utf-8")
    assert find_code(record_seed(ratings, db, "--file", file)) == "seed-exists"
    assert len(list_seeds(ratings, db)) == 3


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
def test_bad_seed_files_are_refused(text: str, ratings: Ratings, one_db: str, tmp_path: Path) -> None:
    """A bad file of seeds is refused with a code, and none of it is recorded."""
    file = tmp_path / "list.csv"
    file.write_text(text, encoding="utf-8")
    result = record_seed(ratings, one_db, "--file", file)
    assert find_code(result) == FILES[text], result
    assert "list.csv" in result.stderr
    assert list_seeds(ratings, one_db) == []


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
    "a negative number of games": (("anna", "points=5", "--games", "-1"), "out-of-range"),
    "a bad name": (("an/na", "points=5"), "bad-identifier"),
}


@pytest.mark.parametrize("what", ARGUMENTS)
def test_bad_seeds_are_refused(what: str, ratings: Ratings, one_db: str) -> None:
    """A seed that does not fit the rule of its ladder is refused with a code."""
    arguments, expected_code = ARGUMENTS[what]
    assert find_code(record_seed(ratings, one_db, *arguments)) == expected_code
    assert list_seeds(ratings, one_db) == []


def test_seeds_need_a_ladder_with_running_points(ratings: Ratings, one_db: str) -> None:
    """A seed for an unknown ladder or for the list of a month is refused; one for running points is not."""
    assert ratings("rules", "publish", "--shipped", db=one_db).exit_code == 0
    state = {"player": "anna", "state": {"points": "5"}}
    ladders = ("elo-go/all", "galactic-points/x", "catan-monthly/b/basic/2024-01", "galactic-points")
    events = [build_event("player.seeded", ladder=ladder, **state) for ladder in ladders]
    assert import_events(ratings, one_db, *events) == [
        (1, "unknown-ladder"),
        (2, "unknown-ladder"),
        (3, "ladder-not-adjustable"),
    ]


@pytest.mark.parametrize("last", ["voided", "corrected"])
def test_seed_after_a_game_that_no_longer_counts_verifies(
    last: str, ratings: Ratings, one_db: str, tmp_path: Path
) -> None:
    """A seed after a corrected game that no longer counts for the player is valid in `verify` and in a restore."""
    other = build_game(1, "ben", "cleo")["data"]
    correction = build_event("game.corrected", game_id="g-1", reason="r", game=build_game(1, "ben", "anna")["data"])
    second = (
        build_event("game.voided", game_id="g-1", reason="r")
        if last == "voided"
        else build_event("game.corrected", game_id="g-1", reason="r", game=other)
    )
    assert import_events(ratings, one_db, build_game(1, "anna", "ben"), options=("--new-names", "accept")) == []
    assert import_events(ratings, one_db, correction) == []
    assert import_events(ratings, one_db, second, options=("--new-names", "accept")) == []
    assert record_seed(ratings, one_db, "anna", "points=1500").exit_code == 0
    assert ratings("verify", db=one_db).exit_code == 0
    backup, restored = tmp_path / "all.jsonl", f"sqlite:///{tmp_path / 'restored.db'}"
    assert ratings("export", "events", "-o", backup, db=one_db).exit_code == 0
    assert ratings("init", "--no-rules", db=restored).exit_code == 0
    result = ratings("import", "--restore", backup, db=restored)
    assert result.exit_code == 0, result


def test_seed_after_first_counted_game_is_refused(ratings: Ratings, db: str) -> None:
    """A seed after a counted game is refused, regardless of its date, unless it replaces a withdrawn seed.

    Games that do not count on the ladder, voided games and other players' games do not matter; the events of an import
    apply in their order.
    """
    unrated = build_game(4, "dora", "emil", rated=False), build_game(5, "dora", "emil", aborted=True)
    assert import_events(ratings, db, *unrated, build_seed("dora", "1")) == []
    uncounted = [build_game(1, "anna", "ben", rated=False), build_game(2, "anna", "ben", at="2023-01-01T12:00:00Z")]
    assert import_events(ratings, db, *uncounted, build_event("game.voided", game_id="g-2", reason="r")) == []
    early = build_seed("anna", "1", "late") | {"occurred_at": "1999-01-01T12:00:00Z"}
    assert import_events(ratings, db, build_game(3, "anna", "cleo"), early, options=("--dry-run",)) == [
        (2, "seed-late")
    ]
    assert import_events(ratings, db, build_seed("anna", "1650", "s-1"), build_game(3, "anna", "cleo")) == []
    assert import_events(ratings, db, build_seed("cleo", "1"), build_seed("ben", "1", "s-2")) == [(1, "seed-late")]
    assert import_events(ratings, db, build_seed("ben", "1", "s-2")) == []
    # a withdrawn seed can be replaced
    assert (
        import_events(
            ratings, db, build_event("event.voided", "v-1", id="s-1", reason="r"), build_seed("anna", "1660", "s-3")
        )
        == []
    )
    second_void = build_event("event.voided", "v-2", id="v-1", reason="r")
    assert import_events(ratings, db, second_void) == [(1, "seed-exists")]
    assert import_events(ratings, db, build_event("event.voided", "v-3", id="s-3", reason="r"), second_void) == []
    # cleo's only counted game is voided, so she can be seeded
    assert import_events(ratings, db, build_event("game.voided", game_id="g-3", reason="r")) == []
    assert import_events(ratings, db, build_seed("cleo", "1", "s-4")) == []
    assert ratings("verify", db=db).exit_code == 0


def test_renamed_ids_need_equal_seeds(ratings: Ratings, db: str) -> None:
    """Ids with different seeds cannot become one person; ids with equal seeds can, and can be separated again."""
    assert (
        import_events(
            ratings,
            db,
            build_seed("anna", "1650", "s-1"),
            build_seed("anne", "1651", "s-2"),
            build_seed("ann", "1650", "s-3", games=0),
        )
        == []
    )
    rename = build_event("player.renamed", "r-1", player="anna", new_player="anne")
    assert import_events(ratings, db, rename) == [(1, "seeds-differ")]
    assert import_events(ratings, db, build_event("player.renamed", "r-2", player="anna", new_player="ann")) == []
    assert import_events(ratings, db, build_seed("ann", "1700")) == [(1, "seed-exists")]
    # through a chain of renames
    assert import_events(ratings, db, build_event("player.renamed", player="anne", new_player="anna")) == [
        (1, "seeds-differ")
    ]
    assert (
        import_events(
            ratings,
            db,
            build_event("event.voided", id="r-2", reason="r"),
            build_event("event.voided", id="s-2", reason="r"),
            rename,
        )
        == []
    )
    # a withdrawn seed can return only if the person has no other seed
    void = next(row["id"] for row in list_events(ratings, db) if row["data"].get("id") == "s-2")
    assert import_events(ratings, db, build_event("event.voided", id=void, reason="r")) == [(1, "seed-exists")]
    assert ratings("verify", db=db).exit_code == 0


def list_events(ratings: Ratings, db: str) -> list[Any]:
    events: list[Any] = json.loads(ratings("log", "--limit", "1000", "--format", "json", db=db).stdout)["rows"]
    return events


def test_ruleset_with_seeds_cannot_be_voided(ratings: Ratings, one_db: str) -> None:
    """The only version of a ruleset cannot be voided while its ladders have seeds."""
    assert import_events(ratings, one_db, build_seed("anna", "1", "s-1"), build_seed("ben", "1")) == []
    (ruleset,) = (row["id"] for row in list_events(ratings, one_db) if row["type"] == "ruleset.published")
    result = ratings("void", "--event", ruleset, *WHY, db=one_db)
    assert find_code(result) == "still-needed"
    assert "2 seeds; first void those" in result.stderr
    assert import_events(ratings, one_db, build_event("event.voided", id="s-1", reason="r")) == []
    assert "1 seed; first void that" in ratings("void", "--event", ruleset, *WHY, db=one_db).stderr


class SeedOracle:
    """An oracle of the rejections, which derives them from the whole list of events each time."""

    def __init__(self) -> None:
        self.log: list[Event] = []

    def list_live_events(self) -> list[Event]:
        withdrawn: set[str] = set()
        for event in self.log:
            if event["type"] == "event.voided":
                target = event
                while target["type"] == "event.voided":
                    target = next(voided for voided in self.log if voided.get("id") == target["data"]["id"])
                withdrawn ^= {target["id"]}
        return [event for event in self.log if event.get("id") not in withdrawn]

    def find_person(self, player: str) -> str:
        renames = (event["data"] for event in self.list_live_events() if event["type"] == "player.renamed")
        names = {data["player"]: data["new_player"] for data in renames}
        while player in names:
            player = names[player]
        return player

    def list_seeds(self, player: str, live: bool = True) -> list[tuple[Any, Any]]:
        """Return the seeds of a person that are in force, or the withdrawn ones."""
        live_events = self.list_live_events()
        return [
            (event["data"]["state"], event["data"].get("games", 0))
            for event in self.log
            if event["type"] == "player.seeded"
            and self.find_person(event["data"]["player"]) == self.find_person(player)
            and (event in live_events) == live
        ]

    def find_code(self, new: Event) -> str | None:
        data = new["data"]
        if new["type"] == "player.renamed":
            seeds = self.list_seeds(data["player"])[:1] + self.list_seeds(data["new_player"])[:1]
            return "seeds-differ" if len(seeds) == 2 and seeds[0] != seeds[1] else None
        if new["type"] == "player.seeded":
            played = {
                self.find_person(participant["player"])
                for event in self.log
                if event["type"] == "game.recorded"
                for participant in event["data"]["participants"]
            }
            if self.list_seeds(data["player"]):
                return "seed-exists"
            if self.find_person(data["player"]) in played and not self.list_seeds(data["player"], live=False):
                return "seed-late"
        return None


@pytest.mark.parametrize("number", range(6))
def test_random_seed_histories_agree_with_oracle(
    number: int, ratings: Ratings, one_db: str, at_length: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events imported one by one or in groups are refused exactly as the oracle says."""
    if number > 1 and not at_length:
        pytest.skip("at length")
    monkeypatch.chdir(tmp_path)  # an import of standard input writes its rejects there
    random, oracle, players = Random(number), SeedOracle(), [f"p{n}" for n in range(9)]
    count = 0
    for _ in range(12):
        events: list[Event] = []
        expected: list[tuple[int, str]] = []
        for line in range(1, random.choice((2, 4, 7))):
            count += 1
            new = draw_event(random, count, oracle, players)
            events.append(new)
            if code := oracle.find_code(new):
                expected.append((line, code))
            else:
                oracle.log.append(new)
        assert import_events(ratings, one_db, *events, options=("--keep-going",)) == expected, events
    assert ratings("verify", db=one_db).exit_code == 0
    assert any(event["type"] == "event.voided" for event in oracle.log)


def draw_event(random: Random, count: int, oracle: SeedOracle, players: list[str]) -> Event:
    what = random.choice(("seed", "seed", "seed", "game", "rename", "void"))
    live = [seed for seed in oracle.list_live_events() if seed["type"] == "player.seeded"]
    if what == "void" and live:
        return build_event("event.voided", f"e-{count}", id=random.choice(live)["id"], reason="r")
    if what == "rename":
        player, new_player = random.sample(players, 2)
        players_by_game = [
            {*(participant["player"] for participant in event["data"]["participants"])}
            for event in oracle.log
            if event["type"] == "game.recorded"
        ]
        persons_by_game = [{oracle.find_person(name) for name in names} for names in players_by_game]
        pair = {oracle.find_person(player), oracle.find_person(new_player)}
        is_recorded = any(player in json.dumps(event["data"]) for event in oracle.log)
        if (
            oracle.find_person(player) == player
            and len(pair) == 2
            and is_recorded
            and not any(pair <= persons for persons in persons_by_game)
        ):
            return build_event("player.renamed", f"e-{count}", player=player, new_player=new_player)
    if what == "game":
        left, right = random.sample(players, 2)
        if oracle.find_person(left) != oracle.find_person(right):
            return build_game(count, left, right)
    games = {"games": random.randint(0, 1)} if random.random() < 0.3 else {}
    return build_seed(random.choice(players), str(random.randint(1, 2)), f"e-{count}", **games)


def read_points(ratings: Ratings, db: str, ladder: str, *options: str) -> dict[str, Fraction]:
    result = ratings("standings", ladder, *options, "--format", "json", db=db)
    assert result.exit_code == 0, result
    return {row["player"]: Fraction(row["points"]) for row in json.loads(result.stdout)["rows"]}


@pytest.mark.parametrize("system", ["elo", "glicko"])
def test_seed_affects_standings_history_and_causes(system: str, ratings: Ratings, store: str) -> None:
    """A seed shows in standings, history, attributions and adjustments; once it is undone, its effect is gone."""
    assert ratings("init", "--for", "chess", "--zone", "UTC", "--system", system, db=store).exit_code == 0
    ladder, column = f"{system}-chess/all", {"elo": "points", "glicko": "rating"}[system]
    game_event = build_event("game.recorded", **build_game(1, "anna", "ben")["data"])
    state = {"ladder": ladder, "player": "anna", "state": {column: "2000"}}
    assert import_events(ratings, store, build_event("player.seeded", "s-1", **state), game_event) == []
    with_seed = read_points(ratings, store, ladder)
    assert 2000 < with_seed["anna"] < 2050
    history = json.loads(ratings("history", "anna", ladder, "--format", "json", db=store).stdout)["rows"]
    assert history[0]["before"] == "2000"
    # a date in the past still includes the seed
    assert read_points(ratings, store, ladder, "--as-of", "2024-02-02") == with_seed
    void_result = ratings("void", "--event", "s-1", *WHY, db=store)
    assert void_result.exit_code == 0, void_result
    assert re.search(r"\nanna +20\d\d", void_result.stdout), void_result.stdout
    without_seed = read_points(ratings, store, ladder)
    assert without_seed["anna"] < 2000
    assert read_points(ratings, store, ladder, "--known-at", "4") == with_seed
    result = ratings("explain", "--change", "anna", ladder, "--from", "4", "--format", "json", db=store)
    causes = json.loads(result.stdout)["causes"] if result.exit_code == 0 else result
    assert [cause["cause"] for cause in causes] == ["taken back"], causes
    assert Fraction(causes[0]["amount"]) == without_seed["anna"] - with_seed["anna"]
    # another seed replaces the withdrawn one, and is undone
    second_seed = ratings("seed", ladder, "anna", f"{column}=1800", *WHY, db=store)
    assert re.search(r"\nanna +", second_seed.stdout), second_seed
    assert with_seed["anna"] > read_points(ratings, store, ladder)["anna"] > 1800
    assert ratings("undo", "--yes", "--by", "tester", db=store).exit_code == 0
    assert read_points(ratings, store, ladder) == without_seed
    # adjusting a player to the points of their seed changes nothing
    assert ratings("seed", ladder, "zoe", f"{column}=1700", *WHY, db=store).exit_code == 0
    assert "zoe" not in read_points(ratings, store, ladder)
    assert find_code(ratings("adjust", ladder, "zoe", "--to", "1700", *WHY, db=store)) == "nothing-to-correct"
    assert ratings("adjust", ladder, "zoe", "--to", "1750", *WHY, db=store).exit_code == 0
    assert read_points(ratings, store, ladder)["zoe"] == 1750
    assert ratings("verify", db=store).exit_code == 0
    result = ratings("rebuild", "--check", db=store)
    assert result.exit_code == 0, result


def test_new_version_of_a_ruleset_explains_the_change_of_a_seeded_player(
    one_db: str, ratings: Ratings, tmp_path: Path
) -> None:
    """If a later version scores the first game of a seeded player, the whole change is the player's own part."""
    assert record_seed(ratings, one_db, "anna", "points=1200").exit_code == 0
    assert import_events(ratings, one_db, build_game(1, "anna", "ben")) == []
    text = ratings("rules", "show", "elo-chess@1", "--format", "toml", db=one_db).stdout
    for old, new in {
        'version = "1"': 'version = "2"',
        "k_total = 32": "k_total = 16",
        "1900-01-01": "2000-01-01",
    }.items():
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "later.toml").write_text(text, encoding="utf-8")
    assert ratings("rules", "publish", tmp_path / "later.toml", db=one_db).exit_code == 0
    result = ratings("explain", "--change", "anna", LADDER, "--from", "4", "--format", "json", db=one_db)
    assert result.exit_code == 0, result.stderr
    explanation = json.loads(result.stdout)
    # anna, 1200 points, beats ben, 1000 points: she wins 32 and then 16 times her chance of losing
    changes = [(cause["cause"], cause["own_decimal"], cause["ripple"]) for cause in explanation["causes"]]
    assert (explanation["from"]["points_decimal"], explanation["to"]["points_decimal"]) == (
        "1207.688098",
        "1203.844049",
    )
    assert changes == [("rule change", "-3.844049", "0")]
