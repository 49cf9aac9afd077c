"""Print explanations of a game and of a player's points on a ladder, term by term, as tables and CSV."""

import shlex
from collections.abc import Iterator, Sequence
from fractions import Fraction
from textwrap import fill

from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.periods import print_open_period, print_waiting
from ratings_ledger.cli.output.render import print_csv_at, print_heading
from ratings_ledger.projections.contract import align_decimals
from ratings_ledger.projections.queries.event_texts import describe_participation
from ratings_ledger.projections.queries.game_explanations import ExplainedParticipant, ExplainedTerm, GameExplanation
from ratings_ledger.projections.queries.player_explanations import PlayedGame, PlayerExplanation
from ratings_ledger.projections.queries.results import ABSENT, Absent
from ratings_ledger.projections.replay.ladder_names import short_name


def print_game_csv(explanation: GameExplanation) -> None:
    """Print one line per term of a player, or one line for a player without terms."""
    header = ("player", "place", "before", "change", "after", "term", "amount", "detail")
    print_csv_at(header, list(_build_term_rows(explanation)), explanation.at)


def _build_term_rows(explanation: GameExplanation) -> Iterator[list[render.TableCell]]:
    for player in explanation.players:
        points = [render.format_exact(value) for value in (player.before, player.change, player.after)]
        why_not = "" if player.why_not is ABSENT else player.why_not
        for term in player.terms or (ExplainedTerm("", Fraction(0), why_not),):
            yield [player.player, player.place, *points, term.term, render.format_exact(term.amount), term.detail]


def print_game(explanation: GameExplanation) -> None:
    """Print a heading, and for each player the points before and after with the terms in between."""
    played = f", played {explanation.times.format_played_with_zone(explanation.occurred_at)}"
    ruleset_text = f", under {explanation.ruleset}" if explanation.ruleset else ""
    print_heading(
        f"{render.plain(explanation.game_id)} on {short_name(explanation.ladder)}",
        played + ruleset_text,
        explanation.at,
        explanation.times,
    )
    if not explanation.counted:
        render.print_hanging(f"Not counted: {render.plain(explanation.why_not)}.", 2)
        if explanation.period is not ABSENT:
            command = shlex.join(["ratings", "explain", explanation.game_id, short_name(explanation.ladder)])
            print_open_period(explanation.period.to, explanation.at, explanation.times, command)
        return
    if explanation.remark is not ABSENT:
        render.print_hanging(render.plain(explanation.remark), 2)
    if explanation.sets is not ABSENT:
        render.print_hanging(f"Sets {render.plain(explanation.sets)}.", 2)
    if explanation.period is not ABSENT:
        since, to = (
            explanation.times.format_minute(instant) for instant in (explanation.period.since, explanation.period.to)
        )
        close_now_text = "" if explanation.period.closed_now is ABSENT else ", as if the period closed now"
        render.print_hanging(f"Scored with its rating period, from {since} to {to}{close_now_text}.", 2)
    if duel_text := _describe_duel(explanation.players):
        render.print_hanging(render.plain(duel_text), 2)
    for player in explanation.players:
        _print_participant(player, explanation.game_id)
    # on lists that sum points, every game creates points, so nothing is printed
    if explanation.running and any(account.amount for account in explanation.accounts):
        nonzero = [
            f"{account.account} {render.format_decimal(abs(account.amount), 6)}"
            for account in explanation.accounts
            if account.amount
        ]
        render.echo(f"\nNot zero-sum: {', '.join(nonzero)}.")
    _print_assumed(explanation.assumed)


_VERBS = {Fraction(1): "won", Fraction(1, 2): "drew", Fraction(0): "lost"}


def _describe_duel(players: Sequence[ExplainedParticipant]) -> str:
    """Describe a game of two players under an Elo rule in one sentence for laymen; for others, return an empty string.

    >>> values = {"k": Fraction(32), "expected": Fraction(1, 2), "scored": Fraction(1)}
    >>> term = ExplainedTerm("vs ben", Fraction(16), "K 32, expected 0.5, scored 1", values=values)
    >>> anna = ExplainedParticipant("anna", Fraction(1000), Fraction(16), Fraction(1016), (term,), ABSENT, 1)
    >>> ben = ExplainedParticipant("ben", Fraction(1000), Fraction(-16), Fraction(984), (term,), ABSENT, 2)
    >>> _describe_duel([anna, ben])
    'anna was expected to score 50 % and won: 32 x (1 - 0.5) = +16; ben -16.'
    """
    if len(players) != 2 or any(len(player.terms) != 1 or player.why_not is not ABSENT for player in players):
        return ""
    first, second = players
    (term,) = first.terms
    if not {"k", "expected", "scored"} <= term.values.keys() or first.change != term.amount:
        return ""
    k, expected, scored = (term.values[name] for name in ("k", "expected", "scored"))
    if scored not in _VERBS or k.denominator != 1:
        return ""
    percent = render.format_decimal(expected * 100, 0)
    score_text, expected_text = render.format_decimal(scored), render.format_decimal(expected, 6)
    gain, opponent_gain = (render.format_decimal(player.change, signed=True) for player in players)
    result = f"{first.player} was expected to score {percent} % and {_VERBS[scored]}"
    return f"{result}: {k} x ({score_text} - {expected_text}) = {gain}; {second.player} {opponent_gain}."


