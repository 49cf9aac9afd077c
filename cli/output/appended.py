"""Printing what was appended, what was refused and who is new."""

import re
from collections.abc import Sequence
from typing import Any

from cli.output import render
from cli.output.impact import impact_json, note_failed, print_impact, print_lists
from ledger.intake.importing import Imported
from ledger.rejections import Rejection, shown
from ledger.store.opening import Ledger
from ledger.validation.new_names import TOLD_MAX
from projections.queries.answers_compared import DifferingList, Impact
from projections.queries.coordinates import times_of

SHOWN_REJECTIONS = 20
# these depend on how a whole file is written: one cause, whatever the cells hold
WRITTEN = frozenset({"bad-utf8", "bad-time", "naive-time"})

_WITHOUT_VALUES = re.compile(r"'[^']*'|\d+")


def note_homeless(result: Imported) -> None:
    """Report games that are on no ladder, one for each reason, unless something was refused."""
    for reason, game_id in result.homeless.items() if not result.rejected_count else ():
        render.note(f"note: on no ladder, such as {render.plain(game_id)}: {reason}")


def note_leagueless(result: Imported) -> None:
    """Report games that a league has scheduled but that do not name it, one for each league."""
    for league, game_id in result.leagueless.items() if not result.rejected_count else ():
        league, game_id = render.plain(league), render.plain(game_id)
        render.note(
            f"note: {game_id} is scheduled in the league {league}, but does not say so; fix it with: "
            f"ratings correct {game_id} --league {league} --reason TEXT"
        )


def tell_recorded(
    ledger: Ledger, result: Imported, form: str, dry_run: bool, found: Impact | None = None, quiet: bool = False,
    lists: Sequence[DifferingList] | None = None,
) -> int:  # fmt: skip
    """Print what was appended and what was refused, who is new, and what that changes as far as known, or only which
    published lists; returns the exit code.
    """
    if found is None and dry_run:
        found = Impact()
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
                **({} if found is None else impact_json(found)),
                **({"incomplete": result.passed} if result.passed else {}),
                **({} if lists is None else {"published": [one.model_dump() for one in lists]}),
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
    if found is not None and (result.would_append if dry_run else result.appended) and not quiet:
        print_impact(found, ledger)
    if lists:
        with ledger.reading() as connection:
            print_lists(lists, times_of(connection))
    return int(result.rejected_count > 0)


def _causes(rejected: list[Rejection]) -> list[list[Rejection]]:
    """Refusals grouped by cause, as a file often has the same one on many lines."""
    found: dict[tuple[str | None, str, str], list[Rejection]] = {}
    for one in rejected:
        message = _WITHOUT_VALUES.sub("", one.message) if one.code in WRITTEN else one.message
        found.setdefault((one.file, one.code, message), []).append(one)
    return list(found.values())


def _more(rejections: list[Rejection]) -> str:
    """How often a cause recurs, and where it last does."""
    again = len(rejections) - 1
    return f" ({render.count(again, 'more line')} like this, the last {rejections[-1].line})" if again else ""


def new_told(result: Imported) -> dict[str, Any]:
    """Who is new, whose name is close to another, and the same for ladders, as stated in JSON."""
    close = [{"player": name, "close_to": others} for name, others in result.close.items()]
    new_ladders, like = ([], {}) if result.rejected_count else (result.new_ladders, result.close_ladders)
    ladders = [{"ladder": name, "close_to": [other]} for name, other in like.items()]
    return {
        "new_players": result.new_players, "close_names": close,
        "new_ladders": new_ladders, "close_ladders": ladders,
    }  # fmt: skip


def note_new(result: Imported) -> None:
    """Print which ladders begin and who is new, unless nothing was taken, and whose name is close to another."""
    if result.new_ladders and not result.rejected_count:
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


def _rejected(one: Rejection) -> dict[str, Any]:
    told = {"code": one.code, "message": one.message}
    return told if one.line is None else {"file": one.file, "line": one.line, **told}


def tell_entered(
    ledger: Ledger, type_name: str, result: Imported, form: str, dry_run: bool, entered: Sequence[str] = (),
    found: Impact | None = None, unchanged: Sequence[str] | None = None,
) -> int:  # fmt: skip
    """Print what became of events of one type, with these ids, and what they change; returns the exit code."""
    found = found or Impact()
    position = result.head.position if result.head and result.appended else None
    if form == "json":
        render.print_json(
            {
                "type": type_name,
                "event_id": entered[0] if entered else None,
                "position": position,
                "appended": result.appended,
                "existing": result.existing,
                "dry_run": dry_run,
                "rejected": [_rejected(r) for r in result.rejected],
                **({} if unchanged is None else {"unchanged": unchanged}),
                **new_told(result),
                **impact_json(found),
            }
        )
        return int(result.rejected_count > 0)
    if result.rejected_count:
        for rejection in result.rejected[:SHOWN_REJECTIONS]:
            render.note(rejection_line(rejection))
        if (untold := result.rejected_count - SHOWN_REJECTIONS) > 0:
            render.note(f"... and {untold:,} more (--format json lists them)")
        render.echo("Nothing was recorded.")
        return 1
    if not entered:
        render.echo("This is already recorded.")
        return 0
    note_new(result)
    if dry_run:
        render.echo(f"Nothing was recorded; this is what {type_name} would do.")
    elif len(entered) > 1:
        render.echo(f"{len(entered):,} events {type_name} are recorded, the last at position {position:,}.")
    else:
        render.echo(f"{type_name} is recorded at position {position:,}.")
    print_impact(found, ledger)
    return 0
