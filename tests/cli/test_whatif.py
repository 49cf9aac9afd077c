"""`whatif`: a ruleset that is not published beside the ledger as it is, with numbers that can be checked by hand."""

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
    catan,
    head,
    new_ledger,
    read,
    take_in,
    three_games,
)

Rules = Callable[..., Path]
NAME = "catan-elo@new"


pytestmark = pytest.mark.ledger(make=three_games, store="sqlite")


@pytest.fixture
def rules(tmp_path: Path) -> Rules:
    """A function that writes the shipped Elo ruleset as version `new`, in force since 1900, with other lines."""

    def write(changes: dict[str, str] | None = None) -> Path:
        text = (SHIPPED / "catan-elo-2009-01.toml").read_text(encoding="utf-8")
        for old, new in {'"2009-01"': '"new"', "2009-01-31": "1900-01-01", **(changes or {})}.items():
            assert old in text
            text = text.replace(old, new)
        file = tmp_path / "new.toml"
        file.write_text(text, encoding="utf-8")
        return file

    return write


SIXTEEN = {"k_per_pair = 8": "k_per_pair = 16"}
# 16 from the last of three equals to the first; then cleo is 16 behind dora, and 8.37 are rounded
CHANGES = [("anna", "1008", "8", "1016"), ("cleo", "996", "-4", "992"), ("dora", "996", "-4", "992")]


def whatif(ratings: Ratings, db: str, file: Path, *options: object) -> list[dict[str, Any]]:
    """The variants that `whatif` tells as JSON."""
    return list(read(ratings, db, "whatif", file, *options)["variants"])


