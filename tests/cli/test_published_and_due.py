"""Published lists without rulesets of months: `lists`, `publish --due`, and ladder names with a month or a day."""

from collections.abc import Callable

import pytest
from correction_helpers import Ratings, read_json
from publishing_helpers import BASIC, MARCH, create_published_ledger, publish
from test_only_ladder import make_one_ladder

NO_TIMED_LISTS = (
    "No ruleset of this ledger makes lists of months or years. Shipped rulesets that do: catan-monthly, catan-open, "
    "catan-annual; publish one of them: ratings rules publish --shipped catan-monthly\n"
)


def test_lists_show_published_ladders(copy_ledger_file: Callable[..., str], ratings: Ratings) -> None:
    """`lists` shows a ladder published as of a day, and does not report that there are no lists of months."""
    db = copy_ledger_file(make_one_ladder)
    output = publish(ratings, db, BASIC, "--as-of", "2024-03-31")

    (row,) = read_json(ratings, db, "lists")["published"]
    assert (row["ladder"], row["as_of"], row["players"]) == (BASIC, "2024-03-31T21:59:59.999999Z", 3)
    result = ratings("lists", db=db)
    assert result.stderr == ""
    assert result.stdout.startswith("1 published list\n\n")
    assert "catan-elo/basic  2024-03-31 21:59" in result.stdout
    assert result.stdout.endswith(
        "\nShow a published list: ratings standings catan-elo/basic --as-published\n"
        "Find the lists that would come out differently today: ratings diff published now\n"
    )
    assert read_json(ratings, db, "standings", BASIC, "--as-published")["published"]["position"] == output["position"]


def test_published_lists_of_a_period(copy_ledger_file: Callable[..., str], ratings: Ratings) -> None:
    """With --period, `lists` shows the published lists of its months and those as of a date in it, and no others."""
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
    """Without rulesets of months, `publish --due` says so, names shipped ones, and says how to publish a ladder."""
    assert ratings("publish", "--due", db=copy_ledger_file(make_one_ladder)).stdout == (
        "No list is due.\n"
        + NO_TIMED_LISTS
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
def test_ladder_name_with_a_day_gets_the_option_for_that_day(
    name: str, day: str | None, copy_ledger_file: Callable[..., str], ratings: Ratings
) -> None:
    """A name with a month or day, of a ruleset without months, is refused with the option that shows a valid day."""
    db = copy_ledger_file(make_one_ladder)
    assert ratings("rules", "publish", "--shipped", "elo", "--game", "chess", db=db).exit_code == 0

    refused = ratings("standings", name, db=db)
    assert (refused.exit_code, "is not a ladder" in refused.stderr) == (2, True)
    hint = f"; for a ladder as it stood on a day, add --as-of {day}\n"
    assert refused.stderr.endswith(hint) if day else "--as-of" not in refused.stderr
