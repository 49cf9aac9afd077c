"""Implement `status --format prometheus`: the text format that Prometheus and its collectors read, version 0.0.4.

    # HELP ratings_standings_behind_events Events that the oldest stored standings do not include.
    # TYPE ratings_standings_behind_events gauge
    ratings_standings_behind_events{ledger="ratings.db"} 3

Unknown values, such as the age of standings that are not stored, are left out.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from ratings_ledger.ledger.events.canonical import parse_instant
from ratings_ledger.ledger.store.locations import drop_user

# the possible results of a run; each is a series, which is 1 for the actual result
RESULTS = ("done", "failed", "lost", "running")
Samples = list[tuple[dict[str, str], int | None]]


class Family(NamedTuple):
    """A metric with its labelled samples."""

    name: str
    kind: str
    help: str
    samples: Samples


def format_metrics(state: dict[str, Any]) -> str:
    """Format the JSON of `status` as metrics.

    Each metric has the label `ledger`: the location without the user, so that all roles write the same series.
    """
    lines: list[str] = []
    for family in _list_families(state):
        samples = [(labels, value) for labels, value in family.samples if value is not None]
        if samples:
            lines += [f"# HELP {family.name} {_escape(family.help)}", f"# TYPE {family.name} {family.kind}"]
        for labels, value in samples:
            all_labels = {"ledger": drop_user(state["ledger"]), **labels}
            label_text = ",".join(f'{name}="{_escape(text, quoted=True)}"' for name, text in all_labels.items())
            lines.append(f"{family.name}{{{label_text}}} {value}")
    return "".join(f"{line}\n" for line in lines)


# over 60 lines, because all metrics in a single list are easier to check against the documentation
def _list_families(state: dict[str, Any]) -> Iterator[Family]:
    def create_gauge(name: str, meaning: str, samples: Samples) -> Family:
        return Family(f"ratings_{name}", "gauge", meaning, samples)

    generation, runs = state["generation"] or {}, state["runs"]
    yield create_gauge(
        "ledger_info", "The ledger's id, as a label; always 1.", [({"ledger_id": state["ledger_id"]}, 1)]
    )
    yield create_gauge("head_position", "The position of the last event.", [({}, state["position"])])
    yield create_gauge(
        "head_recorded_timestamp_seconds",
        "When the last event was recorded.",
        [({}, _format_timestamp(state["recorded"]))],
    )
    yield Family(
        "ratings_events_total",
        "counter",
        "Events in the log, by type.",
        [({"type": name}, number) for name, number in sorted(state["events"].items())],
    )
    yield create_gauge(
        "standings_generation", "The number of the live generation.", [({}, generation.get("generation"))]
    )
    yield create_gauge(
        "standings_position", "The position that the live generation was built at.", [({}, generation.get("position"))]
    )
    yield create_gauge(
        "standings_behind_events", "Events that the oldest stored standings do not include.", [({}, state["behind"])]
    )
    yield create_gauge(
        "standings_age_seconds", "How long ago the oldest stored standings were built.", [({}, state["age_seconds"])]
    )
    built = [text for text in (generation.get("finished"), *(ladder["built"] for ladder in state["stale"])) if text]
    yield create_gauge(
        "standings_built_timestamp_seconds",
        "When the oldest stored standings were built.",
        [({}, _format_timestamp(min(built, default=None)))],
    )
    reasons = [ladder["why"] for ladder in state["stale"]]
    yield create_gauge(
        "stale_ladders",
        "Ladders older than the live generation, by reason.",
        [({"why": why}, reasons.count(why)) for why in ("failed", "not-asked")],
    )
    yield create_gauge(
        "missing_rules", "Published rulesets whose rule is not installed.", [({}, len(state["rules_missing"]))]
    )
    kinds = [entry["kind"] for entry in state["dated_ahead"]]
    yield create_gauge(
        "dated_ahead",
        "Runs, generations and stored ladders dated in the future.",
        [({"kind": kind}, kinds.count(kind)) for kind in ("run", "generation", "ladder")],
    )
    yield create_gauge(
        "run_result",
        "Result of the last run of a kind: 1 for the actual result, 0 for the others.",
        [
            ({"kind": kind, "result": result}, int(run["last"]["result"] == result))
            for kind, run in runs.items()
            for result in RESULTS
        ],
    )
    yield create_gauge(
        "run_position",
        "Position that the last run of a kind reached.",
        [({"kind": kind}, run["last"]["position"]) for kind, run in runs.items()],
    )
    for name, subject, key in (
        ("run", "The last run", "last"),
        ("run_last_success", "The last success", "last_success"),
        ("run_last_failure", "The last failure", "last_failure"),
    ):
        known_runs = {kind: run[key] for kind, run in runs.items() if run[key] is not None}
        yield create_gauge(
            f"{name}_started_timestamp_seconds",
            f"{subject} of a kind: when it started.",
            [({"kind": kind}, _format_timestamp(run["started"])) for kind, run in known_runs.items()],
        )
        yield create_gauge(
            f"{name}_age_seconds",
            f"{subject} of a kind: seconds since it ended, or since it started if the end is unknown.",
            [({"kind": kind}, run["age_seconds"]) for kind, run in known_runs.items()],
        )


def _format_timestamp(text: str | None) -> int | None:
    """Return an instant as seconds since 1970."""
    return None if text is None else parse_instant(text) // 1_000_000


def _escape(text: str, quoted: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quoted else text
