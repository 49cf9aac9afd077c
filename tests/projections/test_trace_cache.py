"""Traces that are cached between runs and continued: after any events, and any damage to their files, answers equal
those of a replay from the first game.
"""

import ast
import gc
import json
import logging
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any
from weakref import ref

import pytest
from builders import build_event
from cache_files import find_column_span, flip_bit, read_file, rewrite_file
from histories import build_club_game, build_ruleset_event, enter, load_ranking
from paths import NEVER, set_paths
from thresholds import set_thresholds
from time_histories import INSTANTS, LADDERS, draw_history

import ratings_ledger as rl
from ratings_ledger import Result
from ratings_ledger.ledger.events.canonical import parse_record_instant
from ratings_ledger.ledger.events.records import ZERO
from ratings_ledger.ledger.store.log import head, read_records_at
from ratings_ledger.ledger.store.opening import Ledger, open_ledger
from ratings_ledger.ledger.store.upgrading import upgrade
from ratings_ledger.projections.facts.applying import apply_event, settle_facts
from ratings_ledger.projections.facts.column_files import DamagedFile
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.queries import ladders_at, snapshot_reader
from ratings_ledger.projections.queries.game_explanations import explain_game
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.snapshot_reader import LadderCache
from ratings_ledger.projections.replay import trace as traces
from ratings_ledger.projections.replay import trace_cache
from ratings_ledger.projections.replay.rule_calls import RuleFailure
from ratings_ledger.projections.replay.streams import Stream
from ratings_ledger.projections.replay.trace import Trace
from ratings_ledger.projections.replay.trace_cache import find_trace

Ratings = Callable[..., Any]
UNBOUNDED_LADDERS = [name for name in dict.fromkeys(LADDERS) if not name.startswith(("catan-monthly", "catan-annual"))]


def make_ledger(url: str) -> Ledger:
    """Make a ledger with a random history."""
    upgrade(url)
    ledger = open_ledger(url)
    enter(ledger, draw_history(3, 60))
    return ledger


@pytest.fixture
def trace_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the cache folder of this test; the trace of even the shortest ladder is cached and continued."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    set_thresholds(monkeypatch, traced_games=1, games_per_replayed_game=0)
    return tmp_path / "caches" / "ratings-ledger"


