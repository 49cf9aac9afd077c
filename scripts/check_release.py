"""Check that a tag may be released: it is the version, the changelog is dated, and the addresses are real.

    python scripts/check_release.py v0.2.0

It prints one reason per line against the release, and then exits with 1.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
# reserved domains, which stand for an address that is not known yet
RESERVED = (".example", ".invalid", ".test", "example.com", "example.org", "example.net")


def release_errors(tag: str, pyproject: str, changelog: str) -> Iterator[str]:
    """Yield the reasons why the project with these two files may not be released under a tag."""
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
    """Print the reasons against a release of this folder and return the exit status."""
    files = (ROOT / name for name in ("pyproject.toml", "CHANGELOG.md"))
    errors = [*release_errors(tag, *(path.read_text(encoding="utf-8") for path in files))]
    sys.stderr.writelines(f"{error}\n" for error in errors)
    return int(bool(errors))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
