"""`init`, `status`, `doctor`, `verify`, `rebuild` and `rules`: looking after a ledger."""

import json
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from ledgers import open_for_reading
from own_rules import find_shipped_texts, read_ruleset
from sqlalchemy import text
from stores import make_ruled_ledger, record_lines

from ratings_ledger.projections.facts import column_cache

ROOT = Path(__file__).parents[2]
SHIPPED_NAMES = [ruleset.name for ruleset in map(read_ruleset, find_shipped_texts())]
INITIAL_POSITION = len(SHIPPED_NAMES)  # after init
SECOND_VERSION = ROOT / "examples" / "club-catan-elo-2.toml"
GAME = (
    '{"type":"game.recorded","occurred_at":"2024-01-01T12:00:00Z","data":{"game_id":"g-1","game":"club-catan",'
    '"participants":[{"player":"anna","place":1},{"player":"ben","place":2}]}}'
)
CHESS = """id = "chess"
version = "1"
rule = "pairwise-elo/1"

[scope]
game = ["chess"]

[params]
k_per_pair = 8
"""


def read_status(ratings: Callable[..., Any], url: str) -> dict[str, Any]:
    return dict(json.loads(ratings("status", "--format", "json", db=url).stdout))


@pytest.mark.slow_cases
def test_second_init_changes_nothing(store: str, ratings: Callable[..., Any]) -> None:
    """A second `init` of the same store changes nothing."""
    first = ratings("init", db=store)
    before = read_status(ratings, store)
    second = ratings("init", db=store)

    assert (first.exit_code, second.exit_code, second.stderr) == (0, 0, "")
    assert first.stderr.startswith("note: no home zone is set")
    assert f"\n{len(SHIPPED_NAMES)} rulesets are published; to list them: ratings rules list\n" in first.stdout
    assert read_status(ratings, store)["position"] == INITIAL_POSITION
    assert "published" not in second.stdout
    assert read_status(ratings, store) == before


def test_init_without_rules_leaves_empty_log(store: str, ratings: Callable[..., Any]) -> None:
    """After `init --no-rules`, the log is empty and the head is position 0."""
    assert ratings("init", "--no-rules", db=store).exit_code == 0
    assert read_status(ratings, store)["head"] == f"0:{'00' * 32}"


def test_status_shows_position_and_chain_hash(ledger_url: str, ratings: Callable[..., Any]) -> None:
    """`status` shows the head as position and chain hash, in every output format."""
    record_lines(ledger_url, GAME)
    status_output = read_status(ratings, ledger_url)

    assert (status_output["position"], status_output["events"], status_output["generation"]) == (
        1,
        {"game.recorded": 1},
        None,
    )
    assert status_output["head"].startswith("1:")
    assert len(bytes.fromhex(status_output["head"][2:])) == 32
    assert status_output["head"] in ratings("status", db=ledger_url).stdout
    assert status_output["head"] in ratings("status", "--format", "csv", db=ledger_url).stdout


@pytest.mark.slow
def test_verify_is_silent_on_good_ledger(store: str, ratings: Callable[..., Any]) -> None:
    """`verify` is silent on a good ledger, both before and after a rebuild."""
    ratings("init", db=store)
    record_lines(store, GAME)

    assert ratings("verify", db=store) == (0, "", "")
    assert ratings("rebuild", db=store).exit_code == 0
    assert ratings("verify", db=store) == (0, "", "")
    report = json.loads(ratings("verify", "--format", "json", db=store).stdout)
    assert (report["findings"], sorted(report["checked"])) == (
        [],
        ["events", "guards", "hashes", "ladders", "lists", "objects"],
    )
    assert read_status(ratings, store)["generation"]["behind"] == 0


@pytest.mark.slow_cases
def test_verify_accepts_only_heads_it_contains(ledger_url: str, ratings: Callable[..., Any]) -> None:
    """`verify --head` accepts every earlier head of the ledger and no other."""
    empty_head = read_status(ratings, ledger_url)["head"]
    record_lines(ledger_url, GAME)
    old_head = read_status(ratings, ledger_url)["head"]
    ratings("record", "--game", "catan", "--game-id", "g-2", "anna", "ben", db=ledger_url)
    position, _, chain = old_head.partition(":")

    for head in (empty_head, old_head, old_head.upper(), read_status(ratings, ledger_url)["head"]):
        assert ratings("verify", "--head", head, db=ledger_url) == (0, "", "")
    for head in (f"{position}:{'0' * 64}", f"2:{chain}", f"3:{chain}", f"99:{chain}", f"0:{chain}"):
        result = ratings("verify", "--head", head, db=ledger_url)
        assert (result.exit_code, result.stderr) == (1, "")
        assert result.stdout.startswith("head: ")


