"""`whatif`: an unpublished ruleset compared with the ledger as it is, with numbers computed by hand."""

import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from correction_helpers import (
    BASIC,
    SHIPPED,
    Ratings,
    append_lines,
    build_catan_line,
    create_ledger,
    create_three_games,
    read_head,
    read_json,
)

WriteRules = Callable[..., Path]
VERSION_NAME = "catan-elo@new"


pytestmark = pytest.mark.ledger(make=create_three_games, store="sqlite")


@pytest.fixture
def write_rules(tmp_path: Path) -> WriteRules:
    """Return a function that writes the shipped Elo ruleset, with changed lines, as `new`, in force since 1900."""

    def write(changes: dict[str, str] | None = None) -> Path:
        text = (SHIPPED / "catan-elo-2009-01.toml").read_text(encoding="utf-8")
        for old, new in {'"2009-01"': '"new"', "2009-01-31": "1900-01-01", **(changes or {})}.items():
            assert old in text
            text = text.replace(old, new)
        file = tmp_path / "new.toml"
        file.write_text(text, encoding="utf-8")
        return file

    return write


K_16 = {"k_per_pair = 8": "k_per_pair = 16"}
# with K 16: among three equals the first wins 16 and the last loses 16; then cleo, 16 behind dora, wins 8.37, rounded
CHANGES = [("anna", "1008", "8", "1016"), ("cleo", "996", "-4", "992"), ("dora", "996", "-4", "992")]


def read_variants(ratings: Ratings, db: str, file: Path, *options: object) -> list[dict[str, Any]]:
    """Return the variants of the JSON of `whatif`."""
    return list(read_json(ratings, db, "whatif", file, *options)["variants"])


