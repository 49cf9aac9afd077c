"""The console blocks of a page of documentation: run in a folder of their own, their shown output brought up to date.

    ```console
    $ ratings standings club-catan-elo/all
    club-catan-elo/all: 36 games ...
    ```

A line that begins with `$ ratings` is run. The lines below it are what it prints, all of them; a command without lines
below it is run all the same. `# exit 1` behind a command says that it ends so. Everything else stays as it is.
"""

import contextlib
import io
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from cli.main import invoke

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_PROMPT = "$ ratings "
_EXIT = re.compile(r"# exit (\d+)$")
# what differs from run to run: hashes, ids, times of recording, durations
_VOLATILE = (
    (re.compile(r"\b[0-9a-f]{64}\b"), "HASH"),
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "ID"),
    (re.compile(r"\b20(2[6-9]|[3-9]\d)-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?Z?)?"), "TIME"),
    (re.compile(r"\bin \d+\.\d s\b"), "in SECONDS"),
    (re.compile(r" +"), " "),
)


class Unexpected(Exception):
    """A command did not end as the page says."""


def refreshed(page: Path, folder: Path, root: Path) -> str:
    """The page's text with the output that its commands print now. Raises `Unexpected`.

    They run in `folder`, which gets a copy of the project's examples; those of a page beside the examples run there.
    """
    shutil.copytree(root / "examples", folder / "examples")
    with _in(folder / "examples" if page.parent == root / "examples" else folder):
        return _BLOCK.sub(lambda match: f"```console\n{_rerun(match.group(1))}```", page.read_text(encoding="utf-8"))


def masked(text: str) -> str:
    """A text with everything replaced that differs from run to run, for comparison."""
    for pattern, name in _VOLATILE:
        text = pattern.sub(name, text)
    return text


def _rerun(block: str) -> str:
    found: list[str] = []
    lines = block.splitlines()
    while lines:
        line = lines.pop(0)
        found.append(line)
        if not line.startswith(_PROMPT):
            continue
        shown = []
        while lines and not lines[0].startswith(("$ ", "# ")):
            shown.append(lines.pop(0))
        output = _run(line)
        printed = output.rstrip("\n").splitlines()
        if any(shown):
            shown = [*printed, *[""] * (not shown[-1])]
        found += shown
    return "".join(f"{line}\n" for line in found)


def _run(line: str) -> str:
    expected = int(match.group(1)) if (match := _EXIT.search(line)) else 0
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n", write_through=True)
    with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
        code = invoke(shlex.split(line.removeprefix(_PROMPT), comments=True))
        sys.stdout.flush()
    output = stream.buffer.getvalue().decode()
    if code != expected:
        raise Unexpected(f"{line}\nended with {code}:\n{output}")
    return str(output)


@contextlib.contextmanager
def _in(folder: Path) -> Iterator[None]:
    before, named = os.getcwd(), os.environ.pop("RATINGS_DB", None)
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        if named is not None:
            os.environ["RATINGS_DB"] = named
