"""Build the page that shows members the decisions between two positions."""

from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction

from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.html_pages import Page, PagePart
from ratings_ledger.projections.diff.decisions import Decision, Decisions, Share
from ratings_ledger.projections.queries.coordinates import TimeFormat
from ratings_ledger.projections.replay.ladder_names import drop_duplicate_ladders, short_name

# list at most this many causes of a player and sum up the others; a single other cause is listed, too
CAUSES_LISTED_MAX = 4


def count_affected_players(decisions: Decisions) -> int:
    """Count the players whose points a decision changed."""
    return len({share.player for share in decisions.shares if share.has_decision})


def build_decisions_page(decisions: Decisions) -> Page:
    """Return the page of the decisions, their effects on ladders, and the changes of each player's points."""
    first, last = map(decisions.times.format_with_zone, decisions.recorded)
    ladders = render.count(
        len({share.ladder for share in drop_duplicate_ladders(decisions.shares) if share.has_decision}), "ladder"
    )
    summary = (
        f"Recorded from {first} to {last}: {render.count(len(decisions.decisions), 'decision')}, and "
        f"{render.count(decisions.games, 'game')}. Decisions changed the points of "
        f"{render.count(count_affected_players(decisions), 'player')} on {ladders}."
    )
    rows = [
        (f"D{number}", *_build_decision_cells(decision, decisions.times))
        for number, decision in enumerate(decisions.decisions, 1)
    ]
    parts = [PagePart("Decisions", (), ("", "recorded", "by", "decision", "why"), rows)]
    if not rows:
        parts = [PagePart("Decisions", ["There were no decisions."])]
    else:
        header = ("", "ladder", "players", "gained most", "lost most")
        parts.append(
            PagePart(
                heading="Effects of the decisions",
                paragraphs=(),
                header=header,
                rows=list(_build_effect_rows(decisions)),
                right=("players",),
            )
        )
    by_ladder: dict[str, list[Share]] = defaultdict(list)
    for share in drop_duplicate_ladders(decisions.shares):
        by_ladder[share.ladder].append(share)
    parts += [
        _build_ladder_part(name, shares)
        for name, shares in by_ladder.items()
        if any(share.has_decision for share in shares)
    ]
    parts += [
        PagePart(short_name(name), [f"This ladder cannot be replayed: {problem}"])
        for name, problem in decisions.failures.items()
    ]
    footer = (
        f"Computed from the ledger at its positions {decisions.before} and {decisions.to}; its head is "
        f"{decisions.head}. Points are rounded to two places."
    )
    return Page(f"Changes from position {decisions.before} to {decisions.to}", [summary], parts, footer)


def _build_decision_cells(decision: Decision, times: TimeFormat) -> tuple[str, str, str, str]:
    """Return the time, author, description and reason of a decision."""
    more = len(decision.positions) - len(decision.descriptions)
    descriptions = "; ".join([*decision.descriptions, *([f"and {more:,} more"] if more else [])])
    count = f"{len(decision.positions):,} " if len(decision.positions) > 1 else ""
    return (
        times.format_minute(decision.recorded_at),
        decision.by,
        f"{count}{decision.verb}: {descriptions}",
        decision.reason or "",
    )


def _build_effect_rows(decisions: Decisions) -> Iterator[tuple[str, ...]]:
    """Yield a row for each decision and each ladder that it affects, or one row for a decision without an effect."""
    amounts_by_effect: dict[tuple[int, str], list[tuple[Fraction, str]]] = defaultdict(list)
    for share in drop_duplicate_ladders(decisions.shares):
        for cause, amount in share.amounts.items():
            if cause is not None:
                amounts_by_effect[cause, share.ladder].append((amount, share.player))
    for number in range(len(decisions.decisions)):
        ladders = [(ladder, amounts) for (cause, ladder), amounts in amounts_by_effect.items() if cause == number]
        for ladder, amounts in ladders or [("none", [])]:
            players = f"{len(amounts):,}" if amounts else ""
            gained, lost = max(amounts, default=None), min(amounts, default=None)
            yield (
                f"D{number + 1}",
                short_name(ladder),
                players,
                _describe_extreme(gained, 1),
                _describe_extreme(lost, -1),
            )


def _describe_extreme(extreme: tuple[Fraction, str] | None, sign: int) -> str:
    """Return the player and the amount, or an empty string if there is no amount with this sign."""
    if extreme is None or extreme[0] * sign <= 0:
        return ""
    amount, player = extreme
    return f"{player} {render.format_decimal(amount, signed=True)}"


def _build_ladder_part(name: str, shares: list[Share]) -> PagePart:
    """Return the part for a ladder: the players whose points changed because of decisions, largest gains first."""
    decided = sorted((share for share in shares if share.has_decision), key=lambda share: (-share.change, share.player))
    undecided_count = len(shares) - len(decided)
    rows = [
        (
            share.player,
            _format_points(share.before),
            render.format_decimal(share.change, signed=True),
            _format_points(share.after),
            _format_ranks(share),
            _describe_causes(share),
        )
        for share in decided
    ]
    header = ("player", "before", "change", "after", "rank", "causes")
    paragraphs = []
    if undecided_count:
        paragraphs.append(f"The points of {render.count(undecided_count, 'more player')} changed only by games.")
    return PagePart(
        heading=short_name(name),
        paragraphs=paragraphs,
        header=header,
        rows=rows,
        right=("before", "change", "after", "rank"),
    )


def _format_points(points: Fraction | None) -> str:
    return "-" if points is None else render.format_decimal(points)


def _format_ranks(share: Share) -> str:
    ranks = ["-" if rank is None else str(rank) for rank in share.rank]
    return ranks[0] if ranks[0] == ranks[1] else " → ".join(ranks)


def _describe_causes(share: Share) -> str:
    """Return the causes with their amounts, largest first; sum up the smallest causes."""
    ordered = sorted(share.amounts.items(), key=lambda entry: (-abs(entry[1]), entry[0] is None, entry[0] or 0))
    listed_count = CAUSES_LISTED_MAX if len(ordered) > CAUSES_LISTED_MAX + 1 else len(ordered)
    parts = [
        f"{'games' if cause is None else f'D{cause + 1}'} {render.format_decimal(amount, signed=True)}"
        for cause, amount in ordered[:listed_count]
    ]
    if unlisted := ordered[listed_count:]:
        unlisted_amount = render.format_decimal(sum((amount for _, amount in unlisted), Fraction(0)), signed=True)
        parts.append(f"{len(unlisted)} others {unlisted_amount}")
    return ", ".join(parts)
