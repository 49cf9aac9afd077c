"""`import` and `record`: results go in."""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import click

from cli.arguments.facts import decoded
from cli.arguments.options import by_option, composed, head_value, ignore_clock_option, instant_or_now, zone_option
from cli.output import render
from cli.output.impact import Preview, note_failed, print_lists, print_reach, told
from cli.output.times import times_of
from ledger import clock
from ledger.backups.restoring import Backup, restore
from ledger.events.canonical import format_instant, parse_object
from ledger.events.revisions import live_game
from ledger.events.types import read_event
from ledger.intake.csv_cells import GAME_COLUMNS, TableOptions
from ledger.intake.csv_games import TIE
from ledger.intake.files import STDIN, Far, Item, read_items, size
from ledger.intake.importing import Imported, import_items
from ledger.processes.forking import available_cores
from ledger.rejections import Refused, Rejection, shown
from ledger.store.exports import Place
from ledger.store.log import Log, home_zone
from ledger.store.opening import Ledger, open_ledger
from ledger.validation.leagues import scheduled_games
from ledger.validation.new_names import TOLD_MAX, Newcomers, Refusing, close_names
from ledger.validation.published_lists import Published
from projections.admission.events import Admission, Recorded
from projections.admission.new_ladders import NewLadders
from projections.facts.players import known_players
from projections.queries.impact import Reach

SHOWN_REJECTIONS = 20
# how a whole file is written: one cause, whatever the cells hold
WRITTEN = frozenset({"bad-utf8", "bad-time", "naive-time"})

_WITHOUT_VALUES = re.compile(r"'[^']*'|\d+")
# from so many games on, `record` does not work out what it changes
CHANGES_GAMES = 20_000

new_names_option = click.option(
    "--new-names", type=click.Choice(["refuse", "accept"]), default="refuse", show_default=True,
    help="What becomes of a new name that is close to another one, or looks like two.",
)  # fmt: skip
any_date_option = click.option(
    "--any-date", is_flag=True, help="Take games of more than a day ahead of the clock, or of before 1900."
)
strict_option = click.option(
    "--strict", is_flag=True, help="Refuse players who are new, and games that begin a ladder."
)
allow_uncounted_option = click.option(
    "--allow-uncounted", is_flag=True, help="Record games that a ladder's rule cannot score."
)
result_format = click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True, help="Output format."
)


def _pairs(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for value in values:
        name, equals, other = value.partition("=")
        if not name or not equals:
            raise click.BadParameter(f"{value!r} is not NAME=VALUE")
        found[name.strip()] = other.strip()
    return found


def _fixed(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    found = _pairs(context, parameter, values)
    for name in found:
        if name not in GAME_COLUMNS:
            raise click.BadParameter(f"{name!r} is none of {', '.join(GAME_COLUMNS)}")
    return found


@click.command(name="import")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, allow_dash=True))
@click.option("--map", "renamed", metavar="THEIRS=OURS", multiple=True, callback=_pairs,
              help="Rename a CSV column; THEIRS= drops it.")  # fmt: skip
@click.option("--set", "fixed", metavar="MEMBER=VALUE", multiple=True, callback=_fixed,
              help="One value for all rows of a CSV file.")  # fmt: skip
@zone_option
@click.option("--keep-going", is_flag=True, help="Append what is good, write the rest to FILE.rejects.jsonl.")
@click.option("--dry-run", is_flag=True, help="Check everything, append nothing.")
@strict_option
@new_names_option
@any_date_option
@allow_uncounted_option
@click.option("--follow", is_flag=True,
              help="Take lines of JSON from standard input as they come; answer each.")  # fmt: skip
@click.option("--restore", "restoring", is_flag=True,
              help="Take an export, and increments behind it, into an empty ledger, byte for byte.")  # fmt: skip
@click.option("--head", "expected", metavar="POSITION:CHAINHASH", callback=head_value,
              help="With --restore: what it must end at; for exports without a last line.")  # fmt: skip
