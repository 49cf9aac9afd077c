"""Random histories of all writing commands: `undo` restores the ladders before a command, and undoing the undo restores
those after it.

The ladders are compared by their digests, after each command, after `undo`, and after `undo` of that.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from correction_helpers import Ratings, read_position
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7_200)]

STEP_COUNTS: Counter[str] = Counter()
STEPS = {
    "import", "import changes", "import several", "record", "correct", "correct date", "correct file", "void",
    "void file",
    "void batch", "void event", "reinstate", "adjust", "adjust file", "rename", "account", "publish", "publish rules",
    "create", "join", "schedule", "earlier", "earlier refused",
}  # fmt: skip
# allowed codes of refused undos of earlier acts
REFUSAL_CODES = {"changed-since", "still-needed", "undone-already", "never-undone", "players-met", "renamed-already",
           "rename-loop", "event-voided", "list-exists", "league-exists", "player-twice"}  # fmt: skip
PLAYERS = [f"p{number}" for number in range(8)]
RULES = """
id = "{name}"
version = "{version}"
rule = "{rule}"
effective_from = {since}
[scope]
game = ["{game}"]
[partition]
by = [{by}]
[params]
{params}
"""
SETTINGS = settings(deadline=None, suppress_health_check=list(HealthCheck), database=None, report_multiple_bugs=False)


def read_digests(ratings: Ratings, db: str) -> dict[str, str]:
    """Return the digest of each ladder that has rows."""
    result = ratings("export", "standings", db=db)
    assert result.exit_code == 0, result
    ladders = map(json.loads, result.stdout.splitlines())
    return {ladder["ladder"]: ladder["digest"] for ladder in ladders if ladder.get("rows")}


class History:
    """A ledger that grows by random commands of one author."""

    def __init__(self, ratings: Ratings, db: str, folder: Path, rng: Random) -> None:
        self.ratings, self.db, self.folder, self.random = ratings, db, folder, rng
        self.games: list[str] = []
        self.positions: list[int] = []
        self.files: list[str] = []
        self.version_number = 0
        self.league_number = 0
        self.actions: dict[str, Callable[[], Any]] = {
            "import": self.import_file, "import changes": self.import_changes, "import several": self.import_several,
            "record": self.record, "correct": self.correct, "correct date": self.correct_date,
            "correct file": self.correct_file, "void": self.void, "void file": self.void_file,
            "void batch": self.void_batch, "void event": self.void_event, "reinstate": self.reinstate,
            "adjust": self.adjust, "adjust file": self.adjust_file, "rename": self.rename, "account": self.account,
            "publish": self.publish, "publish rules": self.publish_rules, "create": self.create, "join": self.join,
            "schedule": self.schedule,
        }  # fmt: skip
        assert ratings("init", "--no-rules", db=db).exit_code == 0
        for name, game, by in (("duels", "catan", ""), ("league", "go", '"league"')):
            params = "start = 1000\nk_total = 32\nscale = 400"
            text = RULES.format(
                name=name, version="1", rule="pairwise-elo/1", since="1900-01-01", game=game, by=by, params=params
            )
            self.write_file("rules.toml", text)
            result = ratings("rules", "publish", folder / "rules.toml", db=db)
            assert result.exit_code == 0, result

    def write_file(self, name: str, text: str) -> Path:
        """Write a file with this text and return its path."""
        (self.folder / name).write_text(text, encoding="utf-8")
        return self.folder / name

    def run(self, *arguments: object, **options: Any) -> bool:
        """Run a command and return whether it recorded anything."""
        before = read_position(self.ratings, self.db)
        result = self.ratings(*arguments, "--by", "mira", db=self.db, **options)
        assert result.exit_code in (0, 1), result
        after = read_position(self.ratings, self.db)
        if after > before:
            self.positions.append(self.random.randint(before + 1, after))
        return after > before

    def name_new_game(self) -> str:
        self.games.append(f"g{len(self.games)}")
        return self.games[-1]

    def choose_day(self) -> str:
        return f"2024-01-{self.random.randint(1, 28):02d}"

    def choose_players(self) -> list[str]:
        return self.random.sample(PLAYERS, self.random.randint(2, 4))

    def choose_game(self) -> str:
        return self.random.choice(self.games or ["none"])

    def build_table(self, games: list[str]) -> str:
        rows = [",".join([game, f"{self.choose_day()}T12:00:00Z", "catan", *self.choose_players()]) for game in games]
        return "game_id,occurred_at,game,1st,2nd,3rd,4th\n" + "".join(
            row + "," * (6 - row.count(",")) + "\n" for row in rows
        )

    def import_file(self) -> bool:
        name = f"night-{len(self.files)}.csv"
        self.files.append(name)
        games = [self.name_new_game() for _ in range(self.random.randint(1, 3))]
        return self.run("import", self.write_file(name, self.build_table(games)), "--new-names", "accept")

    def import_several(self) -> bool:
        first, second = (
            self.write_file(f"{name}.csv", self.build_table([self.name_new_game()])) for name in ("one", "other")
        )
        return self.run("import", first, second, "--new-names", "accept")

    def import_changes(self) -> bool:
        old_game, new_game = self.choose_game(), self.name_new_game()

        def build_event(kind: str, data: dict[str, Any]) -> str:
            return json.dumps({"type": kind, "occurred_at": f"{self.choose_day()}T12:00:00Z", "data": data}) + "\n"

        def build_participants(names: list[str]) -> list[dict[str, Any]]:
            return [{"player": name, "place": place} for place, name in enumerate(names, 1)]

        lines = [
            build_event(
                "game.recorded",
                {"game_id": new_game, "game": "catan", "participants": build_participants(self.choose_players())},
            ),
            build_event(
                "game.corrected",
                {
                    "game_id": new_game,
                    "reason": "r",
                    "game": {
                        "game_id": new_game,
                        "game": "catan",
                        "participants": build_participants(self.choose_players()),
                    },
                },
            ),
            build_event(
                "game.corrected",
                {
                    "game_id": old_game,
                    "reason": "r",
                    "game": {
                        "game_id": old_game,
                        "game": "catan",
                        "participants": build_participants(self.choose_players()),
                        "occurred_at": f"{self.choose_day()}T12:00:00Z",
                    },
                },
            ),
            build_event("game.voided", {"game_id": old_game, "reason": "r"}),
            build_event("game.reinstated", {"game_id": old_game, "reason": "r"}),
            build_event("points.adjusted", {"ladder": "duels", "player": PLAYERS[0], "points": "5", "reason": "r"}),
            build_event("player.registered", {"player": PLAYERS[1], "account": "free"}),
        ]
        chosen = lines[:1] + [line for line in lines[1:] if self.random.random() < 0.6]
        return self.run("import", "-", "--keep-going", input="".join(chosen))

    def record(self) -> bool:
        return self.run(
            "record", "--game", "catan", "--game-id", self.name_new_game(), "--at", self.choose_day(), "--zone", "UTC",
            *self.choose_players(), "--new-names", "accept",
        )  # fmt: skip

    def correct(self) -> bool:
        return self.run("correct", self.choose_game(), *self.choose_players(), "--reason", "r", "--new-names", "accept")

    def correct_date(self) -> bool:
        at = f"{self.choose_day()}T{self.random.randint(10, 12)}:00:00Z"
        return self.run("correct", self.choose_game(), "--at", at, "--reason", "r")

    def correct_file(self) -> bool:
        text = self.build_table(self.random.sample(self.games, min(3, len(self.games))))
        return self.run("correct", "--file", self.write_file("c.csv", text), "--reason", "r", "--new-names", "accept")

    def void(self) -> bool:
        return self.run("void", self.choose_game(), "--reason", "r")

    def void_file(self) -> bool:
        names = self.random.sample(self.games, min(3, len(self.games)))
        return self.run("void", "--file", self.write_file("v.txt", "\n".join([*names, ""])), "--reason", "r")

    def void_batch(self) -> bool:
        return self.run("void", "--batch", self.random.choice(self.files or ["none"]), "--reason", "r")

    def void_event(self) -> bool:
        return self.run("void", "--event", self.random.choice(self.positions or [1]), "--reason", "r")

    def reinstate(self) -> bool:
        return self.run("reinstate", self.choose_game(), "--reason", "r")

    def adjust(self) -> bool:
        player, points = self.random.choice(PLAYERS), self.random.choice(("7", "-3"))
        return self.run("adjust", "duels", player, points, "--reason", "r", "--at", self.choose_day(), "--zone", "UTC")

    def adjust_file(self) -> bool:
        text = "player,points\n" + "".join(f"{name},{self.random.randint(1, 9)}\n" for name in self.choose_players())
        return self.run("adjust", "duels", "--file", self.write_file("a.csv", text), "--reason", "r")

    def rename(self) -> bool:
        return self.run("player", "rename", self.random.choice(PLAYERS), self.random.choice([*PLAYERS, "q0", "q1"]))

    def account(self) -> bool:
        return self.run("player", "account", self.random.choice(PLAYERS), self.random.choice(("free", "premium")))

    def publish(self) -> bool:
        return self.run("publish", "duels")

    def publish_rules(self) -> bool:
        self.version_number += 1
        text = RULES.format(
            name="duels",
            version=f"v{self.version_number}",
            rule="pairwise-elo/1",
            since=self.choose_day(),
            game="catan",
            by="",
            params=f"start = 1000\nk_total = {self.random.choice((16, 64))}\nscale = 400",
        )
        return self.run("rules", "publish", self.write_file("new.toml", text))

    def create(self) -> bool:
        self.league_number += 1
        return self.run("league", "create", f"l{self.league_number}", "--game", "go", "--players-per-game", "2")

    def join(self) -> bool:
        """Fill some seats of a league."""
        self.create()
        results = [
            self.run("league", "join", f"l{self.league_number}", name) for name in PLAYERS[: self.random.randint(1, 8)]
        ]
        return results[-1]

    def schedule(self) -> bool:
        """Fill all seats of a league; the last join draws the schedule."""
        self.create()
        return [self.run("league", "join", f"l{self.league_number}", name) for name in PLAYERS][-1]


def undo_act(history: History, *arguments: object) -> tuple[int, list[str]]:
    """Undo the last act, or the given one, and return the exit code and the codes of rejections."""
    result = history.ratings("undo", *arguments, "--yes", "--by", "mira", "--format", "json", db=history.db)
    output = json.loads(result.stdout)
    return result.exit_code, [rejection["code"] for rejection in output["rejected"]]


def check_step(history: History, step: str) -> None:
    """Run a step, undo it, and undo the undo; assert the digests after each."""
    before = read_digests(history.ratings, history.db)
    if not history.actions[step]():
        return
    STEP_COUNTS[step] += 1
    after = read_digests(history.ratings, history.db)
    if step == "join" or step == "schedule":  # several commands, of which the last is taken back
        before = after
    assert undo_act(history) == (0, []), step
    assert read_digests(history.ratings, history.db) == before, step
    assert undo_act(history) == (0, []), step
    assert read_digests(history.ratings, history.db) == after, step
    if history.random.random() < 0.3:
        assert undo_act(history) == (0, []), step


def check_earlier(history: History) -> None:
    """Undo an earlier act, if that is possible, and undo the undo."""
    if not history.positions:
        return
    before, head = read_digests(history.ratings, history.db), read_position(history.ratings, history.db)
    code, rejection_codes = undo_act(history, history.random.choice(history.positions))
    if code:
        STEP_COUNTS["earlier refused"] += 1
        assert rejection_codes
        assert {*rejection_codes} <= REFUSAL_CODES, rejection_codes
        assert read_position(history.ratings, history.db) == head
        return
    STEP_COUNTS["earlier"] += 1
    assert undo_act(history) == (0, [])
    assert read_digests(history.ratings, history.db) == before


@pytest.fixture
def create_store_url(store_kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], str]]:
    """Yield a function that returns the URL of another empty store, of each kind in turn."""
    if store_kind == "sqlite":
        numbers = iter(range(100_000))
        yield lambda: f"sqlite:///{tmp_path / f'{next(numbers)}.db'}"
        return
    from contextlib import ExitStack

    from stores import create_postgres_database

    server = request.getfixturevalue("server")
    with ExitStack() as stack:
        yield lambda: stack.enter_context(create_postgres_database(server))


def test_undo_restores_every_ladder(
    create_store_url: Callable[[], str],
    tmp_path: Path,
    ratings: Ratings,
    at_length: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After each command of a random history, `undo` restores the ladders, and undoing the undo brings the change back.

    An earlier act is undone as well, or refused with a documented code and without recording anything.
    """
    steps = sorted(STEPS - {"earlier refused"})
    monkeypatch.chdir(tmp_path)  # an import of standard input writes its rejects there

    @settings(SETTINGS, max_examples=150 if at_length else 2, derandomize=not at_length, phases=[Phase.generate])
    @given(st.lists(st.sampled_from(steps), min_size=5, max_size=12), st.integers(0, 2**32))
    def check(chosen_steps: list[str], seed: int) -> None:
        history = History(ratings, create_store_url(), tmp_path, Random(seed))
        check_step(history, "import")
        for step in chosen_steps:
            if step == "earlier":
                check_earlier(history)
            else:
                check_step(history, step)
        assert ratings("verify", db=history.db).exit_code == 0

    check()
    assert not at_length or {*STEP_COUNTS} == STEPS, STEPS - {*STEP_COUNTS}
    assert len(STEP_COUNTS) > 3