def test_cached_ladders_stay_while_only_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading one of the cached versions again evicts none of them; a further version evicts the oldest."""
    monkeypatch.setattr(snapshot_reader, "RULES_MAX", 2)
    cache = LadderCache()
    ledger = make_ledger(str(tmp_path / "ledger.db"))
    with ledger.reading() as connection:
        position = head(connection).position
        timelines, version = cache.load(connection, position), cache.load(connection, position, "elo-catan@1")
        assert cache.load(connection, position) is timelines
        assert cache.load(connection, position, "elo-catan@1") is version
        cache.load(connection, position, "elo-catan@2")
        assert cache.load(connection, position, "elo-catan@1") is version
        assert cache.load(connection, position) is not timelines
    ledger.close()


def collect_answers(facts: Facts, ladder: str, as_of: int | None) -> Any:
    """Return every answer about a ladder, now and as of a time: standings, books, all steps, explanations."""
    ladders = Ladders(facts)
    try:
        trace = ladders.trace(ladder)
        ladders_at = ladders.at(as_of)
        answers = [ladders.standings(ladder), ladders_at.standings(ladder), ladders_at.find_start(ladder)]
        for each_ladders in (ladders, ladders_at):
            stream = each_ladders.streams(ladder.split("/")[0]).get(ladder)
            answers += [] if stream is None else [each_ladders.rank_stream(stream), to_plain_stream(stream)]
        for each_trace in (trace, ladders_at.trace(ladder)):
            names = each_trace.stream.names
            answers.append([(names[player], *to_plain_step(step)) for player, step in each_trace.every_step()])
            steps_by_player = {
                name: [*map(to_plain_step, each_trace.steps(player))] for player, name in enumerate(names)
            }
            answers.append(dict(sorted(steps_by_player.items())))
        answers += [
            to_plain_explanation(explain_game(ladders_at, ladder, "g", row)) for row in range(0, len(facts.cell), 7)
        ]
    except RuleFailure as failure:
        return failure.describe(facts)
    return answers


def to_plain_stream(stream: Stream) -> Any:
    """Return the content of a stream in plain lists."""
    return (
        stream.ladder, stream.names, [*stream.offsets], [*stream.players], [*stream.version_indices],
        [*stream.rows], [[*column] for column in stream.columns], stream.adjustments,
    )  # fmt: skip


def to_plain_step(step: Any) -> Any:
    """Return the content of a step in a plain tuple."""
    return (*step[:4], step.version and step.version.ruleset.name, step.position)


def to_plain_explanation(explanation: Result) -> Any:
    """Return an explanation in plain JSON."""
    return json.loads(json.dumps(explanation.model_dump(mode="json")))


def find_cached_trace(facts: Facts, ladder: str) -> Trace | None:
    """Return the usable cached trace of a ladder, if there is one."""
    return find_trace(facts, ladder, facts.rulesets.get(ladder.split("/")[0], []))


def damage_files(folder: Path, chance: Random) -> str:
    """Damage one of the files of the traces, or none; return the kind of damage."""
    files = sorted(path for path in folder.rglob("traces/*") if path.is_file() and path.stat().st_size)
    damage = chance.choice(("flip", "cut", "lose", "link", "swap", "nothing", "nothing", "nothing"))
    if not files or damage == "nothing":
        return "nothing"
    path = chance.choice(files)
    if damage == "flip":
        flip_bit(path, chance)
    elif damage == "cut":
        content = path.read_bytes()[: chance.randrange(path.stat().st_size)]
        path.unlink()  # a mapped file keeps its length
        path.write_bytes(content)
    elif damage == "lose":
        path.unlink()
    elif damage == "link":
        path.rename(path.with_name(f"{path.name}-elsewhere"))
        path.symlink_to(path.with_name(f"{path.name}-elsewhere"))
    else:  # a trace of another ladder under the name of this one
        content = chance.choice(files).read_bytes()
        path.unlink()
        path.write_bytes(content)
    return damage


@pytest.mark.slow
def test_cached_traces_answer_like_replays(
    tmp_path: Path, trace_folder: Path, monkeypatch: pytest.MonkeyPatch, at_length: bool, store: str, store_kind: str
) -> None:
    """As a random history grows, answers from cached or continued traces equal those of a replay from the start.

    Late games, corrections, voids, renames, adjustments and new versions come in pieces; questions are asked in
    between, also as known earlier and about proposed events; files are damaged now and then.
    """
    cases: Counter[str] = Counter()
    # the first history is in each kind of store, the others are in files
    seeds = 60 if at_length else 2 if store_kind == "sqlite" else 1
    for seed in range(seeds):
        chance, url = Random(seed), str(tmp_path / f"{seed}.db") if seed else store
        upgrade(url)
        ledger, rest, length = open_ledger(url), draw_history(seed, 90), 0
        while rest:
            size = chance.choice((1, 2, 5, 20))
            part, rest = rest[:size], rest[size:]
            enter(ledger, part)
            length += len(part)
            ladders = chance.sample(UNBOUNDED_LADDERS, 3)
            compiled = chance.random() < 0.2
            set_thresholds(monkeypatch, merge_ratio=chance.choice((0, 8)))
            check_answers(ledger, monkeypatch, chance, ladders, length, compiled, cases)
            if chance.random() < 0.3:
                check_answers(ledger, monkeypatch, chance, ladders, chance.randint(1, length), compiled, cases)
            cases[damage_files(trace_folder, chance)] += 1
    assert not [*trace_folder.rglob("*.part")]
    required_cases = {"continued", "unchanged", "replayed", "proposed", "flip", "cut", "lose", "link"}
    assert cases.keys() >= required_cases or (seeds == 1 and cases["continued"]), cases


def check_answers(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, chance: Random, ladders: list[str], position: int, compiled: bool,
    cases: Counter[str],
) -> None:  # fmt: skip
    """Compare all answers at a position, from cached facts and from facts that reached it event by event."""
    with ledger.reading() as connection:
        plain = decode(connection, position, cached=False)
        set_paths(monkeypatch, scanned=False, compiled=compiled)
        facts = decode(connection, position)
        behind = decode(connection, chance.randint(max(position - 5, 0), position), ahead=position)
        assert facts.cache is not None
        for at in range(behind.position + 1, position + 1):
            apply_event(behind, at, read_records_at(connection, [at])[at])
    settle_facts(behind)
    behind.position = position
    for ladder in ladders:
        if ladder.split("/")[0] not in plain.rulesets:
            continue
        as_of = chance.choice([None, *map(parse_record_instant, INSTANTS)])
        trace = find_cached_trace(facts, ladder)
        cases["replayed" if trace is None else "continued" if trace.earlier else "unchanged"] += 1
        cases["proposed"] += behind.has_later_events and (find_cached_trace(behind, ladder) is not None)
        answers = collect_answers(facts, ladder, as_of)
        proposed_answers = collect_answers(behind, ladder, as_of)
        set_paths(monkeypatch, scanned=False, compiled=False)
        assert answers == collect_answers(plain, ladder, as_of), (ladder, position, as_of)
        assert proposed_answers == answers
        set_paths(monkeypatch, scanned=False, compiled=compiled)


def test_damaged_trace_is_replaced_with_one_warning(
    tmp_path: Path, trace_folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A damaged trace is named in one warning and deleted; the answer comes from a replay, whose trace is cached."""
    ledger = make_ledger(str(tmp_path / "ratings.db"))
    set_paths(monkeypatch, scanned=False, compiled=False)
    with ledger.reading() as connection:
        facts = decode(connection)
    before = collect_answers(facts, UNBOUNDED_LADDERS[0], None)
    (path,) = trace_folder.rglob("traces/*-*-*")
    flip_bit(path, Random(0), find_column_span(path, "before"))
    with caplog.at_level(logging.WARNING):
        assert collect_answers(facts, UNBOUNDED_LADDERS[0], None) == before
    (line,) = caplog.messages
    assert line.endswith(f"is not used: {path.name}/before is damaged")
    assert find_cached_trace(facts, UNBOUNDED_LADDERS[0]) is not None


