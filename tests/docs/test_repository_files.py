"""The files that a host of repositories reads, and the check before a release."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from check_release import list_release_errors
from make_docs import ROOT

from ratings_ledger.cli.main import COMMANDS

GITHUB = ROOT / ".github"
TARGETS = set(re.findall(r"^([\w/$()]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
FORMS = [path for path in sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.yml")) if path.stem != "config"]

# a source distribution has no folder of this kind
pytestmark = pytest.mark.skipif(not GITHUB.exists(), reason="these are not the files of the repository")


def load_workflow(name: str) -> dict[str, Any]:
    """Return the content of a workflow file."""
    workflow: dict[str, Any] = yaml.safe_load((GITHUB / "workflows" / name).read_text(encoding="utf-8"))
    return workflow


def list_steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the steps of all jobs of a workflow."""
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_tests_run_on_every_supported_python() -> None:
    """The matrix has the versions of the classifiers on Linux, and the oldest and the newest on macOS."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    supported = [text.rpartition(" ")[2] for text in project["classifiers"] if re.search(r":: 3\.\d+$", text)]
    matrix = load_workflow("test.yml")["jobs"]["test"]["strategy"]["matrix"]
    assert matrix["python"] == supported
    on_macos = [entry["python"] for entry in matrix["include"] if entry["os"].startswith("macos")]
    assert on_macos == [supported[0], supported[-1]]


@pytest.mark.parametrize("name", ["test.yml", "release.yml"])
def test_workflows_run_what_exists(name: str) -> None:
    """Each `make` target and each file that a workflow names exists."""
    commands = " ".join(step.get("run", "") for step in list_steps(load_workflow(name)))
    targets = [target for target in re.findall(r"\bmake ([\w./]+)", commands) if not target.startswith(".venv")]
    assert [target for target in targets if target not in TARGETS] == []
    files = re.findall(r"\b((?:tests|scripts)/[\w/.]+)", commands)
    assert [file for file in files if not (ROOT / file).exists()] == []


def test_only_the_upload_has_rights_and_no_secret_is_stored() -> None:
    """Workflows may only read the repository; the upload alone may identify itself to the index, in its environment."""
    for name in ("test.yml", "release.yml"):
        workflow = load_workflow(name)
        assert workflow["permissions"] == {"contents": "read"}
        assert "secrets." not in (GITHUB / "workflows" / name).read_text(encoding="utf-8")
        entitled = {
            job: settings["permissions"] for job, settings in workflow["jobs"].items() if "permissions" in settings
        }
        assert entitled == ({"publish": {"id-token": "write"}} if name == "release.yml" else {})
    jobs = load_workflow("release.yml")["jobs"]
    assert (jobs["publish"]["environment"], jobs["publish"]["needs"]) == ("release", "build")


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.stem)
def test_issue_forms_ask_for_what_exists(form: Path) -> None:
    """An issue form is complete, and every command that it names exists."""
    text = form.read_text(encoding="utf-8")
    template = yaml.safe_load(text)
    assert {"name", "description", "body"} <= template.keys()
    fields = [field for field in template["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in fields}) == len(fields) > 2
    assert all(field["attributes"]["label"] for field in fields)
    assert [command for command in re.findall(r"`ratings ([a-z]+)", text) if command not in COMMANDS] == []


def test_release_needs_version_date_and_address() -> None:
    """A tag that is not the version, a changelog without a date, and a placeholder are each reported."""
    pyproject = '[project]\nversion = "1.2.0"\n[project.urls]\nSource = "https://ratings.example/code"\n'
    changelog = "# Changelog\n\n## [Unreleased] 1.2.0\n"
    tag, date, address = list_release_errors("v1.3.0", pyproject, changelog)
    assert tag == "the tag is v1.3.0, but pyproject.toml has version 1.2.0: tag v1.2.0, or change the version"
    assert date.startswith("CHANGELOG.md has no heading '## [1.2.0] - YYYY-MM-DD'")
    assert address == (
        "pyproject.toml: Source is https://ratings.example/code, a placeholder: "
        "replace ratings.example everywhere in the file"
    )
    real = pyproject.replace("ratings.example", "code.ratings-club.net")
    assert [*list_release_errors("v1.2.0", real, changelog.replace("[Unreleased] 1.2.0", "[1.2.0] - 2026-12-01"))] == []
