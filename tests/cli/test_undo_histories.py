"""Random histories of all writing commands: what a command changed, undo takes back, and taking that back restores it.

What the ladders say is compared by their digests, after each command, after `undo`, and after `undo` of that.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from correction_helpers import Ratings, position
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7_200)]

DONE: Counter[str] = Counter()
WANTED = {
    "import", "import changes", "import several", "record", "correct", "correct date", "correct file", "void",
    "void file",
    "void batch", "void event", "reinstate", "adjust", "adjust file", "rename", "account", "publish", "publish rules",
    "create", "join", "schedule", "earlier", "earlier refused",
}  # fmt: skip
# why something that is not the last act may stay
REFUSED = {"changed-since", "still-needed", "undone-already", "never-undone", "players-met", "renamed-already",
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


def digests(ratings: Ratings, db: str) -> dict[str, str]:
    """The digest of each ladder that has rows."""
    told = ratings("export", "standings", db=db)
    assert told.exit_code == 0, told
    found = map(json.loads, told.stdout.splitlines())
    return {one["ladder"]: one["digest"] for one in found if one.get("rows")}


class History:
    """A ledger that grows by random commands, all by one name."""

    def __init__(self, ratings: Ratings, db: str, folder: Path, chance: Random) -> None:
        self.ratings, self.db, self.folder, self.chance = ratings, db, folder, chance
        self.games: list[str] = []
        self.events: list[int] = []
        self.files: list[str] = []
        self.last = 0
        self.league = 0
        self.did: dict[str, Callable[[], Any]] = {
            "import": self.import_, "import changes": self.import_changes, "import several": self.import_several,
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
            text = RULES.format(name=name, version="1", rule="pairwise-elo/1", since="1900-01-01", game=game, by=by,
                                params=params)  # fmt: skip
            self.file("rules.toml", text)
            done = ratings("rules", "publish", folder / "rules.toml", db=db)
            assert done.exit_code == 0, done

    def file(self, name: str, text: str) -> Path:
        """A file with this text."""
        (self.folder / name).write_text(text, encoding="utf-8")
        return self.folder / name

    def run(self, *arguments: object, **given: Any) -> bool:
        """Whether a command did something."""
        before = position(self.ratings, self.db)
        told = self.ratings(*arguments, "--by", "mira", db=self.db, **given)
        assert told.exit_code in (0, 1), told
        after = position(self.ratings, self.db)
        if after > before:
            self.events.append(self.chance.randint(before + 1, after))
        return after > before

    def new_game(self) -> str:
        self.games.append(f"g{len(self.games)}")
        return self.games[-1]

    def day(self) -> str:
        return f"2024-01-{self.chance.randint(1, 28):02d}"

    def some(self) -> list[str]:
        return self.chance.sample(PLAYERS, self.chance.randint(2, 4))

    def game(self) -> str:
        return self.chance.choice(self.games or ["none"])

    def table(self, games: list[str]) -> str:
        rows = [",".join([game, f"{self.day()}T12:00:00Z", "catan", *self.some()]) for game in games]
        return "game_id,occurred_at,game,1st,2nd,3rd,4th\n" + "".join(
            row + "," * (6 - row.count(",")) + "\n" for row in rows
        )

    def import_(self) -> bool:
        name = f"night-{len(self.files)}.csv"
        self.files.append(name)
        games = [self.new_game() for _ in range(self.chance.randint(1, 3))]
        return self.run("import", self.file(name, self.table(games)), "--new-names", "accept")

    def import_several(self) -> bool:
        one, other = (self.file(f"{name}.csv", self.table([self.new_game()])) for name in ("one", "other"))
        return self.run("import", one, other, "--new-names", "accept")

    def import_changes(self) -> bool:
        name, other = self.game(), self.new_game()

        def event(kind: str, data: dict[str, Any]) -> str:
            return json.dumps({"type": kind, "occurred_at": f"{self.day()}T12:00:00Z", "data": data}) + "\n"

        def players(names: list[str]) -> list[dict[str, Any]]:
            return [{"player": one, "place": place} for place, one in enumerate(names, 1)]

        told = [
            event("game.recorded", {"game_id": other, "game": "catan", "participants": players(self.some())}),
            event("game.corrected", {"game_id": other, "reason": "r", "game": {
                "game_id": other, "game": "catan", "participants": players(self.some())}}),
            event("game.corrected", {"game_id": name, "reason": "r", "game": {
                "game_id": name, "game": "catan", "participants": players(self.some()),
                "occurred_at": f"{self.day()}T12:00:00Z"}}),
            event("game.voided", {"game_id": name, "reason": "r"}),
            event("game.reinstated", {"game_id": name, "reason": "r"}),
            event("points.adjusted", {"ladder": "duels", "player": PLAYERS[0], "points": "5", "reason": "r"}),
            event("player.registered", {"player": PLAYERS[1], "account": "free"}),
        ]  # fmt: skip
        chosen = told[:1] + [line for line in told[1:] if self.chance.random() < 0.6]
        return self.run("import", "-", "--keep-going", input="".join(chosen))

    def record(self) -> bool:
        return self.run(
            "record", "--game", "catan", "--game-id", self.new_game(), "--at", self.day(), "--zone", "UTC",
            *self.some(), "--new-names", "accept",
        )  # fmt: skip

    def correct(self) -> bool:
        return self.run("correct", self.game(), *self.some(), "--reason", "r", "--new-names", "accept")

    def correct_date(self) -> bool:
        at = f"{self.day()}T{self.chance.randint(10, 12)}:00:00Z"
        return self.run("correct", self.game(), "--at", at, "--reason", "r")

    def correct_file(self) -> bool:
        text = self.table(self.chance.sample(self.games, min(3, len(self.games))))
        return self.run("correct", "--file", self.file("c.csv", text), "--reason", "r", "--new-names", "accept")

    def void(self) -> bool:
        return self.run("void", self.game(), "--reason", "r")

    def void_file(self) -> bool:
        names = self.chance.sample(self.games, min(3, len(self.games)))
        return self.run("void", "--file", self.file("v.txt", "\n".join([*names, ""])), "--reason", "r")

    def void_batch(self) -> bool:
        return self.run("void", "--batch", self.chance.choice(self.files or ["none"]), "--reason", "r")

    def void_event(self) -> bool:
        return self.run("void", "--event", self.chance.choice(self.events or [1]), "--reason", "r")

    def reinstate(self) -> bool:
        return self.run("reinstate", self.game(), "--reason", "r")

    def adjust(self) -> bool:
        who, points = self.chance.choice(PLAYERS), self.chance.choice(("7", "-3"))
        return self.run("adjust", "duels", who, points, "--reason", "r", "--at", self.day(), "--zone", "UTC")

    def adjust_file(self) -> bool:
        text = "player,points\n" + "".join(f"{name},{self.chance.randint(1, 9)}\n" for name in self.some())
        return self.run("adjust", "duels", "--file", self.file("a.csv", text), "--reason", "r")

    def rename(self) -> bool:
        return self.run("player", "rename", self.chance.choice(PLAYERS), self.chance.choice([*PLAYERS, "q0", "q1"]))

    def account(self) -> bool:
        return self.run("player", "account", self.chance.choice(PLAYERS), self.chance.choice(("free", "premium")))

    def publish(self) -> bool:
        return self.run("publish", "duels")

    def publish_rules(self) -> bool:
        self.last += 1
        text = RULES.format(
            name="duels", version=f"v{self.last}", rule="pairwise-elo/1", since=self.day(), game="catan", by="",
            params=f"start = 1000\nk_total = {self.chance.choice((16, 64))}\nscale = 400",
        )  # fmt: skip
        return self.run("rules", "publish", self.file("new.toml", text))

    def create(self) -> bool:
        self.league += 1
        return self.run("league", "create", f"l{self.league}", "--game", "go", "--players-per-game", "2")

    def join(self) -> bool:
        """Some seats of a league are taken."""
        self.create()
        done = [self.run("league", "join", f"l{self.league}", name) for name in PLAYERS[: self.chance.randint(1, 8)]]
        return done[-1]

    def schedule(self) -> bool:
        """All seats of a league are taken; the last who joins draws the schedule."""
        self.create()
        return [self.run("league", "join", f"l{self.league}", name) for name in PLAYERS][-1]


def undo(history: History, *arguments: object) -> tuple[int, list[str]]:
    """The exit code of taking the last act back, or another one, and the codes of refusals."""
    told = history.ratings("undo", *arguments, "--yes", "--by", "mira", "--format", "json", db=history.db)
    found = json.loads(told.stdout)
    return told.exit_code, [one["code"] for one in found["rejected"]]


def check_step(history: History, step: str) -> None:
    """Do something; take it back, and take that back."""
    before = digests(history.ratings, history.db)
    if not history.did[step]():
        return
    DONE[step] += 1
    after = digests(history.ratings, history.db)
    if step == "join" or step == "schedule":  # several commands, of which the last is taken back
        before = after
    assert undo(history) == (0, []), step
    assert digests(history.ratings, history.db) == before, step
    assert undo(history) == (0, []), step
    assert digests(history.ratings, history.db) == after, step
    if history.chance.random() < 0.3:
        assert undo(history) == (0, []), step


def check_earlier(history: History) -> None:
    """Take back what was done at some time, if that can be, and take that back."""
    if not history.events:
        return
    before, head = digests(history.ratings, history.db), position(history.ratings, history.db)
    code, refused = undo(history, history.chance.choice(history.events))
    if code:
        DONE["earlier refused"] += 1
        assert refused
        assert {*refused} <= REFUSED, refused
        assert position(history.ratings, history.db) == head
        return
    DONE["earlier"] += 1
    assert undo(history) == (0, [])
    assert digests(history.ratings, history.db) == before


@pytest.fixture
def ledgers(store_kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], str]]:
    """A function that gives the URL of another empty ledger, of each kind of store in turn."""
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
    ledgers: Callable[[], str], tmp_path: Path, ratings: Ratings, at_length: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After each command of a random history undo restores the ladders, and undone itself it changes them again.

    Any earlier act is taken back as well, or refused with a reason, and then nothing is recorded.
    """
    steps = sorted(WANTED - {"earlier refused"})
    monkeypatch.chdir(tmp_path)  # an import of standard input writes its rejects there

    @settings(SETTINGS, max_examples=150 if at_length else 2, derandomize=not at_length, phases=[Phase.generate])
    @given(st.lists(st.sampled_from(steps), min_size=5, max_size=12), st.integers(0, 2**32))
    def check(drawn: list[str], seed: int) -> None:
        history = History(ratings, ledgers(), tmp_path, Random(seed))
        check_step(history, "import")
        for step in drawn:
            if step == "earlier":
                check_earlier(history)
            else:
                check_step(history, step)
        assert ratings("verify", db=history.db).exit_code == 0

    check()
    assert not at_length or {*DONE} == WANTED, WANTED - {*DONE}
    assert len(DONE) > 3
