"""How explanations look: a game term by term, and how a player's place on a ladder comes about; as tables and CSV."""

from collections.abc import Iterator
from fractions import Fraction
from textwrap import fill

from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.periods import print_open_period, print_waiting
from ratings_ledger.cli.output.render import heading, print_csv_at
from ratings_ledger.projections.queries.event_texts import describe_opponents, score_of
from ratings_ledger.projections.queries.explain import (
    Explained,
    ExplainedTerm,
    GameExplanation,
    PlayedGame,
    PlayerExplanation,
)
from ratings_ledger.projections.queries.results import ABSENT, Absent
from ratings_ledger.projections.replay.ladders import short_name


def print_game_csv(found: GameExplanation) -> None:
    """One line per term of a player."""
    header = ("player", "place", "before", "change", "after", "term", "amount", "detail")
    print_csv_at(header, list(_terms(found)), found.at)


def _terms(found: GameExplanation) -> Iterator[list[render.Cell]]:
    for player in found.players:
        points = [render.spreadsheet(value) for value in (player.before, player.change, player.after)]
        why_not = "" if player.why_not is ABSENT else player.why_not
        for term in player.terms or (ExplainedTerm("", Fraction(0), why_not),):
            yield [player.player, player.place, *points, term.term, render.spreadsheet(term.amount), term.detail]


def print_game(found: GameExplanation) -> None:
    """A heading, and for each player the points before and after with the terms in between."""
    played = f", played {found.times.played_stated(found.occurred_at)}"
    under = f", under {found.ruleset}" if found.ruleset else ""
    heading(f"{render.plain(found.game_id)} on {short_name(found.ladder)}", played + under, found.at, found.times)
    if not found.counted:
        render.hanging(f"Not counted: {render.plain(found.why_not)}.", 2)
        if found.period is not ABSENT:
            command = f"ratings explain {found.game_id} {short_name(found.ladder)}"
            print_open_period(found.period.to, found.at, found.times, command)
        return
    if found.remark is not ABSENT:
        render.hanging(render.plain(found.remark), 2)
    if found.sets is not ABSENT:
        render.hanging(f"Sets {render.plain(found.sets)}.", 2)
    if found.period is not ABSENT:
        since, to = (found.times.minute(instant) for instant in (found.period.since, found.period.to))
        early = "" if found.period.closed_now is ABSENT else ", as if that closed now"
        render.hanging(f"Scored with its rating period, from {since} to {to}{early}.", 2)
    for player in found.players:
        _print_explained(player, found.game_id)
    # on summed lists every game creates points
    if found.running and any(account.amount for account in found.accounts):
        told = [f"{one.account} {render.human(abs(one.amount), 6)}" for one in found.accounts if one.amount]
        render.echo(f"\nNot zero-sum: {', '.join(told)}.")
    _print_assumed(found.assumed)


def _print_assumed(assumed: dict[str, str] | Absent) -> None:
    """Print what decided a number although the source of the ruleset does not say it."""
    if assumed is ABSENT:
        return
    render.echo()
    for key, reason in assumed.items():
        render.echo(fill(f"Assumed: {key}: {render.plain(reason)}", 80, subsequent_indent="  "))


def _print_explained(player: Explained, game_id: str) -> None:
    place = f"{player.place}. " if player.place else ""
    render.echo(
        f"\n{place}{render.plain(player.player)}: {render.human(player.before)} "
        f"{render.human(player.change, 6, signed=True)} = {render.human(player.after)}"
    )
    if player.why_not is not ABSENT:
        render.echo(f"   does not count: {render.plain(player.why_not)}")
    amounts = render.column([term.amount for term in player.terms], 6, signed=True)
    for term, amount in zip(player.terms, amounts, strict=True):
        other = "" if term.game_id in (ABSENT, game_id) else f", {render.plain(str(term.game_id))}"
        render.hanging(f"   {amount:>11}  {render.plain(term.term)}{other}: {term.detail}", 16)
        if term.note is not ABSENT:
            render.echo(f"   {'':11}  {render.plain(term.note)}")
    if player.state is not ABSENT:
        for name, before in [*player.state.before.items()][1:]:
            render.echo(f"   {'':11}  {name} {before}, then {player.state.after[name]}")


def print_player_csv(found: PlayerExplanation) -> None:
    """One line per part."""
    cells = [(term, render.spreadsheet(amount), told) for term, amount, told in _parts(found)]
    print_csv_at(("term", "amount", "detail"), cells, found.at)


def print_player(found: PlayerExplanation) -> None:
    """The rank and the points, and the parts that they are made of."""
    name, command = render.plain(found.player), f"ratings explain {found.player} {short_name(found.ladder)}"
    if not found.games and not found.terms:
        print_waiting(found.period, found.at, found.times, command)
        render.note(f"{name} has no game or adjustment that counts on {short_name(found.ladder)}.")
        return
    rank = f"rank {found.rank}" if found.rank else "no rank"
    points = "" if found.points is None else f", {render.human(found.points)} points"
    gold = f", {found.gold} gold" if found.gold is not ABSENT and found.gold else ""
    under = f", under {found.ruleset}, times in {found.time_zone}"
    heading(f"{name} on {short_name(found.ladder)}: {rank}{points}{gold}", under, found.at, found.times)
    print_waiting(found.period, found.at, found.times, command)
    render.echo()
    rows = [(term, _both(amount), told) for term, amount, told in _parts(found, has_opponents=True)]
    render.print_table(("term", "amount", "detail"), rows, right=("amount",))
    _print_assumed(found.assumed)


def _parts(
    found: PlayerExplanation, has_opponents: bool = False
) -> Iterator[tuple[str, Fraction | None, str]]:  # fmt: skip
    """Yield the start, the games and what the list makes of them: each with its amount and what there is to say about
    it.
    """
    if found.start:
        yield "start", found.start, ""
    for game in found.games:
        other = "adjusted" if game.cause is ABSENT else game.cause
        when = found.times.played(game.occurred_at)
        yield game.game_id or other, game.change, _played(game, when, found.player if has_opponents else None)
    for term in found.terms:
        yield term.term, term.amount, term.detail


def _played(game: PlayedGame, when: str, player: str | None) -> str:
    """Return when a game was played, against whom if that is told of a player, and what there is to say about it."""
    told = "" if game.reason is ABSENT else game.reason
    if game.why_not:
        told = game.why_not if game.change is not None else f"not counted: {game.why_not}"
    if player is not None and game.game is not None:
        score = score_of(game.game, player)
        when += f"{f', scored {score}' if score else ''}, against {', '.join(describe_opponents(game.game, player))}"
    return f"{when}, {told}" if told else when


def _both(amount: Fraction | None) -> str:
    """Return an exact amount; a fraction that no decimal equals is followed by its approximate value."""
    if amount is None:
        return ""
    decimal = render.spreadsheet(amount)
    return decimal if "/" not in decimal else f"{amount} = {render.human(amount, 4)}"
