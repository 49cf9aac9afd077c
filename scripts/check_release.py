"""Check that a tag can be released: it matches the version, the changelog has a date, and no address is a placeholder.

    python scripts/check_release.py v0.2.0

The script prints one problem per line; with problems, it exits with 1.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
# reserved domains, used as placeholders
RESERVED = (".example", ".invalid", ".test", "example.com", "example.org", "example.net")


def list_release_errors(tag: str, pyproject: str, changelog: str) -> Iterator[str]:
    """Yield the problems that prevent a release under a tag, given the text of both files."""
    project = tomllib.loads(pyproject)["project"]
    version = project["version"]
    if tag != f"v{version}":
        yield f"the tag is {tag}, but pyproject.toml has version {version}: tag v{version}, or change the version"
    if not re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE):
        yield f"CHANGELOG.md has no heading '## [{version}] - YYYY-MM-DD': replace '[Unreleased]' and add the date"
    for name, address in project["urls"].items():
        host = re.sub(r"^\w+://([^/:]+).*$", r"\1", address)
        if host.endswith(RESERVED):
            yield f"pyproject.toml: {name} is {address}, a placeholder: replace {host} everywhere in the file"


def main(tag: str) -> int:
    """Print the problems that prevent a release; return the exit code."""
    files = (ROOT / name for name in ("pyproject.toml", "CHANGELOG.md"))
    errors = [*list_release_errors(tag, *(path.read_text(encoding="utf-8") for path in files))]
    sys.stderr.writelines(f"{error}\n" for error in errors)
    return int(bool(errors))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
