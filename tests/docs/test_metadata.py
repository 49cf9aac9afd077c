"""The metadata of the package: what an index or a person without the repository sees of it."""

import json
import re
import subprocess
import sys
from typing import Any

import pytest
from make_docs import ROOT

LINK = re.compile(r"""(?:\]\(|(?:src|href)=")([^)\s"]+)[)"]""")


@pytest.fixture(scope="module")
def metadata() -> dict[str, Any]:
    """Return the metadata as the build backend computes it."""
    command = [sys.executable, "-m", "hatchling", "metadata"]
    process = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    parsed: dict[str, Any] = json.loads(process.stdout)
    return parsed


def test_metadata_says_where_it_runs_and_who_made_it(metadata: dict[str, Any]) -> None:
    """Authors, license, addresses, supported versions of Python and the classifier for types are named."""
    assert metadata["authors"]
    assert (metadata["license"], metadata["requires-python"]) == ("Apache-2.0", ">=3.11")
    assert {"Homepage", "Source", "Documentation", "Changelog", "Issues"} <= metadata["urls"].keys()
    assert "Typing :: Typed" in metadata["classifiers"]
    versions = [text.rpartition(" ")[2] for text in metadata["classifiers"] if re.search(r":: 3\.\d+$", text)]
    assert versions == ["3.11", "3.12", "3.13", "3.14"]


def test_readme_needs_no_repository(metadata: dict[str, Any]) -> None:
    """The package's README has the same links as the repository's, with absolute links to files of this version."""
    source, version = metadata["urls"]["Source"], metadata["version"]
    links = LINK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    absolute_links = LINK.findall(metadata["readme"]["text"])
    assert metadata["readme"]["content-type"] == "text/markdown"
    for link, absolute in zip(links, absolute_links, strict=True):
        if "://" in link or link.startswith("#"):
            assert absolute == link
        else:
            kind = "raw" if link.endswith(".png") else "blob"
            assert absolute == f"{source}/{kind}/v{version}/{link}"


def test_changelog_has_the_version_on_top(metadata: dict[str, Any]) -> None:
    """The newest heading of the changelog is the version of the package, with a date once it is released."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (.+)$", changelog, re.MULTILINE)
    assert newest is not None
    version = re.escape(metadata["version"])
    assert re.fullmatch(rf"\[Unreleased\] {version}|\[{version}\] - \d{{4}}-\d\d-\d\d", newest[1])