def moves(ladder: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Player and points of each change."""
    return [(row["player"], row["before"], row["change"], row["after"]) for row in ladder["changes"]]


def expected(ahead: float) -> float:
    """What somebody is expected to score who is so many points ahead."""
    return 1 / (1 + 10 ** (-ahead / 400))


def measures(pairs: list[tuple[float, float]], accuracy: float | None) -> dict[str, Any]:
    """The quality of predictions (expected, scored), with so much accuracy over those that did not tie."""
    losses = [-(s * math.log(e) + (1 - s) * math.log(1 - e)) for e, s in pairs]
    return {
        "pairs": len(pairs), "decided": sum(s != 0.5 for _, s in pairs),
        "log_loss": f"{sum(losses) / len(pairs):.6f}",
        "brier": f"{sum((e - s) ** 2 for e, s in pairs) / len(pairs):.6f}",
        "accuracy": None if accuracy is None else f"{accuracy:.6f}",
    }  # fmt: skip


def test_whatif_table_and_nothing_written(db: str, rules: Rules, ratings: Ratings) -> None:
    """`whatif` prints the changes under another version as a table and writes nothing."""
    file, before, hashed = rules(SIXTEEN), head(ratings, db), hashlib.sha256(Path(db).read_bytes()).hexdigest()
    found = ratings("whatif", file, db=db)

    assert found == (0, (
        "All games under catan-elo@new, as if in force from the start\nknown at position 5\nNothing is recorded.\n\n"
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
        "Less is better, except for the accuracy.\n"
    ), "")  # fmt: skip
    assert (head(ratings, db), hashlib.sha256(Path(db).read_bytes()).hexdigest()) == (before, hashed)


def test_whatif_json_and_csv_agree(db: str, rules: Rules, ratings: Ratings) -> None:
    """`whatif` gives the same changes and measures of quality as JSON and CSV."""
    file = rules(SIXTEEN)
    found = read(ratings, db, "whatif", file)
    (variant,) = found["variants"]
    (ladder,) = variant["ladders"]

    # among equals 1/2 is expected, and predicted; cleo, who is 8 or 16 points behind, then beats dora
    equal = [(0.5, 1.0)] * 3
    predicted = {
        "before": measures([*equal, (expected(-8), 1)], 1.5 / 4),
        "after": measures([*equal, (expected(-16), 1)], 1.5 / 4),
    }  # fmt: skip
    assert {name: found[name] for name in ("as_of", "known_at", "rules")} == {
        "as_of": None,
        "known_at": 5,
        "rules": None,
    }
    assert (variant["ruleset"], variant["set"], variant["published"]) == (NAME, {}, [])
    assert moves(ladder) == CHANGES
    assert ladder["quality"] == predicted
    told = {name: value for name, value in ladder.items() if name not in ("quality", "changes")}
    assert told == {
        "ladder": BASIC, "players": 3, "ranks": 0, "swapped": 0, "up": {"player": "anna", "change": "8"},
        "down": {"player": "cleo", "change": "-4"}, "entering": [], "leaving": [],
    }  # fmt: skip
    assert ratings("whatif", file, "--format", "csv", db=db).stdout == (
        "set,ladder,players,ranks,swapped,version,pairs,log_loss,brier,accuracy\n"
        + "".join(
            f",{BASIC},3,0,0,{which},4,{one['log_loss']},{one['brier']},{one['accuracy']}\n"
            for which, one in predicted.items()
        )
    )


def test_ties_count_half(db: str, rules: Rules, ratings: Ratings) -> None:
    """Tied pairs count half in the measures of quality and are left out of the accuracy."""
    take_in(ratings, db, catan("c-3", "anna=cleo", "ben", at="2010-03-08T12:00:00Z"))
    (variant,) = whatif(ratings, db, rules())
    (ladder,) = variant["ladders"]

    # anna 1008 and cleo 996 tie, both beat ben, who has 1000
    pairs = [(0.5, 1.0)] * 3 + [(expected(-8), 1), (expected(12), 0.5), (expected(8), 1), (expected(-4), 1)]
    assert ladder["quality"]["before"] == ladder["quality"]["after"] == measures(pairs, (1.5 + 0 + 1 + 0) / 6)
    assert (ladder["players"], ladder["changes"]) == (0, [])
    assert "\nNo points change.\n" in ratings("whatif", rules(), db=db).stdout


def test_only_ties_give_no_accuracy(tmp_path: Path, rules: Rules, ratings: Ratings) -> None:
    """When all pairs are tied, there is no accuracy."""
    name = new_ledger(ratings, tmp_path / "ties.db")
    take_in(ratings, name, catan("c-1", "anna=ben"))
    (variant,) = whatif(ratings, name, rules())

    assert variant["ladders"][0]["quality"]["after"] == measures([(0.5, 0.5)], None)
    assert "0.25000" not in ratings("whatif", rules(), db=name).stdout
    assert ratings("whatif", rules(), db=name).stdout.splitlines()[-2].split()[-3:] == ["0.69315", "0.00000", "-"]


def test_rule_without_predictions_has_no_quality(tmp_path: Path, db: str, ratings: Ratings) -> None:
    """A rule that predicts nothing has no measures of quality."""
    file = tmp_path / "pool.toml"
    text = (SHIPPED / "galactic-points-1.toml").read_text(encoding="utf-8")
    file.write_text(text.replace('version = "1"', 'version = "2"').replace("2 = [0, 16]", "2 = [0, 20]"), "utf-8")
    (variant,) = whatif(ratings, db, file)
    (ladder,) = variant["ladders"]

    assert moves(ladder) == [("anna", "1160", "40", "1200"), ("ben", "840", "-40", "800")]
    assert ladder["quality"] == {"before": None, "after": None}
    assert "predicted" not in ratings("whatif", file, db=db).stdout


# -- several values


def test_each_combination_is_tried(db: str, rules: Rules, ratings: Ratings) -> None:
    """With several values for several keys, each combination is tried."""
    options = ("--set", "params.k_per_pair=8,16", "--set", "params.scale=400,200")
    found = whatif(ratings, db, rules(), *options)
    shown = ratings("whatif", rules(), *options, db=db).stdout.splitlines()

    assert [variant["set"] for variant in found] == [
        {"params.k_per_pair": k, "params.scale": scale} for k in ("8", "16") for scale in ("400", "200")
    ]
    assert [moves(variant["ladders"][0]) for variant in found][::2] == [[], CHANGES]
    assert shown[3:8] == [
        "", BASIC, "set                      players  ranks  up  down  log loss    Brier  accuracy",
        "as it is                       0      0             0.69897  0.25291    37.50%",
        "k_per_pair=8 scale=400         0      0             0.69897  0.25291    37.50%",
    ]  # fmt: skip
    assert [line.split()[:2] for line in shown[8:]] == [
        ["k_per_pair=8", "scale=200"], ["k_per_pair=16", "scale=400"], ["k_per_pair=16", "scale=200"],
    ]  # fmt: skip
    lines = ratings("whatif", rules(), *options, "--format", "csv", db=db).stdout.splitlines()
    assert [line.partition(",")[0] for line in lines[1::2]] == [
        f"k_per_pair={k} scale={scale}" for k in (8, 16) for scale in (400, 200)
    ]


def test_empty_value_drops_the_key(db: str, rules: Rules, ratings: Ratings) -> None:
    """An empty value leaves the key out of the ruleset that is tried."""
    file = rules()
    (variant,) = whatif(ratings, db, file, "--set", "params.k_per_pair=", "--set", "params.k_total=32")
    one, other = whatif(ratings, db, file, "--set", "params.start=,900")

    # 32 / 2 = 16 each among three, 32 among two
    assert variant["set"] == {"params.k_per_pair": "", "params.k_total": "32"}
    assert moves(variant["ladders"][0])[0] == CHANGES[0]
    # without a start everybody begins with 1000
    assert [moves(each["ladders"][0])[:1] for each in (one, other)] == [[], [("anna", "1008", "-100", "908")]]


@pytest.mark.parametrize(
    ("setting", "code", "told"),
    [
        ("params.k=1", 1, "params.k: unknown key"),
        ("params.k_per_pair=x", 1, "params.k_per_pair: "),
        ("params.k_per_pair=", 1, "params: give either k_per_pair"),
        ("params.k_total=3", 1, "params: give either k_per_pair"),
        ("version=", 1, "version: missing key"),
        ("rule=nothing/1", 1, "'nothing/1' is not installed"),
        ("id.x=3", 2, "'id' is not a table"),
        ("params=3", 2, "'params' holds several values"),
        ("scope.game=chess", 2, "'game' holds several values"),
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
    setting: str, code: int, told: str, db: str, rules: Rules, ratings: Ratings
) -> None:
    """A wrong key or value ends with one clear message and no output."""
    result = ratings("whatif", rules(), "--set", setting, db=db)

    assert (result.exit_code, result.stdout) == (code, ""), result
    assert told in result.stderr
    assert "Traceback" not in result.stderr


def test_number_as_a_reason_is_refused_in_plain_words(db: str, rules: Rules, ratings: Ratings) -> None:
    """A number where a file gives the reason why a value is assumed is told as that, with its line."""
    file = rules()
    file.write_text(file.read_text(encoding="utf-8").partition("[assumed]")[0] + "[assumed]\nk_total = 24\n")
    lines = file.read_text(encoding="utf-8").splitlines()

    assert ratings("whatif", file, db=db).stderr == (
        f"Error: {file}:{len(lines)}: assumed.k_total: must be a text in quotes that gives the reason for the "
        "assumption (it is 24)\n"
    )


# -- which ruleset, which ladders


def test_published_ruleset_is_tried_with_other_values(db: str, rules: Rules, ratings: Ratings) -> None:
    """A published ruleset, or one version of it, is tried like a file that says the same."""
    settings = ("--set", "params.k_per_pair=8,16")
    of_file = whatif(ratings, db, rules(), *settings)

    for name in ("catan-elo", "catan-elo@2009-01"):
        found = whatif(ratings, db, name, *settings)
        assert [one["ladders"] for one in found] == [one["ladders"] for one in of_file]
        assert moves(found[1]["ladders"][0]) == CHANGES
        assert {one["ruleset"] for one in found} == {"catan-elo@2009-01"}


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("catan-ello", "no ruleset 'catan-ello' is published at position 5; see: ratings rules list; did you mean "
         "catan-elo?"),
        ("catan-elo@9", "did you mean catan-elo@2009-01?"), ("no.toml", "'no.toml' is no file"),
        ("/", "'/' is a folder"),
    ],
)  # fmt: skip
def test_neither_file_nor_ruleset(name: str, told: str, db: str, ratings: Ratings) -> None:
    """What is neither a file nor a published ruleset is wrong usage, and says what was probably meant."""
    done = ratings("whatif", name, db=db)
    assert (done.exit_code, done.stdout, done.stderr.endswith(f"{told}\n")) == (2, "", True), done


def test_nothing_to_compare_with_is_told(db: str, rules: Rules, ratings: Ratings) -> None:
    """A file whose id no ladder has is compared with nothing, which is told with the ruleset that scores its games."""
    done = ratings("whatif", rules(), "--set", "id=house-catan", "--set", "params.k_total=", db=db)

    assert done.stderr == (
        "note: no ladder of house-catan has a game, so there is nothing to compare it with; catan-elo scores its "
        'games: did you mean id = "catan-elo"?\n'
    )
    assert "as it is" not in done.stdout
    assert ratings("whatif", "catan-elo", db=db).stderr == ""


def test_new_ruleset_has_new_players(db: str, rules: Rules, ratings: Ratings) -> None:
    """On the ladders of a ruleset with a new id, all players are new."""
    done = ratings("whatif", rules(), "--set", "id=other", "--format", "json", db=db)
    (variant,) = json.loads(done.stdout)["variants"]
    (ladder,) = variant["ladders"]

    assert (variant["ruleset"], ladder["ladder"], ladder["players"]) == ("other@new", "other/basic", 4)
    assert {(row[1], row[2]) for row in moves(ladder)} == {(None, None)}
    assert (ladder["entering"], ladder["leaving"]) == (["anna", "ben", "cleo", "dora"], [])
    assert (ladder["up"], ladder["down"], ladder["quality"]["before"]) == (None, None, None)
    assert ladder["quality"]["after"]["pairs"] == 4


def test_other_partition_is_refused(db: str, rules: Rules, ratings: Ratings) -> None:
    """A version with another partition than the ruleset's is refused."""
    result = ratings("whatif", rules({'by = ["group"]': 'by = ["city", "group"]'}), db=db)

    assert (result.exit_code, result.stdout) == (1, "")
    assert "catan-elo@new: partition" in result.stderr


@pytest.mark.parametrize(
    ("ladder", "code", "told"),
    [
        ("catan-elo/domaine", 1, "catan-elo/domaine has no games under catan-elo@new; it has catan-elo/basic"),
        ("catan-elo", 2, "'catan-elo' is not a ladder"),
        ("nothing/x", 2, "no ruleset is called 'nothing'"),
    ],
)
def test_unknown_ladder_is_refused(ladder: str, code: int, told: str, db: str, rules: Rules, ratings: Ratings) -> None:
    """Asking `whatif` for a ladder that does not exist is refused with the reason."""
    result = ratings("whatif", rules(), "--ladder", ladder, db=db)

    assert (result.exit_code, result.stdout, told in result.stderr) == (code, "", True), result


def test_only_named_ladder_is_shown(db: str, rules: Rules, ratings: Ratings) -> None:
    """With `--ladder`, only that ladder is shown."""
    take_in(ratings, db, catan("d-1", "anna", "ben", group="domaine"))
    file = rules(SIXTEEN)

    assert [one["ladder"] for one in whatif(ratings, db, file)[0]["ladders"]] == [BASIC, "catan-elo/domaine"]
    (only,) = whatif(ratings, db, file, "--ladder", "catan-elo/domaine")[0]["ladders"]
    assert moves(only) == [("anna", "1004", "4", "1008"), ("ben", "996", "-4", "992")]


def test_axes_limit_the_games(db: str, rules: Rules, ratings: Ratings) -> None:
    """With `--as-of` or `--known-at`, only the games played or recorded by then are tried."""
    file = rules(SIXTEEN)
    first = [("anna", "1008", "8", "1016"), ("cleo", "992", "-8", "984")]

    for options in (["--as-of", "2010-03-05"], ["--known-at", 3]):
        found = read(ratings, db, "whatif", file, *options)
        assert moves(found["variants"][0]["ladders"][0]) == first
    assert ratings("whatif", file, "--as-of", "2010-03-05", db=db).stdout.splitlines()[2] == (
        "played up to 2010-03-05 22:59 UTC"
    )
    for options in (["--as-of", "soon"], ["--known-at", 99]):
        assert ratings("whatif", file, *options, db=db).exit_code == 2


def test_top_ten_changes_are_named(db: str, rules: Rules, ratings: Ratings) -> None:
    """When the order turns, the players who enter and leave the top ten are named.

    Ten players win one game of four, ten win two of two: 12 and 8 points with K 8 for each pair,
    3 and 8 with 8 in all.
    """
    lines = [
        catan(f"four-{n}", f"once-{n}", *(f"loser-{n}{seat}" for seat in "abc"), at="2010-04-01T12:00:00Z", group="top")
        for n in range(10)
    ]
    lines += [
        catan(f"two-{n}{turn}", f"twice-{n}", f"loser-{n}{turn}", at="2010-04-02T12:00:00Z", group="top")
        for n in range(10) for turn in "de"
    ]  # fmt: skip
    take_in(ratings, db, *lines)
    options = ("--ladder", "catan-elo/top", "--set", "params.k_per_pair=", "--set", "params.k_total=8")
    (ladder,) = whatif(ratings, db, rules(), *options)[0]["ladders"]
    shown = ratings("whatif", rules(), *options, db=db).stdout.splitlines()

    assert ladder["entering"] == [f"twice-{n}" for n in range(10)]
    assert ladder["leaving"] == [f"once-{n}" for n in range(10)]
    assert ladder["swapped"] >= 100
    assert f"enter the top 10: {', '.join(ladder['entering'])}" in shown
    assert f"leave the top 10: {', '.join(ladder['leaving'])}" in shown
    # five gains and five losses of all
    first = shown.index("catan-elo/top")
    assert [line.split()[0] for line in shown[first + 3 : first + 14]] == ["player", *_largest(ladder)]


def _largest(ladder: dict[str, Any]) -> list[str]:
    """The players of the first and the last five changes."""
    players = [row["player"] for row in ladder["changes"]]
    assert len(players) > 10
    return players[:5] + players[-5:]