@pytest.mark.parametrize(
    "head", ["1", "1:", ":ff", "1:xyz", f"-1:{'0' * 64}", f"1:{'0' * 63}", f"{'9' * 30}:{'0' * 64}"]
)
def test_malformed_head_is_a_usage_error(head: str, ledger_url: str, ratings: Callable[..., Any]) -> None:
    """A malformed head passed to `verify --head` is a usage error."""
    assert ratings("verify", "--head", head, db=ledger_url).exit_code == 2


def test_version_names_the_schema(ratings: Callable[..., Any], db: str) -> None:
    """`--version` names the schema revision, so that two programs can be told apart."""
    with open_for_reading(db) as connection:
        revision = connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one()
    stdout = ratings("--version").stdout
    assert stdout == f"ratings, version {version('ratings-ledger')}, schema {revision}\n"


def test_doctor_reads_back_every_setting(ledger_url: str, ratings: Callable[..., Any]) -> None:
    """On a healthy ledger, `doctor` reads back the guards, the clock and the database settings."""
    rows = json.loads(ratings("doctor", "--format", "json", db=ledger_url).stdout)
    rows_by_subject = {row["what"]: (row["state"], row["value"]) for row in rows}

    assert rows_by_subject["guards"] == ("ok", "in place")
    assert rows_by_subject["clock"][0] == "ok"
    assert rows_by_subject["cache"] == ("ok", "kept from 20,000 events on")
    if ledger_url.startswith("sqlite"):
        assert rows_by_subject["journal_mode"] == ("ok", "truncate")
        assert rows_by_subject["synchronous"] == ("ok", "2")
        assert ratings("doctor", db=ledger_url).exit_code == 0
    else:
        assert {"fsync", "synchronous_commit", "full_page_writes", "server_encoding"} <= rows_by_subject.keys()