def test_check_of_facts_includes_open_traces(
    tmp_path: Path, trace_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check of facts also checks the traces that queries opened, because later queries do not check them again."""
    ledger = make_ledger(str(tmp_path / "ratings.db"))
    set_paths(monkeypatch, scanned=False, compiled=False)
    with ledger.reading() as connection:
        collect_answers(decode(connection), UNBOUNDED_LADDERS[0], None)
        facts = decode(connection, lazily=True)
    (path,) = trace_folder.rglob("traces/*-*-*")
    flip_bit(path, Random(0), find_column_span(path, "before"))
    assert find_cached_trace(facts, UNBOUNDED_LADDERS[0]) is not None
    with pytest.raises(DamagedFile, match="before is damaged") as caught:
        facts.check()
    assert caught.value.path == path


@pytest.mark.slow
@pytest.mark.parametrize("wrong_part", ["points", "mint", "minted"])
@pytest.mark.parametrize("checking_command", [("verify",), ("rebuild", "--check")])
def test_wrong_trace_is_found_by_full_replay(
    tmp_path: Path,
    trace_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    ratings: Ratings,
    checking_command: tuple[str, ...],
    wrong_part: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A readable but wrong trace is used for answers until `verify` or `rebuild --check` replays without it.

    It has wrong points, a wrong mint of one game, or a wrong total of mints.
    """
    url = str(tmp_path / "ratings.db")
    make_ledger(url)
    set_paths(monkeypatch, scanned=False, compiled=False)

    def read_answers() -> str:
        # no command shows the mint of a single game
        return "".join(
            ratings(name, "galactic-points", "--format", "json", db=url).stdout for name in ("standings", "books")
        )

    expected = read_answers()
    assert ratings("history", "galactic-points", "anna", db=url).exit_code == 0
    (path,) = trace_folder.rglob("traces/*-*-*")
    columns, header = read_file(path)
    if wrong_part == "minted":
        header["minted"] += 1
    else:
        columns[wrong_part][0] += 1
    rewrite_file(path, columns, header)
    assert (read_answers() != expected) is (wrong_part != "mint")
    result = ratings(*checking_command, db=url)
    message = f"the cached trace {path} differed from a replay of galactic-points and was deleted"
    assert message in result.stdout + caplog.text
    assert result.exit_code == (1 if checking_command == ("verify",) else 0)
    assert not path.exists()
    assert read_answers() == expected
    caplog.clear()
    second_result = ratings(*checking_command, db=url)
    assert (second_result.exit_code, message in second_result.stdout + caplog.text) == (0, False)


CLUB = "club-catan-elo/all"
CLUB_GAMES = 30


def make_club_ledger(url: str) -> Ledger:
    """Make a ledger of games of two players of the club."""
    upgrade(url)
    ledger = open_ledger(url)
    games = [build_club_game(f"g{number}", "anna ben") for number in range(CLUB_GAMES)]
    assert enter(ledger, [build_ruleset_event(), *games]).appended == CLUB_GAMES + 1
    return ledger


def list_micropoints(opened: rl.Ledger) -> list[tuple[str, int]]:
    """Return the players of the club in an open ledger, and their points in millionths, by rank."""
    return [(row.player, int(row.points * 1_000_000)) for row in opened.at().standings(CLUB).rows]


def replay_micropoints(ledger: Ledger) -> list[tuple[str, int]]:
    """Return what `list_micropoints` returns, from a replay of the log from the first event."""
    return [(row.player, row.points) for row in load_ranking(ledger, CLUB, cached=False).rows]


@pytest.mark.usefixtures("trace_folder")
def test_writes_do_not_copy_first_part_of_a_trace(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any number of games and corrections at the end of a cached trace leave its long first part uncopied."""
    first_part_joined = list[bool]()
    join_parts = traces._join_parts

    def join_and_record(parts: Sequence[Trace]) -> Trace:
        first_part_joined.append(parts[0].earlier is None)
        return join_parts(parts)

    monkeypatch.setattr(traces, "_join_parts", join_and_record)
    set_paths(monkeypatch, scanned=False, compiled=False)
    writer = make_club_ledger(store)
    with rl.open(store) as ledger:
        ledger.at().history(CLUB, "anna")
    with rl.open(store) as ledger:
        ledger.at().standings(CLUB)
        for number in range(CLUB_GAMES, CLUB_GAMES + traces.PARTS_MAX + 4):
            enter(writer, [build_club_game(f"g{number}", f"anna new-{number % 3}")])
            assert list_micropoints(ledger) == replay_micropoints(writer)
        for players in ("ben anna", "anna ben"):
            game = build_club_game(f"g{CLUB_GAMES - 2}", players)["data"]
            enter(writer, [build_event("game.corrected", game_id=game["game_id"], game=game, reason="wrong")])
            assert list_micropoints(ledger) == replay_micropoints(writer)
    assert first_part_joined
    assert not any(first_part_joined)


@pytest.mark.usefixtures("trace_folder")
def test_long_ladder_is_replayed_at_most_twice(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first replay of a long ladder keeps no points before games; the one after a write does, and is continued."""
    whole_replays = list[bool]()
    replay = ladders_at.replay

    def replay_whole(stream: Stream, *, keep_history: bool) -> Trace:
        whole_replays.append(keep_history)
        return replay(stream, keep_history=keep_history)

    monkeypatch.setattr(ladders_at, "replay", replay_whole)
    set_paths(monkeypatch, scanned=False, compiled=False)
    set_thresholds(monkeypatch, short_games=0)
    writer = make_club_ledger(store)
    with rl.open(store) as ledger:
        ledger.at().standings(CLUB)
        for number in range(CLUB_GAMES, CLUB_GAMES + 4):
            enter(writer, [build_club_game(f"g{number}", f"anna new-{number}")])
            points = list_micropoints(ledger)
            assert whole_replays == [False, True]
            assert points == replay_micropoints(writer)
            del whole_replays[2:]  # the replays of the comparison


def test_simulated_version_does_not_replace_the_cached_trace(
    tmp_path: Path, trace_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replay of all games by one version leaves the cached trace of the ladder unchanged."""
    ledger = make_ledger(str(tmp_path / "ratings.db"))
    set_paths(monkeypatch, scanned=False, compiled=False)
    with ledger.reading() as connection:
        facts, uncached_facts = decode(connection), decode(connection, cached=False)
    Ladders(facts).trace("galactic-points")
    (path,) = trace_folder.rglob("traces/*-*-*")
    rules = facts.rulesets["galactic-points"][0].ruleset.name
    for as_of in (None, parse_record_instant(INSTANTS[2])):
        ladders, plain_ladders = Ladders(facts, as_of, rules), Ladders(uncached_facts, as_of, rules)
        assert [*ladders.trace("galactic-points").points_before] == [
            *plain_ladders.trace("galactic-points").points_before
        ]
    assert [*trace_folder.rglob("traces/*-*-*")] == [path]


def test_ladders_and_traces_are_freed_without_garbage_collector(
    tmp_path: Path, trace_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ladders and their traces, new or cached, are freed as soon as no reference is left."""
    ledger = make_ledger(str(tmp_path / "ratings.db"))
    set_paths(monkeypatch, scanned=False, compiled=False)
    with ledger.reading() as connection:
        facts = decode(connection)
    gc.collect()
    gc.disable()
    try:
        for _ in range(2):
            ladders = Ladders(facts)
            ladders.keep_trace_of("galactic-points")
            collect_answers(facts, "galactic-points", None)
            ladders_at = ladders.at(parse_record_instant(INSTANTS[2]))
            ladders_at.standings("galactic-points")
            references = [ref(owner) for owner in (ladders, ladders_at, ladders.trace("galactic-points"))]
            del ladders, ladders_at
            assert [reference() for reference in references] == [None, None, None]
    finally:
        gc.enable()


def test_unwritable_cache_folder_means_replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a writable cache folder, answers come from a replay."""
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    set_thresholds(monkeypatch, traced_games=1)
    ledger = make_ledger(str(tmp_path / "ratings.db"))
    with ledger.reading() as connection:
        uncached_facts = decode(connection, cached=False)
        set_paths(monkeypatch, scanned=False, compiled=False)
        facts = decode(connection)
    assert (facts.cache, facts.chain_hash == ZERO) == (None, False)
    assert collect_answers(facts, UNBOUNDED_LADDERS[0], None) == collect_answers(
        uncached_facts, UNBOUNDED_LADDERS[0], None
    )
    assert len(facts.cell) < NEVER


@pytest.mark.slow
def test_commands_read_cached_traces_without_numpy(tmp_path: Path) -> None:
    """With cached columns and a cached trace, `history` and `explain` do not import numpy."""
    url = str(tmp_path / "ratings.db")
    make_ledger(url)
    program = f"""
import sys
from ratings_ledger.cli.main import invoke
from ratings_ledger.projections.facts import decoding
from ratings_ledger.projections.replay import trace_cache
decoding.CACHED_EVENTS = decoding.DELTA_EVENTS = trace_cache.CACHED_GAMES_MIN = 1
code = invoke(["--db", {url!r}, *sys.argv[1:]])
print(code, "numpy" in sys.modules, file=sys.stderr)
"""
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "caches")}
    commands = [["history", "catan-elo/basic", "anna"], ["explain", "catan-elo/basic", "g17"]]
    lines = [
        subprocess.run(
            [sys.executable, "-c", program, *command], env=environment, capture_output=True, text=True, check=True
        ).stderr
        for command in (commands[0], *commands)  # the first command caches the trace
    ]
    assert lines == ["0 True\n", "0 False\n", "0 False\n"]


# the digest of the modules that decide points is in the name of each cached trace; they follow from the imports
PROGRAM = Path(trace_cache.__file__).parents[2]
# modules that decode records, select and score games, and continue traces
DECIDING_ROOTS = ("projections/facts/decoding.py", "projections/replay/replay.py")
# modules that pass on bytes, times and errors without deciding points
MODULES_WITHOUT_INFLUENCE = {
    "ledger/__init__.py", "ledger/clock.py", "ledger/errors.py", "ledger/own_files.py",
    "ledger/processes/memory.py", "ledger/rejections.py", "ledger/store/dialect.py",
    "ledger/store/log.py", "ledger/store/schema.py",
}  # fmt: skip


def iterate_imported_files(path: Path) -> Iterator[Path]:
    """Yield the files of the program that a module imports when it runs, also inside its functions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    type_checking_nodes = {
        node for test in ast.walk(tree) if isinstance(test, ast.If) and ast.unparse(test.test) == "TYPE_CHECKING"
        for statement in test.body for node in ast.walk(statement)
    }  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node not in type_checking_nodes:
            module = str(node.module)
            for name in (module, *(f"{module}.{alias.name}" for alias in node.names)):
                if name.startswith("ratings_ledger."):
                    target = PROGRAM.joinpath(*name.split(".")[1:])
                    yield from (file for file in (target.with_suffix(".py"), target / "__init__.py") if file.exists())


def test_digest_covers_every_module_that_decides_points() -> None:
    """Every module that these roots import is in the digest, or listed as one without influence on points."""
    reached, waiting = set[Path](), [PROGRAM / name for name in DECIDING_ROOTS]
    waiting += (PROGRAM / "projections" / "rules").glob("*.py")
    while waiting:
        path = waiting.pop()
        if path not in reached:
            reached.add(path)
            waiting += iterate_imported_files(path)
    assert len(reached) > len(DECIDING_ROOTS) + len(MODULES_WITHOUT_INFLUENCE)
    assert {
        path.relative_to(PROGRAM).as_posix() for path in reached - {*trace_cache.list_deciding_modules()}
    } <= MODULES_WITHOUT_INFLUENCE


def test_every_folder_of_deciding_modules_has_some() -> None:
    """Every listed folder still has modules, so none was renamed or emptied."""
    folders = {path.parent.relative_to(PROGRAM).as_posix() for path in trace_cache.list_deciding_modules()}
    assert folders == {*trace_cache.DECIDING_FOLDERS}
