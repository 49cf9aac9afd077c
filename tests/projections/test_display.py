"""The display of results: a short line for each, tables in notebooks, sequences of rows, and numbers that format."""

import json
import pickle
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from random import Random
from typing import Any

import pytest
from test_views import LADDER, make_ledger_with_games

import ratings_ledger as rl
from ratings_ledger import ExactNumber, Result, RowSequence
from ratings_ledger.projections.queries.display import ROWS_MAX
from ratings_ledger.projections.replay.ladder_names import distinct_ladders, drop_duplicate_ladders
from ratings_ledger.rules import decimal

NAMES = ["<script>alert(1)</script>", "Ольга & Łukasz", "美咲", 'O"Hara', "ʻŌlelo", "مريم"]
SEQUENCES: dict[str, Callable[[rl.Ledger, rl.View], RowSequence[Any]]] = {
    "standings": lambda ledger, view: view.standings(LADDER),
    "overview": lambda ledger, view: view.overview(LADDER),
    "history": lambda ledger, view: view.history(LADDER, "anna"),
    "ranks": lambda ledger, view: view.ranks(LADDER, "anna"),
    "ladders": lambda ledger, view: view.ladders(),
    "everybody": lambda ledger, view: view.everybody(),
    "lists": lambda ledger, view: view.lists(),
    "games": lambda ledger, view: view.games(),
    "events": lambda ledger, view: view.events(),
    "publications": lambda ledger, view: view.publications(),
    "leagues": lambda ledger, view: view.leagues(),
    "rulesets": lambda ledger, view: view.rulesets(),
    "unmet": lambda ledger, view: view.unmet(LADDER, "anna"),
    "statement": lambda ledger, view: view.statement(LADDER, "anna"),
    "published list": lambda ledger, view: view.compare_published(LADDER),
    "other result": lambda ledger, view: view.other_result("g-1", [2, 1, 3]),
    "event": lambda ledger, view: view.event_impact(21),
    "decisions": lambda ledger, view: view.decisions(0),
    "comparison": lambda ledger, view: ledger.compare(ledger.at(as_of="2024-01-31"), view),
    "difference": lambda ledger, view: ledger.compare(ledger.at(as_of="2024-01-31"), view)[0],
    "attribution": lambda ledger, view: ledger.attribute(LADDER, "anna", ledger.at(as_of="2024-01-31"), view),
}
SEQUENCES["impact"] = lambda ledger, view: propose_correction(ledger).impact()
SEQUENCES["impact of nothing"] = lambda ledger, view: ledger.propose([], by="mira").impact()
OTHER_RESULTS: dict[str, Callable[[rl.Ledger, rl.View], Result]] = {
    "balance": lambda ledger, view: view.balance(LADDER),
    "explanation": lambda ledger, view: view.explain(LADDER, "g-1"),
    "account": lambda ledger, view: view.account(LADDER, "anna"),
    "profile": lambda ledger, view: view.profile(LADDER, "anna"),
    "person": lambda ledger, view: view.person("anna"),
    "statistics": lambda ledger, view: view.statistics("anna"),
    "story": lambda ledger, view: view.timeline("g-1"),
    "prediction": lambda ledger, view: view.predict(LADDER, ["anna", "ben"]),
    "ruleset": lambda ledger, view: view.ruleset("club-catan-elo"),
    "last event": lambda ledger, view: view.last_event(LADDER),
    "status": lambda ledger, view: ledger.status(),
}


def propose_correction(ledger: rl.Ledger) -> rl.Proposal:
    """Propose a correction that reverses the first game."""
    game = ledger.at().games("g-1")[0].data
    places = {1: 3, 2: 2, 3: 1}
    reversed_seats = [{**seat, "place": places[seat["place"]]} for seat in game["participants"]]
    data = {"game_id": "g-1", "reason": "turned", "game": {**game, "participants": reversed_seats}}
    return ledger.propose({"type": "game.corrected", "data": data}, by="mira")


@pytest.fixture
def ledger(copy_ledger_file: Callable[..., str]) -> Iterator[rl.Ledger]:
    """Yield the ledger of `make_ledger_with_games`."""
    with rl.open(Path(copy_ledger_file(make_ledger_with_games))) as opened:
        yield opened


