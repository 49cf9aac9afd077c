"""The documentation is complete: reference pages match the code, links resolve, and every command and rule is there."""

import re
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from make_docs import ADDING_A_RULE, FOLDER, PAGES, ROOT, replace_columns
from own_rules import list_built_in_rules, list_state_rules

from ratings_ledger.cli.main import COMMANDS
from ratings_ledger.ledger import rejections, verification
from ratings_ledger.ledger.events.types import TYPES

# names that must not occur in a public project, joined here so that this file does not contain them
FORBIDDEN_WORDS = (
    "/" + "work" + "/",
    "sub" + "agent",
    "py" + "pi.org",
    "files.python" + "hosted.org",
    "--index" + "-url http",
)


def list_text_files() -> Iterator[Path]:
    """Yield the text files of the project: those that git tracks or would add, or the pages if there is no git."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    names = listed.stdout.decode().split("\0") if listed.returncode == 0 else []
    for path in map(ROOT.joinpath, filter(None, names)) if names else sorted(FOLDER.rglob("*.md")):
        if path.is_file() and b"\0" not in path.read_bytes():
            yield path


@pytest.mark.parametrize("name", PAGES)
def test_reference_page_matches_the_code(name: str) -> None:
    """Each reference page matches what the code generates."""
    assert (FOLDER / name).read_text(encoding="utf-8") == PAGES[name](), "make docs"


def test_columns_match_the_code() -> None:
    """The columns on the page about adding a rule match what the code generates."""
    text = ADDING_A_RULE.read_text(encoding="utf-8")
    assert replace_columns(text) == text, "make docs"


def test_everything_public_is_documented() -> None:
    """Every command, rejection code, rule and event type is documented."""
    commands = (FOLDER / "cli.md").read_text(encoding="utf-8")
    codes = (FOLDER / "rejections.md").read_text(encoding="utf-8")
    rules = (FOLDER / "rules.md").read_text(encoding="utf-8")
    importing = (FOLDER / "importing.md").read_text(encoding="utf-8")
    missing = [
        *(name for name in COMMANDS if f"\n## ratings {name}\n" not in commands),
        *(code for code in (*rejections.CODES, *verification.CODES) if f"\n| `{code}` |" not in codes),
        *(name for name in (*list_built_in_rules(), *list_state_rules()) if f"\n## Rule `{name}`\n" not in rules),
        *(name for name in TYPES if f"`{name}`" not in importing),
    ]
    assert missing == []


def test_architecture_names_every_folder() -> None:
    """Every folder of the code is named on the architecture page and has a docstring."""
    page = (FOLDER / "architecture.md").read_text(encoding="utf-8")
    folders = [
        file.parent for layer in ("ledger", "projections", "cli") for file in (ROOT / layer).rglob("__init__.py")
    ]
    assert len(folders) > 20
    assert [folder.name for folder in folders if f"{folder.name}/`" not in page] == []
    assert [
        folder.name for folder in folders if not (folder / "__init__.py").read_text("utf-8").startswith('"""')
    ] == []


def test_dependencies_are_explained_and_locked() -> None:
    """The dependencies page lists exactly the declared dependencies, and each of them is locked."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = [*project["project"]["optional-dependencies"].values(), *project["dependency-groups"].values()]
    named = [
        *project["project"]["dependencies"],
        *(entry for group in groups for entry in group if isinstance(entry, str)),
    ]
    names = {re.split(r"[\[<>=~! ]", entry)[0] for entry in named}
    page = (FOLDER / "dependencies.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)) == names
    locks = [ROOT / "requirements" / f"{name}.lock" for name in ("dev", "bench", "docs")]
    locked = "".join(lock.read_text(encoding="utf-8") for lock in locks)
    assert {name for name in names if not re.search(rf"^{re.escape(name)}==", locked, re.MULTILINE)} == set()


def test_server_lock_extends_lock_for_running() -> None:
    """The lock for servers is the lock for running plus the driver, compiled replay and the cluster.

    Its versions and hashes are those of the lock for development. Every line that pip reads is compared.
    """

    def read_pins(name: str) -> dict[str, str]:
        """Return the version and hashes of every package in a lock file."""
        text = (ROOT / "requirements" / f"{name}.lock").read_text(encoding="utf-8")
        plain = "".join(line for line in text.splitlines(keepends=True) if not line.lstrip().startswith("#"))
        return dict(re.findall(r"^([\w.-]+)==(.+?(?:\\\n.+?)*)$", plain, re.MULTILINE))

    run, server, dev = read_pins("run"), read_pins("server"), read_pins("dev")
    assert run.items() <= server.items() <= dev.items()
    assert {"psycopg", "psycopg-binary", "numba", "distributed", "fsspec"} <= server.keys() - run.keys()
    assert all("--hash=sha256:" in pin for pin in server.values())


def test_links_resolve() -> None:
    """Every link in the pages leads to an existing file and heading."""
    broken = []
    for page in (*ROOT.glob("*.md"), *(ROOT / "examples").rglob("*.md"), *FOLDER.rglob("*.md")):
        for target in re.findall(r"""(?:\]\(|(?:src|href)=")([^)\s"]+)[)"]""", page.read_text(encoding="utf-8")):
            if "://" in target:
                continue
            name, _, heading = target.partition("#")
            linked = page.parent / name if name else page
            if not linked.exists() or (heading and heading not in list_anchors(linked)):
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert broken == []