def test_doctor_says_why_there_is_no_cache(
    ledger_url: str, ratings: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If there is a cache folder but no usable cache, `doctor` says that a file cannot be read."""
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    monkeypatch.setattr(column_cache, "find_cache", lambda *_: None)
    (row,) = [
        row for row in json.loads(ratings("doctor", "--format", "json", db=ledger_url).stdout) if row["what"] == "cache"
    ]
    assert row["note"] == "a cache file cannot be read"
    assert row["remedy"] == "make the files in /caches/ratings-ledger readable"


# rules


@pytest.fixture
def db(copy_ledger_file: Callable[..., str]) -> str:
    return copy_ledger_file(make_ruled_ledger, name="own.db")


def test_rules_list_and_show_give_details(db: str, ratings: Callable[..., Any]) -> None:
    """`rules list` and `rules show` give versions, positions and assumptions of the rulesets."""
    rows = json.loads(ratings("rules", "list", "--format", "json", db=db).stdout)
    (row,) = [row for row in rows if row["version"] == "club-catan-elo@1"]
    output = json.loads(ratings("rules", "show", "club-catan-elo", "--format", "json", db=db).stdout)

    assert [(row["version"], row["position"]) for row in rows] == [
        (name, position) for position, name in enumerate(SHIPPED_NAMES, 1)
    ]
    assert (row["rule"], row["in_force"]) == ("pairwise-elo/1", "yes")
    assert (output["id"], output["version"], output["versions"], list(output["assumed"])) == (
        "club-catan-elo",
        "1",
        ["1"],
        ["time_zone"],
    )
    assert ratings("rules", "show", "club-catan-elo@1", db=db).exit_code == 0
    assert ratings("rules", "show", "club-catan-elo@9", db=db).exit_code == 2
    assert ratings("rules", "show", "chess", db=db).exit_code == 2


def test_publishing_twice_changes_nothing(db: str, ratings: Callable[..., Any]) -> None:
    """Publishing a ruleset version a second time changes nothing."""
    first = ratings("rules", "publish", SECOND_VERSION, db=db)
    second = ratings("rules", "publish", SECOND_VERSION, db=db)

    assert (first.exit_code, second.exit_code) == (0, 0)
    assert f"published at position {INITIAL_POSITION + 1}\n" in first.stdout
    assert "already published" in second.stdout
    assert read_status(ratings, db)["position"] == INITIAL_POSITION + 1
    assert ratings("rules", "publish", "--shipped", db=db).stdout.startswith("Nothing to publish: the ledger has")


REFUSED_SEQUELS = {
    "the same version with other content": (("k_total = 64", "k_total = 32"), "version-exists"),
    "another partition": (
        ('version = "2"', 'version = "3"', 'by = ["players"]', 'by = ["city"]', "bands =", "# bands ="),
        "partition-changed",
    ),
    "another zone": (('version = "2"', 'version = "3"', "UTC", "Europe/Berlin"), "partition-changed"),
    "another freeze": (('version = "2"', 'version = "3"', '"none"\nsource', '"league-start"\nsource'), "freeze"),
}


@pytest.mark.parametrize(("changes", "code"), REFUSED_SEQUELS.values(), ids=REFUSED_SEQUELS)
def test_unfit_successor_version_is_refused(
    changes: tuple[str, ...], code: str, db: str, tmp_path: Path, ratings: Callable[..., Any]
) -> None:
    """A ruleset version that cannot follow the previous one is refused with its code."""
    ratings("rules", "publish", SECOND_VERSION, db=db)
    text = SECOND_VERSION.read_text(encoding="utf-8")
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "changed.toml").write_text(text)
    result = ratings("rules", "publish", tmp_path / "changed.toml", db=db)

    assert (result.exit_code, result.stdout, read_status(ratings, db)["position"]) == (1, "", INITIAL_POSITION + 1)
    assert f"{code}: " in result.stderr


BAD_RULESETS = {
    "an unknown key": (("k_per_pair = 8", "k_per_pair = 8\nk_factor = 9"), "10: params.k_factor: "),
    "a missing parameter": (("k_per_pair = 8", ""), " k_per_pair"),
    "a wrong type": (("k_per_pair = 8", "k_per_pair = 8\nscale = true"), "10: params.scale: "),
    "a float": (("k_per_pair = 8", "k_per_pair = 8.5"), "9: params.k_per_pair: "),
    "an unknown rule": (("pairwise-elo/1", "pairwise-elo/9"), "3: rule: "),
    "a rule without number": (("pairwise-elo/1", "pairwise-elo"), "3: rule: "),
    "an unknown zone": (('version = "1"', 'version = "1"\ntime_zone = "Mars/Base"'), "3: time_zone: "),
    "an unknown kind": (('game = ["chess"]', 'game = ["chess"]\nkind = ["auction"]'), "7: scope.kind: "),
    "no game": (('game = ["chess"]', "game = []"), "6: scope.game: "),
    "no id": (('id = "chess"\n', ""), " id: "),
    "not TOML": (('id = "chess"', "id = chess"), "1: "),
    "a K that is too large": (("k_per_pair = 8", "k_per_pair = 401"), "params"),
    "an assumption about nothing": (
        ("k_per_pair = 8", 'k_per_pair = 8\n[assumed]\ncolour = "x"'),
        "11: assumed.colour: ",
    ),
}


@pytest.mark.parametrize(("change", "message"), BAD_RULESETS.values(), ids=BAD_RULESETS)
def test_ruleset_check_names_line_and_key(
    change: tuple[str, str], message: str, db: str, tmp_path: Path, ratings: Callable[..., Any]
) -> None:
    """For a bad ruleset file, `rules check` names line and key, and publishing it is refused."""
    path = tmp_path / "chess.toml"
    path.write_text(CHESS.replace(*change))
    check_result = ratings("rules", "check", path, db=db)
    publish_result = ratings("rules", "publish", path, db=db)

    assert (check_result.exit_code, publish_result.exit_code) == (1, 1)
    assert read_status(ratings, db)["position"] == INITIAL_POSITION
    assert check_result.stdout.startswith(f"{path}:")
    assert message in check_result.stdout.removeprefix(f"{path}:")


@pytest.mark.slow
def test_good_ruleset_file_passes_the_check(db: str, tmp_path: Path, ratings: Callable[..., Any]) -> None:
    """For good ruleset files, `rules check` says they can be published and publishes nothing."""
    (tmp_path / "chess.toml").write_text(CHESS)
    result = ratings("rules", "check", tmp_path / "chess.toml", SECOND_VERSION, db=db)

    assert (result.exit_code, read_status(ratings, db)["position"]) == (0, INITIAL_POSITION)
    assert "chess@1 can be published" in result.stdout
    assert "club-catan-elo@2 can be published; assumed: time_zone" in result.stdout


def test_json_ruleset_equals_toml_ruleset(db: str, tmp_path: Path, ratings: Callable[..., Any]) -> None:
    """A ruleset given as JSON is the same as the one given as TOML."""
    (tmp_path / "chess.toml").write_text(CHESS)
    (tmp_path / "chess.json").write_text(
        json.dumps(
            {
                "id": "chess",
                "version": "1",
                "rule": "pairwise-elo/1",
                "scope": {"game": ["chess"]},
                "params": {"k_per_pair": 8},
            }
        )
    )
    ratings("rules", "publish", tmp_path / "chess.toml", db=db)

    assert "already published" in ratings("rules", "publish", tmp_path / "chess.json", db=db).stdout