def _print_assumed(assumed: dict[str, str] | Absent) -> None:
    """Print the assumptions that determined a number, because the source of the ruleset is silent, with the reasons."""
    if assumed is ABSENT:
        return
    render.echo()
    for key, reason in assumed.items():
        render.echo(fill(f"Assumed: {key}: {render.plain(reason)}", 80, subsequent_indent="  "))


def _print_participant(player: ExplainedParticipant, game_id: str) -> None:
    place = f"{player.place}. " if player.place else ""
    before, after = render.format_column([player.before, player.after])
    change = render.format_decimal(player.change, 6, signed=True)
    render.echo(f"\n{place}{render.plain(player.player)}: {before} {change} = {after}")
    if player.why_not is not ABSENT:
        render.echo(f"   does not count: {render.plain(player.why_not)}")
    amounts = render.format_column([term.amount for term in player.terms], 6, signed=True)
    for term, amount in zip(player.terms, amounts, strict=True):
        source = "" if term.game_id in (ABSENT, game_id) else f", {render.plain(str(term.game_id))}"
        render.print_hanging(f"   {amount:>11}  {render.plain(term.term)}{source}: {term.detail}", 16)
        if term.note is not ABSENT:
            render.echo(f"   {'':11}  {render.plain(term.note)}")
    if player.state is not ABSENT:
        for name, value_before in [*player.state.before.items()][1:]:
            render.echo(f"   {'':11}  {name} {value_before}, then {player.state.after[name]}")


def print_player_csv(explanation: PlayerExplanation) -> None:
    """Print one line for each part of a player's points: the start, each game, and each term of the list."""
    cells = [(term, render.format_exact(amount), detail) for term, amount, detail in _list_point_parts(explanation)]
    print_csv_at(("term", "amount", "detail"), cells, explanation.at)


def print_player(explanation: PlayerExplanation) -> None:
    """Print the rank, the points, and the parts that add up to the points."""
    name, ladder = render.plain(explanation.player), short_name(explanation.ladder)
    command = shlex.join(["ratings", "explain", explanation.player, ladder])
    if not explanation.games and not explanation.terms:
        if explanation.period is not ABSENT:
            print_waiting(explanation.period, explanation.at, explanation.times, command)
        render.note(f"{name} has no game or adjustment that counts on {ladder}.")
        return
    rank = f"rank {explanation.rank}" if explanation.rank else "no rank"
    points = "" if explanation.points is None else f", {render.format_decimal(explanation.points)} points"
    gold = f", {explanation.gold} gold" if explanation.gold is not ABSENT and explanation.gold else ""
    ruleset_text = f", under {explanation.ruleset}, times in {explanation.time_zone}"
    print_heading(
        f"{name} on {ladder}: {rank}{points}{gold}",
        ruleset_text,
        explanation.at,
        explanation.times,
    )
    if explanation.period is not ABSENT:
        print_waiting(explanation.period, explanation.at, explanation.times, command)
    render.echo()
    terms, amounts, details = zip(*_list_point_parts(explanation, with_opponents=True), strict=True)
    columns = {"term": terms, "amount": _format_amounts(amounts), "detail": details}
    render.print_columns(columns, right=("amount",))
    _print_assumed(explanation.assumed)


def _list_point_parts(
    explanation: PlayerExplanation, with_opponents: bool = False
) -> Iterator[tuple[str, Fraction | None, str]]:
    """Yield the start, the games and the terms of the list, each with an amount and a remark."""
    if explanation.start:
        yield "start", explanation.start, ""
    for game in explanation.games:
        cause = "adjusted" if game.cause is ABSENT else game.cause
        time_text = explanation.times.format_played(game.occurred_at)
        yield (
            game.game_id or cause,
            game.change,
            _describe_game(game, time_text, explanation.player if with_opponents else None),
        )
    for term in explanation.terms:
        yield term.term, term.amount, term.detail


def _describe_game(game: PlayedGame, time_text: str, player: str | None) -> str:
    """Describe the time of a game, the player's partners and opponents if a player is given, and the remark."""
    remark = "" if game.reason is ABSENT else game.reason
    if game.why_not:
        remark = game.why_not if game.change is not None else f"not counted: {game.why_not}"
    if player is not None and game.game is not None:
        time_text += f", {describe_participation(game.game, player)}"
    return f"{time_text}, {remark}" if remark else time_text


def _format_amounts(amounts: Sequence[Fraction | None]) -> list[str]:
    """Return exact amounts with the same number of decimal places.

    If some amounts have no exact decimal, these are fractions, followed by the rounded value.
    """
    exact = [render.format_exact(amount) for amount in amounts]
    if not any("/" in text for text in exact):
        return align_decimals(exact)
    return [
        f"{text} = {render.format_decimal(amount, 4)}" if amount is not None and "/" in text else text
        for text, amount in zip(exact, amounts, strict=True)
    ]