def iterate_results(value: Any) -> Iterator[Result]:
    """Yield a result and every result in it."""
    if isinstance(value, Result) and is_dataclass(value):
        yield value
        for member in fields(value):
            yield from iterate_results(getattr(value, member.name))
        if isinstance(value, RowSequence):
            yield from (part for row in value for part in iterate_results(row))
    elif isinstance(value, tuple):
        yield from (part for item in value for part in iterate_results(item))


@pytest.mark.parametrize("name", SEQUENCES | OTHER_RESULTS)
def test_every_result_is_one_short_line(name: str, ledger: rl.Ledger) -> None:
    """A result, and each result in it, is one line without sentinels, raw numbers for times, or ids for machines."""
    result = (SEQUENCES | OTHER_RESULTS)[name](ledger, ledger.at())
    for part in iterate_results(result):
        line = repr(part)
        assert line.startswith(f"{type(part).__name__}(")
        assert len(line) < 170
        assert "\n" not in line
        assert not re.search(r"ABSENT|Fraction|ExactNumber|datetime|\d{16}|object at|event_id", line)


def test_lines_show_main_members(ledger: rl.Ledger) -> None:
    """The lines of a ledger, view, proposal, result and row show their main members."""
    view = ledger.at(as_of="2024-12-31")
    assert repr(ledger) == f"Ledger({ledger.location!r})"
    assert repr(view) == f"Snapshot({ledger.location!r}, as_of='2024-12-31')"
    assert re.fullmatch(r"Head\(position=24, recorded_at='\S+Z', chain_hash='[0-9a-f]{12}…'\)", repr(ledger.head))
    standings = view.standings(LADDER)
    assert repr(standings) == (
        f"Standings(4 rows, ladder='{LADDER}', ruleset='club-catan-elo@1', "
        "as_of=2024-12-31 23:59Z, known_at=24, games=3)"
    )
    assert repr(standings.at) == "Coordinates(as_of='2024-12-31T23:59:59.999999Z', known_at=24)"
    row = standings[0]
    assert repr(row).startswith(f"Standing(rank={row.rank}, player='{row.player}', points=")
    assert repr(view.history(LADDER, "anna").steps) == "Course(3 changes)"
    assert repr(propose_correction(ledger)) == "Proposal(1 to append, 0 refused)"
    assert repr(propose_correction(ledger).impact()).startswith("Impact(7 rows")
    refused_proposal = ledger.propose({"game_id": "g-9"}, by="mira")
    assert repr(refused_proposal) == "Proposal(0 to append, 1 refused)"
    with ledger.at().side_loader():  # the class that checks arguments has the name of the public class
        assert "Checked" not in repr(view)