@click.option("--incomplete", is_flag=True, help="With --restore: take what there is of a file that was cut off.")
@ignore_clock_option
@by_option
@result_format
@click.pass_obj
def import_(
    db: str, files: tuple[str, ...], renamed: dict[str, str], fixed: dict[str, str], zone: str | None, keep_going: bool,
    dry_run: bool, strict: bool, new_names: str, any_date: bool, allow_uncounted: bool, follow: bool, restoring: bool,
    expected: Place | None, incomplete: bool, ignore_clock: bool, by: str, form: str,
) -> int:  # fmt: skip
    """Import events (JSON Lines) or games (CSV). FILES may be compressed with gzip; - is standard input.

    Everything is checked before anything is appended; if one line is refused, nothing of the call is appended. With
    --follow each line is taken or refused by itself.
    """
    if follow:
        if files != (STDIN,) or renamed or fixed or zone or keep_going or dry_run or strict or restoring:
            raise click.UsageError("--follow takes events from standard input, -, and nothing that is for files")
        from cli.commands.follow import follow as follow_lines  # for which alone there are signals to handle

        return follow_lines(db, by, allow_uncounted, any_date, ignore_clock)
    if restoring and (dry_run or keep_going or strict):
        raise click.UsageError("--restore takes neither --dry-run nor --keep-going nor --strict")
    refusing = refused_names(new_names, strict, "tables")
    ledger = open_ledger(db)
    if restoring:
        refuse_unreadable_twice(files, "--restore")
        if expected is not None and incomplete:
            raise click.UsageError("--head says where the backup ends, --incomplete that it need not; choose one")
        done = restore(ledger, Backup(files, expected, incomplete), Recorded)
        return report(ledger, _introduced(ledger, done), form, dry_run=False)
    if expected is not None or incomplete:
        raise click.UsageError("--head and --incomplete go with --restore")
    files = tuple(dict.fromkeys(files))
    with ledger.reading() as connection:
        options = TableOptions(zone or home_zone(connection), renamed, fixed)
    homeless: dict[str, str] = {}
    leagueless: dict[str, str] = {}
    preview = Preview(ledger, games_max=None if dry_run else CHANGES_GAMES, if_published=not dry_run)
    new_ladders = NewLadders(preview.facts, strict)
    with _rejects(keep_going and not dry_run) as reject, _bar(files) as (read, appended):
        result = import_items(
            ledger,
            (item for name in files for item in read_items(name, options)),
            by=by,
            clock=clock.now,
            ladders=partial(
                Admission,
                allow_uncounted=allow_uncounted,
                homeless=homeless,
                leagueless=leagueless,
                new_ladders=new_ladders,
            ),
            reject=reject,
            keep_going=keep_going,
            dry_run=dry_run,
            ignore_clock=ignore_clock,
            reading=read,
            progress=appended,
            checked=preview,
            newcomers=Newcomers(preview.known, refusing, strict),
            any_date=any_date,
            cores=available_cores(),
        )
    tell_new_ladders(result, new_ladders)
    note_homeless(result, homeless)
    note_leagueless(result, leagueless)
    if dry_run or preview.found is None:
        return report(ledger, result, form, dry_run, preview.found)
    return report(ledger, result, form, dry_run, lists=preview.found.lists)


def refused_names(new_names: str, strict: bool, where: Refusing) -> Refusing:
    """Where new names are refused, if nothing else is asked for in `where`. Raises `click.UsageError`."""
    if strict and new_names == "accept":
        raise click.UsageError("--strict takes no new name, and --new-names accept takes them all")
    if strict:
        return "all"
    return where if new_names == "refuse" else ""


def refuse_unreadable_twice(files: Sequence[str], command: str) -> None:
    """Raises `click.UsageError` unless these are different files, which can be read a second time."""
    for number, name in enumerate(files):
        if name in files[:number]:
            raise click.UsageError(f"{name} is named twice")
        if name == STDIN or not (Path(name).is_file() or Path(name).is_dir()):
            what = "standard input" if name == STDIN else name
            raise click.UsageError(f"{command} reads {what} twice, so it has to be a file, not a pipe or a device")