def list_changes(ladder: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return the player of each change, and the points before, change and after."""
    return [(row["player"], row["before"], row["change"], row["after"]) for row in ladder["changes"]]


def compute_expected_score(ahead: float) -> float:
    """Return the expected score of a player who is ahead by this many points."""
    return 1 / (1 + 10 ** (-ahead / 400))


def compute_quality(pairs: list[tuple[float, float]], accuracy: float | None) -> dict[str, Any]:
    """Return the quality of predictions (expected, scored) with the given accuracy over decided pairs."""
    losses = [-(s * math.log(e) + (1 - s) * math.log(1 - e)) for e, s in pairs]
    return {
        "pairs": len(pairs),
        "decided": sum(s != 0.5 for _, s in pairs),
        "log_loss": f"{sum(losses) / len(pairs):.6f}",
        "brier": f"{sum((e - s) ** 2 for e, s in pairs) / len(pairs):.6f}",
        "accuracy": None if accuracy is None else f"{accuracy:.6f}",
    }


def test_table_shows_changes_and_nothing_is_recorded(db: str, write_rules: WriteRules, ratings: Ratings) -> None:
    """`whatif` prints the changes under another version as a table and records nothing."""
    file, before, digest = write_rules(K_16), read_head(ratings, db), hashlib.sha256(Path(db).read_bytes()).hexdigest()
    result = ratings("whatif", file, db=db)

    assert result == (
        0,
        (
            "All games under catan-elo@new, as if in force from the start\nknown at position 5\n"
            "Nothing is recorded.\n\n"
            "ladder           players  ranks  swapped  largest change\n"
            "catan-elo/basic        3      0        0  +8 anna\n\n"
            "catan-elo/basic\n"
            "player  before  change  after\n"
            "anna      1008      +8   1016\n"
            "cleo       996      -4    992\n"
            "dora       996      -4    992\n\n"
            "How well the points before each game predicted who was placed better:\n\n"
            "ladder           version        pairs  log loss    Brier  accuracy\n"
            "catan-elo/basic  as it is           4   0.69897  0.25291    37.50%\n"
            "catan-elo/basic  catan-elo@new      4   0.70493  0.25588    37.50%\n"
            "Lower is better, except for accuracy.\n"
        ),
        "",
    )
    assert (read_head(ratings, db), hashlib.sha256(Path(db).read_bytes()).hexdigest()) == (before, digest)


def test_whatif_json_and_csv_agree(db: str, write_rules: WriteRules, ratings: Ratings) -> None:
    """`whatif` gives the same changes and measures of quality as JSON and CSV."""
    file = write_rules(K_16)
    output = read_json(ratings, db, "whatif", file)
    (variant,) = output["variants"]
    (ladder,) = variant["ladders"]

    # the expected score among equals is 1/2; then cleo, who is 8 or 16 points behind, beats dora
    equal = [(0.5, 1.0)] * 3
    expected_quality = {
        "before": compute_quality([*equal, (compute_expected_score(-8), 1)], 1.5 / 4),
        "after": compute_quality([*equal, (compute_expected_score(-16), 1)], 1.5 / 4),
    }
    assert {name: output[name] for name in ("as_of", "known_at", "rules")} == {
        "as_of": None,
        "known_at": 5,
        "rules": None,
    }
    assert (variant["ruleset"], variant["set"], variant["published"]) == (VERSION_NAME, {}, [])
    assert list_changes(ladder) == CHANGES
    assert ladder["quality"] == expected_quality
    summary = {name: value for name, value in ladder.items() if name not in ("quality", "changes")}
    assert summary == {
        "ladder": BASIC,
        "players": 3,
        "ranks": 0,
        "swapped": 0,
        "up": {"player": "anna", "change": "8"},
        "down": {"player": "cleo", "change": "-4"},
        "entering": [],
        "leaving": [],
    }
    assert ratings("whatif", file, "--format", "csv", db=db).stdout == (
        "set,ladder,players,ranks,swapped,version,pairs,log_loss,brier,accuracy\n"
        + "".join(
            f",{BASIC},3,0,0,{which},4,{quality['log_loss']},{quality['brier']},{quality['accuracy']}\n"
            for which, quality in expected_quality.items()
        )
    )


def test_ties_count_half(db: str, write_rules: WriteRules, ratings: Ratings) -> None:
    """Tied pairs count half in the measures of quality and are left out of the accuracy."""
    append_lines(ratings, db, build_catan_line("c-3", "anna=cleo", "ben", at="2010-03-08T12:00:00Z"))
    (variant,) = read_variants(ratings, db, write_rules())
    (ladder,) = variant["ladders"]

    # anna 1008 and cleo 996 tie, both beat ben, who has 1000
    pairs = [(0.5, 1.0)] * 3 + [
        (compute_expected_score(-8), 1),
        (compute_expected_score(12), 0.5),
        (compute_expected_score(8), 1),
        (compute_expected_score(-4), 1),
    ]
    assert ladder["quality"]["before"] == ladder["quality"]["after"] == compute_quality(pairs, (1.5 + 0 + 1 + 0) / 6)
    assert (ladder["players"], ladder["changes"]) == (0, [])
    assert "\nNo points change.\n" in ratings("whatif", write_rules(), db=db).stdout


def test_only_ties_give_no_accuracy(tmp_path: Path, write_rules: WriteRules, ratings: Ratings) -> None:
    """If all pairs are tied, there is no accuracy."""
    name = create_ledger(ratings, tmp_path / "ties.db")
    append_lines(ratings, name, build_catan_line("c-1", "anna=ben"))
    (variant,) = read_variants(ratings, name, write_rules())

    assert variant["ladders"][0]["quality"]["after"] == compute_quality([(0.5, 0.5)], None)
    assert "0.25000" not in ratings("whatif", write_rules(), db=name).stdout
    assert ratings("whatif", write_rules(), db=name).stdout.splitlines()[-2].split()[-3:] == ["0.69315", "0.00000", "-"]


def test_rule_without_predictions_has_no_quality(tmp_path: Path, db: str, ratings: Ratings) -> None:
    """A rule without predictions has no measures of quality."""
    file = tmp_path / "pool.toml"
    text = (SHIPPED / "galactic-points-1.toml").read_text(encoding="utf-8")
    file.write_text(text.replace('version = "1"', 'version = "2"').replace("2 = [0, 16]", "2 = [0, 20]"), "utf-8")
    (variant,) = read_variants(ratings, db, file)
    (ladder,) = variant["ladders"]

    assert list_changes(ladder) == [("anna", "1160", "40", "1200"), ("ben", "840", "-40", "800")]
    assert ladder["quality"] == {"before": None, "after": None}
    assert "predicted" not in ratings("whatif", file, db=db).stdout


# several values


def test_each_combination_of_values_is_tried(db: str, write_rules: WriteRules, ratings: Ratings) -> None:
    """With several values for several keys, each combination is tried."""
    options = ("--set", "params.k_per_pair=8,16", "--set", "params.scale=400,200")
    variants = read_variants(ratings, db, write_rules(), *options)
    table = ratings("whatif", write_rules(), *options, db=db).stdout.splitlines()

    assert [variant["set"] for variant in variants] == [
        {"params.k_per_pair": k, "params.scale": scale} for k in ("8", "16") for scale in ("400", "200")
    ]
    assert [list_changes(variant["ladders"][0]) for variant in variants][::2] == [[], CHANGES]
    assert table[3:8] == [
        "",
        BASIC,
        "set                      players  ranks  up  down  log loss    Brier  accuracy",
        "as it is                       0      0             0.69897  0.25291    37.50%",
        "k_per_pair=8 scale=400         0      0             0.69897  0.25291    37.50%",
    ]
    assert [line.split()[:2] for line in table[8:]] == [
        ["k_per_pair=8", "scale=200"],
        ["k_per_pair=16", "scale=400"],
        ["k_per_pair=16", "scale=200"],
    ]
    lines = ratings("whatif", write_rules(), *options, "--format", "csv", db=db).stdout.splitlines()
    assert [line.partition(",")[0] for line in lines[1::2]] == [
        f"k_per_pair={k} scale={scale}" for k in (8, 16) for scale in (400, 200)
    ]


def test_empty_value_removes_the_key(db: str, write_rules: WriteRules, ratings: Ratings) -> None:
    """An empty value removes the key from the ruleset that is tried."""
    file = write_rules()
    (variant,) = read_variants(ratings, db, file, "--set", "params.k_per_pair=", "--set", "params.k_total=32")
    without_start, with_start_900 = read_variants(ratings, db, file, "--set", "params.start=,900")

    # a total of 32 is 32 / 2 = 16 per pair among three, and 32 among two
    assert variant["set"] == {"params.k_per_pair": "", "params.k_total": "32"}
    assert list_changes(variant["ladders"][0])[0] == CHANGES[0]
    # the default start is 1000
    assert [list_changes(variant["ladders"][0])[:1] for variant in (without_start, with_start_900)] == [
        [],
        [("anna", "1008", "-100", "908")],
    ]


@pytest.mark.parametrize(
    ("setting", "code", "message"),
    [
        ("params.k=1", 1, "params.k: unknown key"),
        ("params.k_per_pair=x", 1, "params.k_per_pair: "),
        ("params.k_per_pair=", 1, "params: give either k_per_pair"),
        ("params.k_total=3", 1, "params: give either k_per_pair"),
        ("version=", 1, "version: missing key"),
        ("rule=nothing/1", 1, "'nothing/1' is not installed"),
        ("id.x=3", 2, "'id' is not a table"),
        ("params=3", 2, "'params' has several values"),
        ("scope.game=chess", 2, "'game' has several values"),
        ("scope.players_min=x", 1, "scope.players_min: a whole number is needed (it is 'x')"),
        ("scope.players_min=1", 1, "scope.players_min: this must be at least 2 (it is 1)"),
        ("scope.players_min=10001", 1, "scope.players_min: this must be at most 10000 (it is 10001)"),
        ("freeze=never", 1, "freeze: this must be 'none' or 'league-start' (it is 'never')"),
        ("k", 2, "'k' is not KEY=VALUE"),
        ("=3", 2, "'=3' is not KEY=VALUE"),
        ("params.scale=" + ",".join(map(str, range(1, 102))), 2, "101 combinations of values exceed the limit of 100"),
    ],
)
def test_wrong_key_or_value_is_refused(
    setting: str, code: int, message: str, db: str, write_rules: WriteRules, ratings: Ratings
) -> None:
    """A wrong key or value is refused with one clear message and no output."""
    result = ratings("whatif", write_rules(), "--set", setting, db=db)

    assert (result.exit_code, result.stdout) == (code, ""), result
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_number_as_reason_is_refused_with_its_line(db: str, write_rules: WriteRules, ratings: Ratings) -> None:
    """A number as the reason of an assumption in a ruleset file is refused with its line."""
    file = write_rules()
    file.write_text(file.read_text(encoding="utf-8").partition("[assumed]")[0] + "[assumed]\nk_total = 24\n")
    lines = file.read_text(encoding="utf-8").splitlines()

    assert ratings("whatif", file, db=db).stderr == (
        f"Error: {file}:{len(lines)}: assumed.k_total: must be text in quotes that gives the reason for the "
        "assumption (it is 24)\n"
    )


# rulesets and ladders


def test_published_ruleset_is_tried_with_other_values(db: str, write_rules: WriteRules, ratings: Ratings) -> None:
    """A published ruleset, or one version of it, gives the same result as a file with the same parameters."""
    settings = ("--set", "params.k_per_pair=8,16")
    file_variants = read_variants(ratings, db, write_rules(), *settings)

    for name in ("catan-elo", "catan-elo@2009-01"):
        variants = read_variants(ratings, db, name, *settings)
        assert [variant["ladders"] for variant in variants] == [variant["ladders"] for variant in file_variants]
        assert list_changes(variants[1]["ladders"][0]) == CHANGES
        assert {variant["ruleset"] for variant in variants} == {"catan-elo@2009-01"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "catan-ello",
            "no ruleset 'catan-ello' is published at position 5; see: ratings rules list; did you mean catan-elo?",
        ),
        ("catan-elo@9", "did you mean catan-elo@2009-01?"),
        ("no.toml", "'no.toml' is not a file; name a ruleset file or a published ruleset"),
        ("/", "'/' is a folder; name a ruleset file or a published ruleset"),
    ],
)
def test_unknown_file_or_ruleset_is_a_usage_error(name: str, message: str, db: str, ratings: Ratings) -> None:
    """A name that is neither a file nor a published ruleset is a usage error with a suggestion."""
    result = ratings("whatif", name, db=db)
    assert (result.exit_code, result.stdout, result.stderr.endswith(f"{message}\n")) == (2, "", True), result


def test_unknown_ruleset_id_notes_the_scoring_ruleset(db: str, write_rules: WriteRules, ratings: Ratings) -> None:
    """For a file whose id has no ladder, `whatif` notes that nothing is compared, and names the ruleset that scores
    its games."""
    result = ratings("whatif", write_rules(), "--set", "id=house-catan", "--set", "params.k_total=", db=db)

    assert result.stderr == (
        "note: no ladder of house-catan has a game, so there are no current points to compare with; catan-elo scores "
        'its games; did you mean id = "catan-elo"?\n'
    )
    assert "as it is" not in result.stdout
    assert ratings("whatif", "catan-elo", db=db).stderr == ""


def test_new_ruleset_id_has_only_new_players(db: str, write_rules: WriteRules, ratings: Ratings) -> None:
    """On the ladders of a ruleset with a new id, all players are new."""
    result = ratings("whatif", write_rules(), "--set", "id=other", "--format", "json", db=db)
    (variant,) = json.loads(result.stdout)["variants"]
    (ladder,) = variant["ladders"]

    assert (variant["ruleset"], ladder["ladder"], ladder["players"]) == ("other@new", "other/basic", 4)
    assert {(row[1], row[2]) for row in list_changes(ladder)} == {(None, None)}
    assert (ladder["entering"], ladder["leaving"]) == (["anna", "ben", "cleo", "dora"], [])
    assert (ladder["up"], ladder["down"], ladder["quality"]["before"]) == (None, None, None)
    assert ladder["quality"]["after"]["pairs"] == 4


def test_other_partition_is_refused(db: str, write_rules: WriteRules, ratings: Ratings) -> None:
    """A version with another partition than the ruleset's is refused."""
    result = ratings("whatif", write_rules({'by = ["group"]': 'by = ["city", "group"]'}), db=db)

    assert (result.exit_code, result.stdout) == (1, "")
    assert "catan-elo@new: partition" in result.stderr


@pytest.mark.parametrize(
    ("ladder", "code", "message"),
    [
        (
            "catan-elo/domaine",
            1,
            "catan-elo/domaine has no games under catan-elo@new; the only ladder with games is catan-elo/",
        ),
        ("catan-elo", 2, "'catan-elo' is not a ladder"),
        ("nothing/x", 2, "no ruleset is called 'nothing'"),
    ],
)
def test_unknown_ladder_is_refused(
    ladder: str, code: int, message: str, db: str, write_rules: WriteRules, ratings: Ratings
) -> None:
    """A --ladder that does not exist is refused with the reason."""
    result = ratings("whatif", write_rules(), "--ladder", ladder, db=db)

    assert (result.exit_code, result.stdout, message in result.stderr) == (code, "", True), result


def test_only_named_ladder_is_shown(db: str, write_rules: WriteRules, ratings: Ratings) -> None:
    """With --ladder, only that ladder is shown."""
    append_lines(ratings, db, build_catan_line("d-1", "anna", "ben", group="domaine"))
    file = write_rules(K_16)

    assert [ladder["ladder"] for ladder in read_variants(ratings, db, file)[0]["ladders"]] == [
        BASIC,
        "catan-elo/domaine",
    ]
    (ladder,) = read_variants(ratings, db, file, "--ladder", "catan-elo/domaine")[0]["ladders"]
    assert list_changes(ladder) == [("anna", "1004", "4", "1008"), ("ben", "996", "-4", "992")]


def test_axes_limit_the_games(db: str, write_rules: WriteRules, ratings: Ratings) -> None:
    """With --as-of or --known-at, only the games played or recorded by then are tried."""
    file = write_rules(K_16)
    after_first_game = [("anna", "1008", "8", "1016"), ("cleo", "992", "-8", "984")]

    for options in (["--as-of", "2010-03-05"], ["--known-at", 3]):
        (variant,) = read_variants(ratings, db, file, *options)
        assert list_changes(variant["ladders"][0]) == after_first_game
    assert ratings("whatif", file, "--as-of", "2010-03-05", db=db).stdout.splitlines()[2] == (
        "played up to 2010-03-05 22:59 UTC"
    )
    for options in (["--as-of", "soon"], ["--known-at", 99]):
        assert ratings("whatif", file, *options, db=db).exit_code == 2


def test_top_ten_changes_are_named(db: str, write_rules: WriteRules, ratings: Ratings) -> None:
    """When the order changes, the players who enter and leave the top ten are named.

    Ten players win one game of four players each, and ten win two games of two: they win 12 and 8 points with a K of 8
    for each pair, and 3 and 8 with a total of 8.
    """
    lines = [
        build_catan_line(
            f"four-{n}", f"once-{n}", *(f"loser-{n}{seat}" for seat in "abc"), at="2010-04-01T12:00:00Z", group="top"
        )
        for n in range(10)
    ]
    lines += [
        build_catan_line(f"two-{n}{turn}", f"twice-{n}", f"loser-{n}{turn}", at="2010-04-02T12:00:00Z", group="top")
        for n in range(10)
        for turn in "de"
    ]
    append_lines(ratings, db, *lines)
    options = ("--ladder", "catan-elo/top", "--set", "params.k_per_pair=", "--set", "params.k_total=8")
    (ladder,) = read_variants(ratings, db, write_rules(), *options)[0]["ladders"]
    table = ratings("whatif", write_rules(), *options, db=db).stdout.splitlines()

    assert ladder["entering"] == [f"twice-{n}" for n in range(10)]
    assert ladder["leaving"] == [f"once-{n}" for n in range(10)]
    assert ladder["swapped"] >= 100
    assert f"enter the top 10: {', '.join(ladder['entering'])}" in table
    assert f"leave the top 10: {', '.join(ladder['leaving'])}" in table
    # the table shows the five largest gains and losses
    heading_index = table.index("catan-elo/top")
    assert [line.split()[0] for line in table[heading_index + 3 : heading_index + 14]] == [
        "player",
        *_list_largest(ladder),
    ]


def _list_largest(ladder: dict[str, Any]) -> list[str]:
    """Return the players of the first and the last five changes."""
    players = [row["player"] for row in ladder["changes"]]
    assert len(players) > 10
    return players[:5] + players[-5:]
