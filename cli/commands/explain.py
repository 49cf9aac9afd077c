"""Implement `explain`: explain the points of a game, a player's place on a list, or a change of their points."""

import click

from ratings_ledger.cli.arguments.command import command, print_note
from ratings_ledger.cli.arguments.options import CoordinatesType, axes_options, close_now_option, format_option
from ratings_ledger.cli.arguments.views import open_for_command, open_view, report_ignored_events
from ratings_ledger.cli.output.explanation import print_game, print_game_csv, print_player, print_player_csv
from ratings_ledger.cli.output.render import emit
from ratings_ledger.ledger.errors import BadArgument, Unknown
from ratings_ledger.ledger.events.fields import to_nfc
from ratings_ledger.projections.queries.coordinates import CoordinateSpec, parse_coordinates
from ratings_ledger.projections.queries.game_explanations import GameExplanation
from ratings_ledger.projections.queries.player_explanations import PlayerExplanation
from ratings_ledger.projections.snapshot import Snapshot


@command(name="explain")
@click.argument("name", metavar="GAME|PLAYER", type=to_nfc)
@click.argument("ladder", type=to_nfc, required=False)
@click.option("--player", "is_player", is_flag=True, help="Explain a player whose id is also a game's.")
@click.option("--change", is_flag=True, help="With PLAYER LADDER: the causes of the change from --from to --to.")
@click.option(
    "--from", "before", metavar="COORDS", type=CoordinatesType(), help="With --change: the earlier coordinates."
)
@click.option(
    "--to",
    "after",
    metavar="COORDS",
    type=CoordinatesType(),
    help="With --change: the later coordinates.  [default: now]",
)
@axes_options
@close_now_option
@format_option
@click.pass_obj
def explain_(
    db: str,
    name: str,
    ladder: str | None,
    is_player: bool,
    change: bool,
    before: CoordinateSpec | None,
    after: CoordinateSpec | None,
    as_of: str | None,
    known_at: str | None,
    rules: str | None,
    close_now: bool,
    output_format: str,
) -> None:
    """Explain why GAME changed the points on LADDER. List each term, or the reason why the game did not count.

    With a player instead of a game, explain the player's place on LADDER, or why the player has none. LADDER may
    be left out if the game or the player is on only one ladder.

    \b
        ratings explain --change PLAYER LADDER --from published --to now

    With --change, list the causes of a change in a player's points: late, corrected, voided and reinstated games,
    renames, adjustments and rules, with their ripple through the opponents. The parts add up exactly. Write
    coordinates as for ratings diff.
    """
    if change or before is not None or after is not None:
        if not change:
            raise click.UsageError("--from and --to work only with --change; add --change, or leave them out")
        if before is None:
            raise click.UsageError("--change needs --from COORDS, such as --from published")
        if is_player or any((as_of, known_at, rules, close_now)):
            raise click.UsageError("--change takes only --from, --to and --format; leave out the other options")
        # slow to import, and only needed for this explanation
        from ratings_ledger.cli.output.attribution import print_attribution, print_attribution_csv
        from ratings_ledger.projections.diff.change_explanations import attribute_points

        view = open_view(open_for_command(db))
        name, ladder = view.resolve_ladder(name, ladder)
        try:
            with view.side_loader() as loader:
                attribution = attribute_points(loader, ladder, name, before, after or parse_coordinates("now"))
        except BadArgument as problem:
            # drop `problem.argument`: it names a part of the coordinates, which is not an option of this command
            raise BadArgument(str(problem)) from None
        report_ignored_events(attribution.left_out)
        for note in attribution.contradictions:
            print_note(note)
        emit(attribution, output_format, print_attribution, print_attribution_csv)
        return
    view = open_view(open_for_command(db), as_of=as_of, known_at=known_at, rules=rules, close_now=close_now)
    name, ladder = view.resolve_ladder(name, ladder, is_player)
    explanation = _explain_game_or_player(view, ladder, name, is_player)
    if isinstance(explanation, GameExplanation):
        emit(explanation, output_format, print_game, print_game_csv)
    else:
        emit(explanation, output_format, print_player, print_player_csv)


def _explain_game_or_player(
    view: Snapshot, ladder: str, name: str, is_player: bool
) -> GameExplanation | PlayerExplanation:
    """Explain the game or else the player of this name. Raises `Unknown` (game-unknown, player-unknown)."""
    game_problem = None
    if not is_player and view.has_game(name):
        try:
            return view.explain(ladder, name)
        except Unknown as problem:
            if problem.reason != "game-unknown":
                raise
            game_problem = problem
    try:
        return view.account(ladder, name)
    except Unknown as problem:
        if game_problem is not None:
            raise game_problem from None
        if is_player:  # then a game may have this name
            raise
        message = str(problem).replace("nothing is recorded about", "no game and no player is called", 1)
        hint = "" if "did you mean" in message else view.similar_game(name)
        raise Unknown(problem.reason, message + hint) from None
