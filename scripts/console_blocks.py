"""Run the console blocks of a documentation page in a separate folder, and update the output on the page.

    ```console
    $ ratings standings club-catan-elo/all
    club-catan-elo/all: 36 games ...
    ```

A line that begins with `$ ratings` is a command. The lines below it are its complete output; a command without
output lines also runs. `# exit 1` after a command is its exit code, and `< FILE` is its standard input. Everything else
stays unchanged.

A block with a title, such as ```` ```toml title="house-elo-2.toml" ````, is a file that is written first. A folder of
such files can be a package: `$ pip install ./FOLDER` installs it, without a network. The commands below it then run in
processes of their own until `$ pip uninstall`.
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
# texts that differ between runs: hashes, ids, recording times, durations
_VOLATILE = (
    (re.compile(r"\b[0-9a-f]{64}\b"), "HASH"),
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "ID"),
    (re.compile(r"\b20(2[6-9]|[3-9]\d)-\d\d-\d\d[T ]\d\d:?\d\d(:?\d\d(\.\d+)?Z?)?"), "TIME"),
    (re.compile(r"\bin \d+\.\d s\b"), "in SECONDS"),
    (re.compile(r" +"), " "),
)


class UnexpectedOutcome(Exception):
    """A command had another exit code than the page states, or a page lacks examples."""


def refresh_page(page: Path, folder: Path, root: Path) -> str:
    """Return the page's text with the current output of its commands. Raises `UnexpectedOutcome`.

    The commands run in `folder`, which gets a copy of the project's examples and of the files on the page; the commands
    of a page next to the examples run among the examples.
    """
    shutil.copytree(root / "examples", folder / "examples")
    text = page.read_text(encoding="utf-8")
    shell = Shell(folder / "installed")
    with _change_folder(folder / "examples" if page.parent == root / "examples" else folder) as working_folder:
        write_files(text, working_folder)
        return _BLOCK.sub(lambda match: f"```console\n{_run_block(match.group(1), shell)}```", text)


def write_files(text: str, folder: Path) -> None:
    """Write the blocks with a title as files."""
    for name, content in _FILE.findall(text):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")


def mask_volatile(text: str) -> str:
    """Replace all texts that differ between runs, for comparison."""
    for pattern, name in _VOLATILE:
        text = pattern.sub(name, text)
    return text


def run_examples(text: str) -> str:
    """Run the Python examples of a page in the working folder, and return the failures as text.

    Raises `UnexpectedOutcome` for a page without examples.
    """
    examples = "\n".join(_PYTHON.findall(text))
    problems: list[str] = []
    result = doctest.DocTestRunner(verbose=False).run(
        doctest.DocTestParser().get_doctest(examples, {}, "page", None, None), out=problems.append
    )
    if not result.attempted:
        raise UnexpectedOutcome("the page shows no Python")
    return "".join(problems)


def _run_block(block: str, shell: "Shell") -> str:
    updated: list[str] = []
    lines = block.splitlines()
    while lines:
        line = lines.pop(0)
        updated.append(line)
        if not line.startswith(_PROMPTS):
            continue
        output_lines = []
        while lines and not lines[0].startswith(("$ ", "# ")):
            output_lines.append(lines.pop(0))
        new_output = shell.run(line).rstrip("\n").splitlines()
        if any(output_lines):
            output_lines = [*new_output, *[""] * (not output_lines[-1])]
        updated += output_lines
    return "".join(f"{line}\n" for line in updated)


class Shell:
    """A runner of commands: in this process or, while a package is installed in `packages`, in new processes."""

    def __init__(self, packages: Path) -> None:
        self._packages = packages
        self._installed = packages.exists()

    def run(self, line: str) -> str:
        """Run a command and return its output on both streams. Raises `UnexpectedOutcome` for another exit code."""
        expected = int(match.group(1)) if (match := _EXIT.search(line)) else 0
        program, *arguments = shlex.split(line.removeprefix("$ "), comments=True)
        stdin_bytes = b""
        if "<" in arguments:
            stdin_bytes = Path(arguments.pop()).read_bytes()
            arguments.remove("<")
        if program == "pip":
            code, output = self._run_pip(*arguments)
        elif self._installed:
            code, output = self._spawn("-m", "ratings_ledger", *arguments, stdin_bytes=stdin_bytes)
        else:
            code, output = _invoke(arguments, stdin_bytes)
        if code != expected:
            raise UnexpectedOutcome(f"{line}\nended with {code}:\n{output}")
        return output

    def _run_pip(self, verb: str, name: str) -> tuple[int, str]:
        self._installed = verb == "install"
        if not self._installed:
            return 0, ""
        return self._spawn(
            *("-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
            *("--no-deps", "--no-build-isolation", "--no-index"),
            *("--target", str(self._packages), name),
        )

    def _spawn(self, *arguments: str, stdin_bytes: bytes = b"") -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, *arguments],
            input=stdin_bytes,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": str(self._packages), "PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1"},
            check=False,
        )
        return done.returncode, done.stdout.decode()


def _invoke(arguments: list[str], stdin_bytes: bytes) -> tuple[int, str]:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n", write_through=True)
    with (
        contextlib.redirect_stdout(stream),
        contextlib.redirect_stderr(stream),
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin_bytes), encoding="utf-8")),
    ):
        code = invoke(arguments)
        sys.stdout.flush()
    return code, stream.buffer.getvalue().decode()


@contextlib.contextmanager
def _change_folder(folder: Path) -> Iterator[Path]:
    folder_before, ledger_url = os.getcwd(), os.environ.pop("RATINGS_DB", None)
    os.chdir(folder)
    try:
        yield folder
    finally:
        os.chdir(folder_before)
        if ledger_url is not None:
            os.environ["RATINGS_DB"] = ledger_url
