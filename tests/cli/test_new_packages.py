"""`rules new --package`: a package with a rule that works as it is written."""

import subprocess
import sys
from pathlib import Path

import pytest
from correction_helpers import Ratings

FILES = ["my_club.py", "my-club.toml", "README.md", "pyproject.toml", "test_my_club.py"]


@pytest.mark.slow
def test_new_package_works_as_it_is(ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package can be installed, its tests pass, its ruleset can be published, and its ladder explains itself."""
    monkeypatch.chdir(tmp_path)
    db = str(tmp_path / "club.db")
    assert ratings("init", "--no-rules", "--zone", "Asia/Tokyo", db=db).exit_code == 0
    result = ratings("rules", "new", "--package", "my-club", "--game", "go", db=db)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        f"my-club is written: {', '.join(FILES)}",
        "next: pip install ./my-club; ratings rules check ./my-club/my-club.toml",
    ]
    assert {path.name for path in (tmp_path / "my-club").iterdir()} == {*FILES}
    written = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "my-club").iterdir())
    assert [word for word in ("NAME", "MODULE", "CLASS", "GAME", "ZONE") if word in written] == []
    installed = tmp_path / "installed"
    pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index",
           "--no-build-isolation", "--target", str(installed), "./my-club"]  # fmt: skip
    subprocess.run([sys.executable, *pip], check=True)

    def run(*arguments: str) -> str:
        """Return what Python prints where the package is installed."""
        environment = {"PYTHONPATH": str(installed), "PYTHONDONTWRITEBYTECODE": "1", "RATINGS_DB": f"sqlite:///{db}"}
        process = subprocess.run(
            [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False
        )
        assert process.returncode == 0, process
        return process.stdout

    assert run("-m", "pytest", "-q", "-p", "no:cacheprovider", "my-club").splitlines()[-1].startswith("3 passed")
    checked = run("-m", "ratings_ledger", "rules", "check", "my-club/my-club.toml").splitlines()
    assert checked[0] == "my-club/my-club.toml: my-club-go@1 can be published"
    assert "1,000 scored" in checked[1]
    run("-m", "ratings_ledger", "rules", "publish", "my-club/my-club.toml")
    run("-m", "ratings_ledger", "record", "--game", "go", "--game-id", "g-1", "anna", "ben")
    standings = run("-m", "ratings_ledger", "standings", "my-club-go")
    assert "anna" in standings
    assert "1520" in standings
    assert "+20  vs ben: K 40, scored 1" in run("-m", "ratings_ledger", "explain", "g-1", "my-club-go")


def test_nothing_is_overwritten(ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An existing file or folder of that name is left alone, even an empty folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my-club").mkdir()
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    for arguments, name in (((), "my-club"), (("file",), "file")):
        refused = ratings("rules", "new", *arguments, "--package", "my-club")
        assert (refused.exit_code, f"{name} exists; nothing was written" in refused.stderr) == (2, True)
    assert list((tmp_path / "my-club").iterdir()) == []
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--package", "My Club"], "is not a name like"),
        (["--package", "2-player"], "'2-player' cannot be the name of a Python module; choose another name"),
        (["--package", "class"], "'class' cannot be the name of a Python module"),
        (["--package", "json"], "a Python module json is already installed; choose another name"),
        (["--package", "pairwise-elo"], "rule pairwise-elo/1 already exists; choose another name"),
        (["--package", "mine", "--rule", "italia/1"], "--package writes a new rule, and --rule names an existing one"),
    ],
)
def test_impossible_or_used_name_is_refused(
    arguments: list[str], message: str, ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that no module can have or that is in use is refused, as is --rule with --package; nothing is written."""
    monkeypatch.chdir(tmp_path)
    refused = ratings("rules", "new", *arguments)
    assert refused.exit_code == 2
    assert message in " ".join(refused.stderr.split())
    assert list(tmp_path.iterdir()) == []
