"""Where nothing is due and no list has a month: what the ledger's own ladders have instead, and where it is seen."""

from collections.abc import Callable

import pytest
from correction_helpers import Ratings, read_json
from publishing_helpers import BASIC, MARCH, create_published_ledger, publish
from test_only_ladder import make_one_ladder

NO_TIMED = (
    "No ruleset of this ledger makes lists of months or years. Shipped rulesets that do: catan-monthly, catan-open, "
    "catan-annual; publish one of them: ratings rules publish --shipped catan-monthly\n"
)


def test_lists_show_published_ladders(copy_ledger_file: Callable[..., str], ratings: Ratings) -> None:
    """Given a ladder published as of a day, `lists` shows it, and does not say that no list has a month."""
    db = copy_ledger_file(make_one_ladder)
    output = publish(ratings, db, BASIC, "--as-of", "2024-03-31")

    (row,) = read_json(ratings, db, "lists")["published"]
    assert (row["ladder"], row["as_of"], row["players"]) == (BASIC, "2024-03-31T21:59:59.999999Z", 3)
    stdout = ratings("lists", db=db).stdout
    assert stdout.startswith("1 published list\n\n")
    assert "catan-elo/basic  2024-03-31 21:59" in stdout
    assert stdout.endswith(
        "\nShow a published list: ratings standings catan-elo/basic --as-published\n"
        "Find the lists that would come out differently today: ratings diff published now\n"
    )
    assert read_json(ratings, db, "standings", BASIC, "--as-published")["published"]["position"] == output["position"]


def test_published_lists_of_a_period(copy_ledger_file: Callable[..., str], ratings: Ratings) -> None:
    """With --period, those of its months and those of what was played up to then are shown, and no others."""
    db = copy_ledger_file(create_published_ledger)
    publish(ratings, db, MARCH)
    publish(ratings, db, BASIC, "--as-of", "2010-04-30")

    lists = {
        period: [row["ladder"] for row in read_json(ratings, db, "lists", "--period", period)["published"]]
        for period in ("2010", "2010-03", "2010-04", "2011")
    }
    assert lists == {"2010": [BASIC, MARCH], "2010-03": [MARCH], "2010-04": [BASIC], "2011": []}
    assert ratings("lists", "--period", "2010-04", db=db).stderr == ""
    assert ratings("lists", "--period", "2011", db=db).stderr == (
        "No list of a month or year has a game during 2011 yet.\n"
    )


def test_due_without_lists_says_what_is_published(copy_ledger_file: Callable[..., str], ratings: Ratings) -> None:
    """Given no ruleset of months, `publish --due` says so, which there are, and how a ladder is published."""
    assert ratings("publish", "--due", db=copy_ledger_file(make_one_ladder)).stdout == (
        "No list is due.\n"
        + NO_TIMED
        + "To publish another ladder: ratings publish LADDER --as-of DATE\n"
        + "To publish it with --due after each month: ratings publish LADDER --every month\n"
    )


@pytest.mark.parametrize(
    ("name", "day"),
    [
        ("elo-chess/2024-02", "2024-02-29"),
        ("elo-chess/all/2024-09-15", "2024-09-15"),
        ("elo-chess/2024-13", None),
        ("elo-chess/nine", None),
    ],
)
def test_ladder_of_a_month_is_asked_by_a_day(
    name: str, day: str | None, copy_ledger_file: Callable[..., str], ratings: Ratings
) -> None:
    """A name with a month or day, of a ruleset without months, is answered with the option that shows that day."""
    db = copy_ledger_file(make_one_ladder)
    assert ratings("rules", "publish", "--shipped", "elo", "--game", "chess", db=db).exit_code == 0

    refused = ratings("standings", name, db=db)
    assert (refused.exit_code, "is not a ladder" in refused.stderr) == (2, True)
    meant = f"; for a ladder as it stood on a day, add --as-of {day}\n"
    assert refused.stderr.endswith(meant) if day else "--as-of" not in refused.stderr