@click.command()
@click.argument("players", nargs=-1)
@click.option("--game", metavar="NAME", help="Which game, such as catan.")
@click.option("--game-id", metavar="ID", help="The game's own id; must be new.")
@click.option("--at", metavar="TIME", help="When it ended.  [default: now]")
@zone_option
@click.option("--group", help="The game group.")
@click.option("--city", help="The city.")
@click.option("--league", help="The league.")
@click.option("--season", help="The season.")
@click.option("--dry-run", is_flag=True, help="Check it, append nothing.")
@click.option("--quiet", "-q", is_flag=True, help="Say nothing of what it changed and who is new.")
@strict_option
@new_names_option
@any_date_option
@allow_uncounted_option
@ignore_clock_option
@by_option
@result_format
@click.pass_obj
def record(
    db: str, players: tuple[str, ...], game: str | None, game_id: str | None, at: str | None, zone: str | None,
    dry_run: bool, quiet: bool, strict: bool, new_names: str, any_date: bool, allow_uncounted: bool,
    ignore_clock: bool, by: str, form: str, group: str | None, city: str | None, league: str | None, season: str | None,
) -> int:  # fmt: skip
    """Record one game. PLAYERS stand in the order of their places, tied ones joined by =.

    \b
        ratings record --game catan --game-id g-7 anna ben=cleo dora

    Without PLAYERS one event, or the data of one game, is read as JSON from standard input.
    """
    refusing = refused_names(new_names, strict, "all")
    ledger = open_ledger(db)
    event: dict[str, Any] | Refused
    labels = {"group": group, "city": city, "league": league, "season": season}
    if players:
        if game is None or game_id is None:
            own = "--game, such as --game catan" if game is None else f"--game-id, its own name, such as {game}-0042"
            raise click.UsageError(f"a game needs {own}, too")
        data = {
            "game_id": game_id,
            "game": game,
            **{name: label for name, label in labels.items() if label is not None},
            "participants": placed(players),
        }
        event = {"type": "game.recorded", "data": data}
    else:
        if any(option is not None for option in (game, game_id, *labels.values())):
            raise click.UsageError("these options describe a game by its PLAYERS; JSON on standard input has its own")
        try:
            event = parse_object(sys.stdin.buffer.read(1 << 20))
        except Refused as problem:
            event = problem
        if isinstance(event, dict) and "type" not in event and "game_id" in event:
            event = {"type": "game.recorded", "data": event}
    undated = isinstance(event, dict) and at is None and "occurred_at" not in event
    if isinstance(event, dict) and (at is not None or undated):
        event["occurred_at"] = format_instant(instant_or_now(ledger, at, zone))
    league_of_schedule = _put_into_league(ledger, event) if isinstance(event, dict) else None
    homeless: dict[str, str] = {}
    preview = Preview(ledger, wanted=dry_run or not quiet, games_max=None if dry_run else CHANGES_GAMES)
    new_ladders = NewLadders(preview.facts, strict)

    def offered() -> Imported:
        return import_items(
            ledger,
            [Item(STDIN, 1, event, None)],
            by=by,
            clock=clock.now,
            ladders=partial(Admission, allow_uncounted=allow_uncounted, homeless=homeless, new_ladders=new_ladders),
            dry_run=dry_run,
            ignore_clock=ignore_clock,
            checked=preview,
            newcomers=Newcomers(preview.known, refusing, strict),
            any_date=any_date,
        )

    result = offered()
    if undated and [one.code for one in result.rejected] == ["id-conflict"]:
        # nobody said when it was: it is the same event if all else is the same
        assert isinstance(event, dict)
        event["occurred_at"] = _recorded_time(ledger, event)
        result = offered()
    result.rejected = [rejection._replace(file=None, line=None) for rejection in result.rejected]
    if league_of_schedule is not None and not result.rejected_count:
        render.note(f"note: it is a game of the league {render.plain(league_of_schedule)}, and is recorded for it")
    tell_new_ladders(result, new_ladders)
    note_homeless(result, homeless)
    if result.existing and isinstance(event, dict):
        _note_voided(ledger, event)
    return report(ledger, result, form, dry_run, preview.found, quiet)


def _recorded_time(ledger: Ledger, event: dict[str, Any]) -> str:
    """When the recorded event with the id of this one was."""
    draft, _ = read_event(event)
    with ledger.reading() as connection:
        there = Log(connection).event(draft.event_id)
    return format_instant(draft.occurred_at if there is None else there.occurred_at)


def _note_voided(ledger: Ledger, event: dict[str, Any]) -> None:
    """Tell that a game which is there already counts for nothing."""
    draft, _ = read_event(event)
    with ledger.reading() as connection:
        game = live_game(Log(connection).about(draft.subject)) if draft.type == "game.recorded" else None
    if game is not None and game.voided:
        name = render.plain(str(game.data["game_id"]))
        render.note(
            f"note: {name} is voided, so it does not count; ratings reinstate {name} --reason TEXT changes that"
        )


def _put_into_league(ledger: Ledger, event: dict[str, Any]) -> str | None:
    """Let a game that a league has scheduled be the league's, although nobody said so; the league."""
    data = event.get("data")
    if event.get("type") != "game.recorded" or not isinstance(data, dict) or data.get("league") is not None:
        return None
    with ledger.reading() as connection:
        league = scheduled_games(connection).get(composed(str(data.get("game_id"))))
    if league is not None:
        data["league"] = league
    return league