def list_anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_security_page_names_real_tests() -> None:
    """Every test file that the security page names exists, and every row names one or says `nothing`."""
    page = (FOLDER / "security.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("|")][2:]
    named = re.findall(r"`(\w+/test_\w+\.py)`", page)
    assert [name for name in named if not (ROOT / "tests" / name).exists()] == []
    # an attack that nothing prevents or finds has no test
    assert [row for row in rows if "test_" not in row and "nothing" not in row] == []


def test_readme_leads_to_every_page() -> None:
    """Every page can be reached from the README."""
    reached, pending = set(), [ROOT / "README.md"]
    while pending:
        page = pending.pop()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
        pending += [(page.parent / target).resolve() for target in targets if "://" not in target]
    assert [page.name for page in sorted(FOLDER.rglob("*.md")) if page not in reached] == []


def test_each_role_has_a_short_path() -> None:
    """The index of the docs has a path for each role, with one to three pages that exist."""
    sections = re.split(r"^## (.+)$", (FOLDER / "README.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    paths = {
        title.removeprefix("For "): re.findall(r"^\d\. \[[^\]]+\]\(([^)]+)\)$", section, re.MULTILINE)
        for title, section in zip(sections[1::2], sections[2::2], strict=True)
        if title.startswith("For ")
    }
    assert [*paths] == ["members", "directors", "auditors", "operators", "programmers", "contributors"]
    assert {role: len(path) for role, path in paths.items() if not 1 <= len(path) <= 3} == {}
    assert [page for path in paths.values() for page in path if not (FOLDER / page).is_file()] == []


def test_decision_pages_are_short() -> None:
    """No page of decisions has more than 600 words."""
    lengths = {page.name: len(page.read_text(encoding="utf-8").split()) for page in (FOLDER / "decisions").glob("*.md")}
    assert lengths
    assert {name: length for name, length in lengths.items() if length > 600} == {}


def test_files_contain_no_forbidden_words() -> None:
    """No text file of the project contains a name that must not occur in a public project."""
    mentions = [
        f"{path.relative_to(ROOT)}: {word}"
        for path in list_text_files()
        for text in [path.read_text(encoding="utf-8", errors="replace").lower()]
        for word in FORBIDDEN_WORDS
        if word in text
    ]
    assert mentions == []


def find_blocks(page: str, language: str) -> list[str]:
    """Return the fenced blocks of a language on a page."""
    return re.findall(rf"```{language}\n(.*?)```", (FOLDER / page).read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.slow
def test_shown_files_are_accepted(ratings: Callable[..., Any], tmp_path: Path) -> None:
    """`import`, `rules check` and `rules publish` accept the files that the pages show."""
    database = f"sqlite:///{tmp_path / 'ratings.db'}"
    assert ratings("init", db=database).exit_code == 0
    examples = [
        *(("game.jsonl", text) for text in find_blocks("importing.md", "json")),
        *(("games.csv", text) for text in find_blocks("importing.md", "csv")),
    ]
    assert len(examples) == 5
    for name, text in examples:
        (tmp_path / name).write_text(text, encoding="utf-8")
        result = ratings("import", "--dry-run", tmp_path / name, db=database)
        assert (result.exit_code, result.stdout[:2]) == (0, "1 "), result
    (corrections,) = find_blocks("importing.md", "jsonl")
    (tmp_path / "corrections.jsonl").write_text(corrections, encoding="utf-8")
    for appended in (len(corrections.splitlines()), 0):
        result = ratings("import", tmp_path / "corrections.jsonl", db=database)
        assert (result.exit_code, result.stdout.startswith(f"{appended} appended")) == (0, True), result
    (ruleset,) = find_blocks("rulesets.md", "toml")
    (tmp_path / "house-elo-2.toml").write_text(ruleset, encoding="utf-8")
    assert ratings("rules", "check", tmp_path / "house-elo-2.toml").exit_code == 0
    assert ratings("rules", "publish", tmp_path / "house-elo-2.toml", db=database).exit_code == 0