class CellParser(HTMLParser):
    """A parser that collects the texts of cells, and checks that all elements are closed and none is a script."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        assert tag != "script"
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1] in ("td", "th", "small"):
            self.texts.append(data)


def parse_cells(result: Any) -> list[str]:
    """Return the texts of the cells that a notebook shows."""
    parser = CellParser()
    parser.feed(result._repr_html_())
    parser.close()
    assert parser.open == []
    return parser.texts


@pytest.mark.parametrize("name", SEQUENCES | OTHER_RESULTS)
def test_every_result_is_a_table_in_a_notebook(name: str, ledger: rl.Ledger) -> None:
    """A result, and each result in it, is well-formed HTML whose style takes its colours from the notebook."""
    result = (SEQUENCES | OTHER_RESULTS)[name](ledger, ledger.at())
    for part in iterate_results(result):
        texts = parse_cells(part)
        assert not any("ABSENT" in text or "Fraction" in text for text in texts)
    html = result._repr_html_()
    assert "color:inherit" in html
    assert not re.search(r"color:(?!inherit)#?\w", html)


def test_names_are_escaped_and_long_tables_cut() -> None:
    """Names of every script are shown as written, a script element as text; a cut table says how many rows it has."""
    rows = tuple(
        rl.PersonRow(NAMES[number % len(NAMES)], "elo/all", number + 1, ExactNumber(number, 3), 9)
        for number in range(1_234)
    )
    everybody = rl.Everybody(at=_build_coordinates(), rows=rows)
    texts = parse_cells(everybody)
    assert set(NAMES) <= set(texts)
    assert texts[-1] == f"the first {ROWS_MAX} of 1,234 rows"
    assert texts[:5] == ["player", "ladder", "rank", "points", "games"]
    assert texts[5:15] == [NAMES[0], "elo/all", "1", "0.00", "9", NAMES[1], "elo/all", "2", "0.33", "9"]
    assert "<script" not in repr(everybody)
    assert parse_cells(rl.Everybody(at=_build_coordinates(), rows=())) == ["0 rows"]


def _build_coordinates() -> Any:
    """Return the coordinates of an empty ledger."""
    from ratings_ledger.projections.queries.coordinates import Coordinates

    return Coordinates(None, 0, None)


@pytest.mark.parametrize("name", SEQUENCES)
def test_results_with_rows_behave_like_tuples(name: str, ledger: rl.Ledger) -> None:
    """A result that consists of rows behaves like the tuple of its rows."""
    result = SEQUENCES[name](ledger, ledger.at())
    rows = tuple(result)
    assert len(result) == len(rows)
    assert bool(result) == bool(rows)
    assert [*reversed(result)] == [*reversed(rows)]
    assert result[:2] == rows[:2]
    assert result[::-1] == rows[::-1]
    assert result[5000:] == ()
    assert "anna" not in result
    for index, row in enumerate(rows):
        assert result[index] == row == result[index - len(rows)]
        assert row in result
        assert result.index(row) == rows.index(row)
        assert result.count(row) == rows.count(row)
    with pytest.raises(IndexError):
        result[len(rows)]


def test_rows_do_not_change_the_plain_data(ledger: rl.Ledger) -> None:
    """A result that is a sequence still dumps to an object, and a result of only rows to a list."""
    view = ledger.at()
    assert json.dumps(view.standings(LADDER).model_dump())[0] == "{"
    assert json.dumps(view.rulesets().model_dump())[0] == "["


@pytest.mark.parametrize("name", SEQUENCES | OTHER_RESULTS)
def test_numbers_of_results_format(name: str, ledger: rl.Ledger) -> None:
    """Every exact number in every result can be formatted, also on Python versions whose fractions cannot."""
    result = (SEQUENCES | OTHER_RESULTS)[name](ledger, ledger.at())
    for part in iterate_results(result):
        for member in fields(part):  # type: ignore[arg-type]
            value = getattr(part, member.name)
            if isinstance(value, Fraction):
                assert type(value) is ExactNumber, (type(part).__name__, member.name)
                assert float(f"{value:.2f}") == pytest.approx(float(value), abs=0.005001)


@pytest.mark.parametrize(
    ("number", "spec", "text"),
    [
        ("20/3", ".2f", "6.67"), ("-20/3", ".2f", "-6.67"), ("-20/3", ".0f", "-7"), ("20/3", "f", "6.666667"),
        ("1/8", ".2f", "0.13"), ("-1/8", ".2f", "-0.13"), ("5/2", ".0f", "3"), ("-1/1000", ".2f", "0.00"),
        ("1234567/2", ",.1f", "617,283.5"), ("1234567/2", "_.1f", "617_283.5"), ("3/2", "+.1f", "+1.5"),
        ("3/2", " .1f", " 1.5"), ("3/2", ">8.2f", "    1.50"), ("3/2", "<8.2f", "1.50    "),
        ("3/2", "*^8.2f", "**1.50**"), ("-3/2", "08.2f", "-0001.50"), ("-3/2", "x=8.2f", "-xxx1.50"),
        ("1/3", ".1%", "33.3%"), ("12345", ".2e", "1.23e+04"), ("1/3", "g", "0.333333"), ("1/3", ".3", "0.333"),
        ("20/3", "", "20/3"), ("1016", "", "1016"), ("1016", ">6", "  1016"), ("20000/3", ",", "20,000/3"),
        ("20/3", "+", "+20/3"), ("-20/3", "<7", "-20/3  "), ("-20/3", "^9", "  -20/3  "), ("-3/2", "07", "-0003/2"),
    ],
)  # fmt: skip
def test_numbers_format_as_floats_do(number: str, spec: str, text: str) -> None:
    """An exact number takes the format specifications of floats; halves round away from zero."""
    assert format(ExactNumber(number), spec) == text


def test_formats_agree_with_decimals_and_floats() -> None:
    """A format with six places equals the decimal in JSON; other formats equal those of a float."""
    chance = Random(20)
    for _ in range(2_000):
        number = ExactNumber(chance.randint(-(10**9), 10**9), chance.choice((1, 7, 1000, 10**6, 840)))
        assert Fraction(f"{number:.6f}") == Fraction(decimal(number.numerator, number.denominator))
        spec = chance.choice(("", "+", ">12", "<15", "012", ",", "*^20,")) + chance.choice((".3f", ".1f", ".4e", ".1%"))
        spec = spec.replace("*^20,.4e", ".4e")
        expected = format(float(number), spec)
        assert format(number, spec).replace("-0", "0", 1) == expected.replace("-0", "0", 1) or _is_half(number, spec)


def _is_half(number: Fraction, spec: str) -> bool:
    """Tell whether a number is halfway between two results, where floats round to even or not exactly."""
    places = int(spec.rpartition(".")[2][0]) + 2 * spec.endswith("%")
    halves = number * 10**places * 2
    return halves.denominator == 1 and halves.numerator % 2 == 1


def test_numbers_stay_fractions() -> None:
    """An exact number equals its fraction, computes exactly with fractions and integers, and can be pickled."""
    third = ExactNumber(1, 3)
    assert (third, hash(third)) == (Fraction(1, 3), hash(Fraction(1, 3)))
    for result in (third + 1, 1 - third, third * third, Fraction(1, 2) + third, sum([third, third]), -third, 1 / third,
                   abs(third), third**2, third % 1, round(third, 2), Fraction(5) - third):  # fmt: skip
        assert type(result) is ExactNumber
    assert third + Fraction(2, 3) == 1
    assert (type(third * 0.5), type(round(third)), f"{third - 1:.2f}") == (float, int, "-0.67")
    assert [repr(ExactNumber(text)) for text in ("1077.343152", "20/3", "-8")] == [
        "ExactNumber('1077.343152')", "ExactNumber('20/3')", "ExactNumber('-8')",
    ]  # fmt: skip
    assert type(pickle.loads(pickle.dumps(third))) is ExactNumber


@pytest.mark.parametrize("spec", ["d", "s", ".2x", "..2f", ".99999999f", "ff", "é.2f "])
def test_invalid_formats_are_rejected(spec: str) -> None:
    """An invalid format specification raises a `ValueError` with a valid example."""
    with pytest.raises(ValueError, match=r"invalid format specifier .* write, for example, '\.2f'"):
        format(ExactNumber(1, 3), spec)


@pytest.mark.parametrize(
    ("rows", "shown"),
    [
        ([("elo/all", 1), ("elo/2", 1)], ["elo/all"]),
        ([("elo/2", 1), ("elo/2", 2), ("elo/all", 1), ("elo/all", 2)], ["elo/all", "elo/all"]),
        ([("elo/2", 1), ("elo/all", 1), ("elo/all", 2)], ["elo/2", "elo/all", "elo/all"]),
        ([("elo/all", 1), ("elo/3-4", 1), ("elo/2", 2)], ["elo/all", "elo/2"]),
        ([("elo/2", 1)], ["elo/2"]),
        ([("elo/all", 1), ("glicko/2", 1)], ["elo/all", "glicko/2"]),
        ([("catan-elo/all", 1), ("catan-elo/basic", 1)], ["catan-elo/all", "catan-elo/basic"]),
        ([], []),
    ],
)  # fmt: skip
def test_duplicate_ladder_is_hidden(rows: list[tuple[str, int]], shown: list[str]) -> None:
    """Rows of a ladder of one size are hidden if and only if those of the ladder of all sizes are equal."""
    table = [rl.PersonRow("anna", ladder, rank, ExactNumber(7), 1) for ladder, rank in rows]
    assert [row.ladder for row in drop_duplicate_ladders(table)] == shown


def test_ladder_that_differs_in_one_table_is_shown() -> None:
    """A ladder of one size that differs in one of several tables is shown in all of them."""
    alike = [rl.PersonRow("anna", ladder, 1, ExactNumber(7), 1) for ladder in ("elo/2", "elo/all")]
    unlike = [rl.PersonRow("ben", ladder, rank, ExactNumber(7), 1) for ladder, rank in (("elo/2", 1), ("elo/all", 2))]
    assert distinct_ladders(alike) == {"elo/all"}
    assert distinct_ladders(alike, unlike) == {"elo/2", "elo/all"}