def placed(players: tuple[str, ...]) -> list[dict[str, Any]]:
    """Participants in the order of their places, tied ones joined by =, as the members of a game."""
    found: list[dict[str, Any]] = []
    for seat in players:
        place = len(found) + 1
        found += [{"player": player.strip(), "place": place} for player in seat.split(TIE)]
    return found


def tell_new_ladders(result: Imported, new_ladders: NewLadders) -> None:
    """Let a result say which ladders begin, unless something was refused."""
    if not result.rejected_count:
        result.new_ladders = [begun.ladder for begun in new_ladders.found]
        result.close_ladders = {begun.ladder: begun.like for begun in new_ladders.found if begun.like}


def note_homeless(result: Imported, homeless: dict[str, str]) -> None:
    """Tell of games on no ladder, one for each reason, unless something was refused."""
    for reason, game_id in homeless.items() if not result.rejected_count else ():
        render.note(f"note: on no ladder, such as {render.plain(game_id)}: {reason}")


def note_leagueless(result: Imported, leagueless: dict[str, str]) -> None:
    """Tell of games that a league has scheduled and that do not say so, one for each league."""
    for league, game_id in leagueless.items() if not result.rejected_count else ():
        league, game_id = render.plain(league), render.plain(game_id)
        render.note(
            f"note: {game_id} is scheduled in the league {league}, but does not say so; put it right with: "
            f"ratings correct {game_id} --league {league} --reason TEXT"
        )


def _introduced(ledger: Ledger, result: Imported) -> Imported:
    """What a restore did, with the players of the ledger, who are all new to it."""
    if not result.rejected_count:
        with ledger.reading() as connection:
            result.new_players = sorted(known_players(decoded(connection)))
        result.close = dict(close_names(result.new_players, ()))
    return result


def report(
    ledger: Ledger, result: Imported, form: str, dry_run: bool, found: Reach | None = None, quiet: bool = False,
    lists: list[Published] | None = None,
) -> int:  # fmt: skip
    """Tell what was appended and what was refused, who is new, and as far as it is known what that changes, or which
    published lists; the exit code.
    """
    if found is None and dry_run:
        found = Reach()
    if found is not None:
        note_failed(found)
    if form == "json":
        render.print_json(
            {
                "appended": result.appended,
                "existing": result.existing,
                "rejected": [
                    {"file": r.file, "line": r.line, "code": r.code, "message": r.message} for r in result.rejected
                ],
                "head": result.head.position if result.head else 0,
                **({"rejected_count": result.rejected_count} if result.rejected_count > len(result.rejected) else {}),
                **new_told(result),
                **({"dry_run": True, "would_append": result.would_append} if dry_run else {}),
                **({} if found is None else told(found)),
                **({"incomplete": result.passed} if result.passed else {}),
                **({} if lists is None else {"published": Reach(lists=lists).as_json()["published"]}),
            }
        )
        return int(result.rejected_count > 0)
    for passed in result.passed:
        render.note(f"note: {render.plain(passed)}")
    causes = _causes(result.rejected)
    for rejections in causes[:SHOWN_REJECTIONS]:
        render.note(rejection_line(rejections[0]) + _more(rejections))
    untold = result.rejected_count - sum(map(len, causes[:SHOWN_REJECTIONS]))
    if untold > 0:
        render.note(f"... and {untold:,} more (--format json lists them)")
    if not quiet:
        note_new(result)
    did = f"{result.would_append:,} would be appended" if dry_run else f"{result.appended:,} appended"
    there = f", {result.existing:,} already there" if result.existing else ""
    refused = f", {result.rejected_count:,} refused" if result.rejected_count else ""
    nothing = "; nothing was appended" if result.rejected_count and not result.appended and not dry_run else ""
    if not quiet or result.rejected_count:
        render.echo(f"{did}{there}{refused}{nothing}; the head is {result.head.position if result.head else 0:,}.")
    if found is not None and result.would_append and not quiet:
        print_reach(found, ledger)
    if lists:
        with ledger.reading() as connection:
            print_lists(lists, times_of(connection))
    return int(result.rejected_count > 0)


