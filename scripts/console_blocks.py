"""The console blocks of a documentation page: run in a folder of their own, and the output shown brought up to date.

    ```console
    $ ratings standings club-catan-elo/all
    club-catan-elo/all: 36 games ...
    ```

A line that begins with `$ ratings` is run. The lines below it are its complete output; a command without lines below it
is run all the same. `# exit 1` after a command is its exit code, and `< FILE` gives it a file on standard input.
Everything else stays as it is.

A block with a title, such as ```` ```toml title="house-elo-2.toml" ````, is a file, and is written first. A folder of
such files can be a package: `$ pip install ./FOLDER` installs it, without a network, for the commands below it, which
run in processes of their own until `$ pip uninstall`.
"""

import contextlib
import doctest
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from ratings_ledger.cli.main import invoke

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r'^```\w+ title="([^"]+)"\n(.*?)^```$', re.DOTALL | re.MULTILINE)
_PYTHON = re.compile(r"```pycon\n(.*?)```", re.DOTALL)
_PROMPTS = ("$ ratings ", "$ pip ")
_EXIT = re.compile(r"# exit (\d+)$")
# what differs from run to run: hashes, ids, recording times, durations
_VOLATILE = (
    (re.compile(r"\b[0-9a-f]{64}\b"), "HASH"),
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "ID"),
    (re.compile(r"\b20(2[6-9]|[3-9]\d)-\d\d-\d\d[T ]\d\d:?\d\d(:?\d\d(\.\d+)?Z?)?"), "TIME"),
    (re.compile(r"\bin \d+\.\d s\b"), "in SECONDS"),
    (re.compile(r" +"), " "),
)


class Unexpected(Exception):
    """A command did not end as the page says."""


def refreshed(page: Path, folder: Path, root: Path) -> str:
    """The page's text with the output that its commands print now. Raises `Unexpected`.

    They run in `folder`, which gets a copy of the project's examples and the page's own files; the commands of a page
    next to the examples run there.
    """
    shutil.copytree(root / "examples", folder / "examples")
    text = page.read_text(encoding="utf-8")
    shell = Shell(folder / "installed")
    with _in(folder / "examples" if page.parent == root / "examples" else folder) as here:
        write_files(text, here)
        return _BLOCK.sub(lambda match: f"```console\n{_rerun(match.group(1), shell)}```", text)


def write_files(text: str, folder: Path) -> None:
    """Write the files that a page shows, the blocks with a title."""
    for name, content in _FILE.findall(text):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")


def masked(text: str) -> str:
    """A text with everything that differs from run to run replaced, for comparison."""
    for pattern, name in _VOLATILE:
        text = pattern.sub(name, text)
    return text


def failed_examples(text: str) -> str:
    """Run the Python that a page shows, in the working folder, and return what does not give what stands below it."""
    examples = "\n".join(_PYTHON.findall(text))
    problems: list[str] = []
    result = doctest.DocTestRunner(verbose=False).run(
        doctest.DocTestParser().get_doctest(examples, {}, "page", None, None), out=problems.append
    )
    if not result.attempted:
        raise Unexpected("the page shows no Python")
    return "".join(problems)


def _rerun(block: str, shell: "Shell") -> str:
    found: list[str] = []
    lines = block.splitlines()
    while lines:
        line = lines.pop(0)
        found.append(line)
        if not line.startswith(_PROMPTS):
            continue
        shown = []
        while lines and not lines[0].startswith(("$ ", "# ")):
            shown.append(lines.pop(0))
        printed = shell.run(line).rstrip("\n").splitlines()
        if any(shown):
            shown = [*printed, *[""] * (not shown[-1])]
        found += shown
    return "".join(f"{line}\n" for line in found)


class Shell:
    """Runs the commands of a page: here, or in processes while something is installed in the folder `packages`."""

    def __init__(self, packages: Path) -> None:
        self._packages = packages
        self._installed = packages.exists()

    def run(self, line: str) -> str:
        """What a command prints, on both streams. Raises `Unexpected` if it does not end as the page says."""
        expected = int(match.group(1)) if (match := _EXIT.search(line)) else 0
        program, *arguments = shlex.split(line.removeprefix("$ "), comments=True)
        given = b""
        if "<" in arguments:
            given = Path(arguments.pop()).read_bytes()
            arguments.remove("<")
        if program == "pip":
            code, output = self._pip(*arguments)
        elif self._installed:
            code, output = self._spawn("-m", "ratings_ledger", *arguments, given=given)
        else:
            code, output = _invoke(arguments, given)
        if code != expected:
            raise Unexpected(f"{line}\nended with {code}:\n{output}")
        return output

    def _pip(self, verb: str, name: str) -> tuple[int, str]:
        self._installed = verb == "install"
        if not self._installed:
            return 0, ""
        return self._spawn(
            "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation",
            "--no-index", "--target", str(self._packages), name,
        )  # fmt: skip

    def _spawn(self, *arguments: str, given: bytes = b"") -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, *arguments],
            input=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": str(self._packages), "PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1"},
            check=False,
        )
        return done.returncode, done.stdout.decode()


def _invoke(arguments: list[str], given: bytes) -> tuple[int, str]:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n", write_through=True)
    with (
        contextlib.redirect_stdout(stream),
        contextlib.redirect_stderr(stream),
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(given), encoding="utf-8")),
    ):
        code = invoke(arguments)
        sys.stdout.flush()
    return code, stream.buffer.getvalue().decode()


@contextlib.contextmanager
def _in(folder: Path) -> Iterator[Path]:
    before, named = os.getcwd(), os.environ.pop("RATINGS_DB", None)
    os.chdir(folder)
    try:
        yield folder
    finally:
        os.chdir(before)
        if named is not None:
            os.environ["RATINGS_DB"] = named
