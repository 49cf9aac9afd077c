"""deploy/prometheus: the alert rules use the metrics that the program writes."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from make_docs import FOLDER, ROOT

from ratings_ledger.cli.output.prometheus import RESULTS

FILE = ROOT / "deploy" / "prometheus" / "ratings.rules.yml"
KINDS = ("nightly", "rebuild", "verify", "backup")
SERIES = re.compile(r"(ratings_\w+|node_textfile_mtime_seconds)(?:\{([^}]*)\})?")
LABEL = re.compile(r'(\w+)(=~|!=|=)"([^"]*)"')
VALUES = {"kind": (*KINDS, "run", "generation", "ladder"), "result": RESULTS, "why": ("failed", "not-asked")}


def load_rules() -> list[dict[str, Any]]:
    """Return the alert rules of the file."""
    (group,) = yaml.safe_load(FILE.read_text(encoding="utf-8"))["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


@pytest.fixture
def written_metrics(ratings: Callable[..., Any], ledger_url: str, tmp_path: Path) -> dict[str, set[str]]:
    """Return the labels of each metric that `status` writes after a nightly run."""
    assert ratings("nightly", "--backup", tmp_path / "backups", db=ledger_url).exit_code == 0
    metrics: dict[str, set[str]] = {}
    for line in ratings("status", "--format", "prometheus", db=ledger_url).stdout.splitlines():
        if not line.startswith("#"):
            name, _, labels = line.partition("{")
            metrics.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    return metrics


def test_alerts_use_metrics_and_labels_that_are_written(written_metrics: dict[str, set[str]]) -> None:
    """Each metric, label and value in an expression is one that the program writes."""
    unknown = []
    for rule in load_rules():
        for name, labels in SERIES.findall(rule["expr"]):
            if name == "node_textfile_mtime_seconds":
                continue  # the collector's own
            for label, _, value in LABEL.findall(labels):
                if label not in written_metrics.get(name, ()) or value not in VALUES[label]:
                    unknown.append(f"{rule['alert']}: {name}{{{label}={value}}}")
            if name not in written_metrics:
                unknown.append(f"{rule['alert']}: {name}")
        for label in re.findall(r"\$labels\.(\w+)", str(rule["annotations"])):
            series = [name for name, _ in SERIES.findall(rule["expr"])]
            if series != ["node_textfile_mtime_seconds"] and not all(label in written_metrics[name] for name in series):
                unknown.append(f"{rule['alert']}: $labels.{label}")
    assert unknown == []


def test_alerts_are_complete_and_on_the_page() -> None:
    """Each alert has a severity, a summary and a description; the page has a row for each, in the same order.

    The descriptions name only the commands `status`, `verify` and `backup`.
    """
    rules = load_rules()
    assert {rule["labels"]["severity"] for rule in rules} == {"critical", "warning"}
    assert all(rule["annotations"].keys() == {"summary", "description"} for rule in rules)
    page = (FOLDER / "deploying.md").read_text(encoding="utf-8").partition("\n## Alert rules\n")[2]
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == [rule["alert"] for rule in rules]
    names = re.findall(r"`ratings ([a-z]+)", FILE.read_text(encoding="utf-8"))
    assert {*names} <= {"status", "verify", "backup"}