def _causes(rejected: list[Rejection]) -> list[list[Rejection]]:
    """Refusals by their cause, which a file often has on many lines."""
    found: dict[tuple[str | None, str, str], list[Rejection]] = {}
    for one in rejected:
        message = _WITHOUT_VALUES.sub("", one.message) if one.code in WRITTEN else one.message
        found.setdefault((one.file, one.code, message), []).append(one)
    return list(found.values())


def _more(rejections: list[Rejection]) -> str:
    """How often a cause occurs again, and where it is last."""
    again = len(rejections) - 1
    return f" ({render.count(again, 'more line')} like this, the last {rejections[-1].line})" if again else ""


def new_told(result: Imported) -> dict[str, Any]:
    """Who is new, who of them has a name close to another, and the same of ladders, as JSON tells it."""
    close = [{"player": name, "close_to": others} for name, others in result.close.items()]
    ladders = [{"ladder": name, "close_to": [other]} for name, other in result.close_ladders.items()]
    return {
        "new_players": result.new_players, "close_names": close,
        "new_ladders": result.new_ladders, "close_ladders": ladders,
    }  # fmt: skip


def note_new(result: Imported) -> None:
    """Tell which ladders begin and who is new, unless nothing was taken, and whose name is close to another."""
    if result.new_ladders:
        named = {name: f" (like {other}?)" for name, other in result.close_ladders.items()}
        names = ", ".join(name + named.get(name, "") for name in result.new_ladders[:TOLD_MAX])
        more = f" and {len(result.new_ladders) - TOLD_MAX:,} more" if len(result.new_ladders) > TOLD_MAX else ""
        render.note(render.plain(f"note: {render.count(len(result.new_ladders), 'new ladder')}: {names}{more}"))
    if not result.new_players or (result.rejected_count and not result.would_append):
        return
    like = {name: f" (like {others[0]}?)" for name, others in result.alike.items()}
    names = ", ".join(name + like.get(name, "") for name in result.new_players[:TOLD_MAX])
    more = f" and {len(result.new_players) - TOLD_MAX:,} more" if len(result.new_players) > TOLD_MAX else ""
    render.note(render.plain(f"note: {render.count(len(result.new_players), 'new player')}: {names}{more}"))
    for name, others in list(result.close.items())[:TOLD_MAX]:
        render.note(f"note: {shown(name)} is close to {', '.join(map(shown, others))}")


def rejection_line(rejection: Rejection) -> str:
    """`FILE:LINE: code: message`, on one line."""
    where = "".join(f"{part}:" for part in (rejection.file, rejection.line) if part is not None)
    return render.plain(f"{where}{' ' if where else ''}{rejection.code}: {rejection.message}")


@contextmanager
def _rejects(wanted: bool) -> Iterator[Callable[[Rejection, Any], None]]:
    """Writes refusals with their input to FILE.rejects.jsonl, or where there is such a file to the next free name; one
    file for each that has any. Nothing that is there is touched: it may be an input."""
    files: dict[str, Any] = {}

    def write(rejection: Rejection, source: Any) -> None:
        if not wanted:
            return
        name = "stdin" if rejection.file in (None, STDIN) else str(rejection.file)
        if name not in files:
            files[name] = _new_file(name)
        line = {"line": rejection.line, "code": rejection.code, "message": rejection.message, "input": source}
        files[name].write(render.json_text(line) + "\n")

    try:
        yield write
    finally:
        for file in files.values():
            file.close()
            render.note(f"refused lines are in {file.name}")


def _new_file(name: str) -> Any:
    """A file for the refusals of an input that nobody has made yet."""
    for number in count(1):
        with suppress(FileExistsError):
            numbered = f".{number}" if number > 1 else ""
            return open(f"{name}.rejects{numbered}.jsonl", "x", encoding="utf-8", errors="backslashreplace")
    raise AssertionError


@contextmanager
def _bar(files: tuple[str, ...]) -> Iterator[tuple[Callable[[Far], None], Callable[[int], None]]]:
    """Progress on stderr if that is a terminal: bytes checked, then events appended."""
    if not sys.stderr.isatty():
        yield (lambda far: None), (lambda appended: None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        sizes = {name: size(name) for name in files}
        task = bar.add_task("checking", total=sum(s or 0 for s in sizes.values()) or None)
        done = dict.fromkeys(files, 0)

        def reading(far: Far) -> None:
            done[far.file] = far.read
            bar.update(task, completed=sum(done.values()))

        whole = sum(s or 0 for s in sizes.values())
        yield reading, lambda appended: bar.update(task, description=f"appended {appended:,}", completed=whole)
