"""A program that uses the library correctly: type checkers report no error and know each type."""

from collections.abc import Collection
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import assert_type

import ratings_ledger as rl


def show_standings(ledger: rl.Ledger, ladder: str) -> list[str]:
    """Return the lines of a table."""
    view = ledger.at(as_of=date(2024, 12, 31), known_at=52)
    assert_type(view, rl.Snapshot)
    standings = view.standings(ladder, limit=10)
    assert_type(standings, rl.Standings)
    assert_type(standings.digest, str)
    lines: list[str] = []
    for row in standings.rows:
        assert_type(row, rl.Standing)
        assert_type(row.points, Fraction)
        assert_type(row.rank, int | None)
        rank = "-" if row.rank is None else str(row.rank)
        lines.append(f"{rank} {row.player} {float(row.points):.2f} {row.games}")
    return lines


def read_rows(view: rl.Snapshot, ladder: str) -> str:
    """Use results as the sequences of rows that they are, and format their numbers."""
    standings = view.standings(ladder)
    assert_type(standings[0], rl.Standing)
    assert_type(standings[:3], tuple[rl.Standing, ...])
    assert_type([row.player for row in standings], list[str])
    assert_type([*reversed(standings)], list[rl.Standing])
    assert_type(view.overview(ladder)[0], rl.OverviewRow)
    assert_type([row.last_played for row in view.overview(ladder)], list[datetime | None])
    assert_type(view.history(ladder, "mira")[-1], rl.Change)
    assert_type(view.rulesets()[0], rl.RulesetRow)
    assert_type(view.events()[0], rl.RecordedEvent)
    assert_type(next(iter(view.ladders())), rl.LadderRow)
    assert_type(standings.index(standings[0]), int)
    standings.to_pandas()
    standings.to_polars(exact=True)
    rows: Collection[rl.Standing] = standings
    total = sum((row.points for row in rows), rl.ExactNumber(0))
    assert_type(rl.ExactNumber("20/3") + 1, Fraction)
    return f"{len(standings)} rows, {standings[0] in standings}, {standings[0].points:+,.2f} of {total:.2f}"


def explain_changes(view: rl.Snapshot, ladder: str, player: str) -> dict[str, Fraction]:
    """Return what each opponent gave and took."""
    total: dict[str, Fraction] = {}
    history = view.history(ladder, player)
    assert_type(history.rows, tuple[rl.Change, ...])
    for change in history.rows:
        assert_type(change.occurred_at, datetime)
        if change.game_id is None:
            continue
        explanation = view.explain(ladder, change.game_id)
        assert_type(explanation, rl.GameExplanation)
        for person in explanation.players:
            if person.player == player:
                for term in person.terms:
                    assert_type(term.amount, Fraction | None)
                    total[term.term] = total.get(term.term, Fraction(0)) + (term.amount or 0)
    return total


def look_around(ledger: rl.Ledger) -> None:
    """Ask the other questions."""
    view = ledger.at()
    assert_type(ledger.head.position, int)
    assert_type(view.ladders(), rl.AllLadders)
    assert_type(view.balance("elo-catan/all").sum, Fraction)
    assert_type(view.profile("elo-catan/all", "mira"), rl.Profile)
    assert_type(view.statistics("mira"), rl.PlayerStatistics)
    assert_type(view.league("spring"), rl.LeagueState)
    assert_type(view.games(player="mira").rows, tuple[rl.RecordedGame, ...])
    assert_type(view.events("game:wl-09").rows, tuple[rl.RecordedEvent, ...])
    assert_type(view.last_event("elo-catan/all", "mira"), rl.LastEvent)
    prediction = view.predict("elo-catan/all", ["mira", "yusuf"])
    assert_type(prediction, rl.Prediction)
    assert_type([side.chance for side in prediction.sides], list[Fraction])
    for result in view.every_standings():
        if isinstance(result, rl.ReplayFailure):
            assert_type(result.reason, str)
        else:
            assert_type(result, rl.Standings)
    assert_type(ledger.compare(view, ledger.published()), rl.Differences)
    assert_type(ledger.attribute("elo-catan/all", "mira", view, ledger.at()), rl.PointsAttributed)
    assert_type(ledger.simulate({"id": "elo-catan", "version": "2"}, view), rl.Simulation)


def record_game(ledger: rl.Ledger, game: dict[str, object], by: str) -> int:
    """Record a game and return its position, or that of the head if it was refused."""
    plan = ledger.propose({"type": "game.recorded", "data": game, "occurred_at": datetime.now().astimezone()}, by)
    assert_type(plan, rl.Proposal)
    for rejection in plan.rejections:
        assert_type(rejection, rl.Rejection)
        print(rejection.code, rejection.message)  # noqa: T201
    try:
        return plan.commit().position
    except rl.ChangedMeanwhile:
        return record_game(ledger, game, by)
    except rl.Refused as problem:
        assert_type(problem.code, str)
        return ledger.head.position


def create_ledger(path: Path) -> rl.Ledger:
    """Create a ledger, publish rulesets of each kind, and bring an older one up."""
    created = rl.create(path, zone="Europe/Berlin", rulesets=["elo-catan", Path("house.toml"), {"id": "house"}])
    assert_type(created, rl.Ledger)
    assert_type(created.publish("glicko-chess", by="mira"), list[str])
    ruleset = rl.Ruleset.model_validate(created.at().ruleset("elo-catan").data)
    created.publish(ruleset, by="mira")
    assert_type(rl.create(":memory:"), rl.Ledger)
    assert_type(rl.example(), rl.Ledger)
    try:
        return rl.open(path, create=True)
    except rl.OldSchema:
        return rl.upgrade(path)


def follow_log(ledger: rl.Ledger, game: dict[str, object]) -> None:
    """Read the log forward, follow it, and see where each event of a commit is."""
    assert_type(ledger.log(after=5, limit=10, types=["game.recorded"]).rows, tuple[rl.RecordedEvent, ...])
    for row in ledger.follow(after=5, poll_seconds=0.5, timeout_seconds=3):
        assert_type(row, rl.RecordedEvent)
    plan = ledger.propose(game, by="mira")
    assert_type(plan.new_players, tuple[str, ...])
    assert_type(plan.close_names, tuple[rl.CloseName, ...])
    committed = plan.commit()
    assert_type(committed, rl.Committed)
    for event in committed.events:
        assert_type(event, rl.CommittedEvent)
        assert_type((event.position, event.appended), tuple[int, bool])


def main(path: str) -> None:
    """Open a ledger and ask."""
    try:
        with rl.open(path) as ledger:
            assert_type(ledger, rl.Ledger)
            print("\n".join(show_standings(ledger, "elo-catan/all")))  # noqa: T201
    except rl.LedgerError as problem:
        assert_type(problem.exit_code, int)
        raise SystemExit(problem.exit_code) from None
