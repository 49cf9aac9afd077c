"""Write all pages as files to a folder, for any web host.

The folder has a MANIFEST.json: the head of the log, each file with its SHA-256, and the basis of each page, which is
the data that determines its content. The next run builds only pages whose basis has changed or is not known, writes
only files whose content has changed, and removes only files that have not been edited. The manifest is written last, so
an interrupted run is repeated. Several processes share the work of a large site; each writes its files and returns
their hashes.
"""

import json
import marshal
import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from hashlib import file_digest, sha256
from importlib.metadata import version
from pathlib import Path
from shutil import copyfileobj
from typing import Any, NamedTuple, TypeVar

from ratings_ledger import Ledger
from ratings_ledger.ledger.errors import BadArgument, RuleFailed
from ratings_ledger.ledger.own_files import name_file_in_errors, open_own
from ratings_ledger.ledger.processes.forking import UNITS_MAX, available_cores, run_forked
from ratings_ledger.ledger.store.log import read_chain_hash, read_types_after
from ratings_ledger.web import addresses
from ratings_ledger.web.games import GAMES_FILE, build_timeline_page, iterate_game_lines
from ratings_ledger.web.openapi import OPENAPI, render_openapi
from ratings_ledger.web.page import CSS, FORMATS, STYLE, Page, Site, build_error_page
from ratings_ledger.web.routes import PageTask, iterate_pages
from ratings_ledger.web.visits import Visit

MANIFEST = "MANIFEST.json"
GAMES_PATH = ("games",)  # prefix of the pages of games and their clocks
CHOOSE_FOLDER = "choose an empty or new folder"
# the size of a unit of work: in pages other than those of games, and in game pages, which take a twentieth of the time
UNIT_PAGES, UNIT_GAMES = 10, 200
FORKING_GAMES = 1_000  # with this much work, measured in game pages, several processes are faster

T = TypeVar("T")


class SiteSummary(NamedTuple):
    """The number of files in a site, the numbers of files written and removed, and the reasons why ladders failed."""

    files: int
    written: int
    removed: int
    failed: tuple[str, ...] = ()


class _Manifest(NamedTuple):
    """A folder's manifest: a hash of the shared settings, the hash of each file, the basis of each page, the title."""

    settings: str
    files: dict[str, str]
    pages: dict[str, str]
    title: str = ""


class _SiteWriter:
    """A writer of the files of a site, which collects the site's manifest."""

    def __init__(self, folder: Path, site: Site, settings: str) -> None:
        self.folder, self.site, self.settings = folder, site, settings
        self.previous = _read_manifest(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self._existing = _list_files(str(folder)) if self.previous.files else set()
        self.files: dict[str, str] = {}
        self.pages: dict[str, str] = {}
        self.written = 0

    def keep_unchanged(self, path: addresses.PagePath, basis: Any) -> bool:
        """Keep the files of a page if they exist with the same basis; return whether they do."""
        name = addresses.name_file(path, "")
        self.pages[name] = basis_text = repr(basis)
        previous = self.previous
        if basis is None or self.settings != previous.settings or previous.pages.get(name) != basis_text:
            return False
        names = [addresses.name_file(path, extension or self.site.extension) for extension in FORMATS]
        files = {name: previous.files[name] for name in names if name in previous.files}
        if not files or not self._existing.issuperset(files):
            return False
        self.files |= files
        return True

    def add(self, page: Page) -> None:
        """Write the files of a page."""
        for extension, (_, render) in FORMATS.items():
            if extension != ".csv" or page.table is not None:
                self.write(addresses.name_file(page.path, extension or self.site.extension), render(page, self.site))

    def write(self, name: str, content: bytes) -> None:
        """Write a file unless it exists with this content."""
        self.files[name] = sha256(content).hexdigest()
        if self.previous.files.get(name) != self.files[name] or name not in self._existing:
            _write_file(self.folder, name, content)
            self.written += 1

    def finish(self, head: str) -> None:
        """Write the manifest of all files written or kept."""
        manifest = {
            "head": head,
            "title": self.site.title,
            "settings": self.settings,
            "files": dict(sorted(self.files.items())),
            "pages": dict(sorted(self.pages.items())),
        }
        # separators give one line per entry; `indent` would take ten times as long
        _write_file(self.folder, MANIFEST, (json.dumps(manifest, separators=(",\n", ": ")) + "\n").encode())


def read_title(folder: Path) -> str:
    """Return the title of the site in a folder, or the default title. Raises `BadArgument` for other content."""
    return _read_manifest(folder).title or Site().title


def write_site(ledger: Ledger, folder: Path, site: Site, game_pages_max: int = addresses.GAME_PAGES_MAX) -> SiteSummary:
    """Bring the files of a site up to date. If there are at most `game_pages_max` games, each has a page.

    Raises `BadArgument` for a folder with other content, `OSError` if it cannot be written.
    """
    head = ledger.head
    visit = Visit(ledger, {"known_at": str(head.position)} if head.position else {})
    with visit.view.hold_connection():  # closed before the pages are built, because other processes may build them
        site = site._replace(game_pages=visit.view.count_recorded_games() <= game_pages_max)
        visit.query = {}  # links must not carry the position, because it was not requested
        shared_settings = (
            version("ratings-ledger"),
            STYLE,
            site.title,
            site.extension,
            site.game_pages,
            visit.ladders.times,
        )
        settings = repr((*shared_settings, sorted(site.names.items())))
        writer = _SiteWriter(folder, site, sha256(settings.encode()).hexdigest())
        if not writer.previous.files:
            writer.finish("")  # claims the folder, even if this run fails
        writer.write(addresses.name_file(STYLE, ".css"), CSS)
        writer.write(OPENAPI, render_openapi())
        _write_games(writer, visit, f"{head} {version('ratings-ledger')}")
        tasks, games = _list_outdated_pages(writer, visit)
    _build_all(writer, visit, tasks, games)
    obsolete = [
        name
        for name, file_hash in writer.previous.files.items()
        if name not in writer.files and _is_unedited(folder, name, file_hash)
    ]
    for name in obsolete:
        (folder / name).unlink()
        _remove_empty_folders(folder, (folder / name).parent)
    writer.finish(str(head))
    failed = (*visit.all_players.unusable, *visit.all_players.failed)
    return SiteSummary(len(writer.files), writer.written, len(obsolete), failed)


def _list_outdated_pages(writer: _SiteWriter, visit: Visit) -> tuple[list[PageTask], list[str]]:
    """Return the pages to build, and the games for which to build a page."""
    has_games = writer.site.game_pages
    tasks = [
        task
        for task in iterate_pages(visit)
        if (has_games or task.path[:1] != GAMES_PATH) and not writer.keep_unchanged(task.path, task.basis)
    ]
    positions: dict[str, int | None] = {**visit.view.last_positions_of_games()} if has_games else {}
    if visit.all_players.failed:  # any game's page may report the failure
        positions = dict.fromkeys(positions)
    games = [
        game_id
        for game_id, position in positions.items()
        if not writer.keep_unchanged(
            addresses.game(game_id), position and (position, game_id in visit.games_with_clock)
        )
    ]
    return tasks, games


def _write_games(writer: _SiteWriter, visit: Visit, basis: str) -> None:
    """Write the file of all games, in chunks, unless it exists with the same basis.

    If only games were recorded since that basis, append their lines to a copy of the file.
    """
    path, temporary = writer.folder / GAMES_FILE, writer.folder / f".{GAMES_FILE}.new"
    previous_hash, writer.pages[GAMES_FILE] = writer.previous.files.get(GAMES_FILE, ""), basis
    previous_basis = writer.previous.pages.get(GAMES_FILE, "") if previous_hash and path.is_file() else ""
    if previous_basis == basis:
        writer.files[GAMES_FILE] = previous_hash
        return
    after = _find_continuation_position(visit, previous_basis, basis)
    if after and _hash_file(path) != previous_hash:
        after = 0
    with name_file_in_errors(path), _remove_on_error(temporary), open_own(temporary, "wb") as file:
        if after:
            with path.open("rb") as previous_file:
                copyfileobj(previous_file, file)
        for chunk in iterate_game_lines(visit, after):
            file.write(chunk)
    writer.files[GAMES_FILE] = _hash_file(temporary)
    if writer.files[GAMES_FILE] == previous_hash and path.is_file():
        temporary.unlink()
        return
    os.replace(temporary, path)
    writer.written += 1


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _find_continuation_position(visit: Visit, previous_basis: str, basis: str) -> int:
    """Return the position after which the file of all games can be continued; 0 to write it from the start.

    The file must come from this log and this program, and only games may have been recorded since.
    """
    head, _, program = previous_basis.partition(" ")
    position, _, chain_hash = head.partition(":")
    if not position.isdecimal() or program != basis.partition(" ")[2]:
        return 0
    with visit.view.ledger.reading() as connection:
        current_hash = read_chain_hash(connection, int(position))
        is_same_log = current_hash is not None and current_hash.hex() == chain_hash
        return int(position) if is_same_log and read_types_after(connection, int(position)) <= {"game.recorded"} else 0


def _build_all(writer: _SiteWriter, visit: Visit, tasks: Sequence[PageTask], games: Sequence[str]) -> None:
    """Build and write pages and game pages, in several processes if there are many pages."""

    def build_unit(number: int) -> Iterator[Page]:
        """Yield the pages of a unit of work."""
        with visit.view.hold_connection():
            if number < len(task_units):
                yield from map(_build_page, task_units[number])
            else:
                timelines = visit.view.timelines(game_units[number - len(task_units)])
                yield from (build_timeline_page(visit, timeline) for timeline in timelines)

    def write_unit(number: int) -> bytes:
        """Write a unit in a forked process, which has a copy of `writer`; return its files."""
        writer.files, writer.written = {}, 0
        for page in build_unit(number):
            writer.add(page)
        return marshal.dumps((writer.files, writer.written))

    task_units, game_units = _split(tasks, UNIT_PAGES), _split(games, UNIT_GAMES)
    units, cores = len(task_units) + len(game_units), available_cores()
    if cores == 1 or len(tasks) * (UNIT_GAMES // UNIT_PAGES) + len(games) < FORKING_GAMES:
        for number in range(units):
            for page in build_unit(number):
                writer.add(page)
        return
    with closing(run_forked(write_unit, units, cores, closes_files=False)) as messages:
        for message in messages:
            files, written = marshal.loads(message)
            writer.files |= files
            writer.written += written


def _build_page(task: PageTask) -> Page:
    """Return a page, or its error page if a rule fails, like the server."""
    try:
        return task.make()
    except RuleFailed as error:
        return build_error_page(task.path, 503, str(error))


def _split(items: Sequence[T], size: int) -> list[Sequence[T]]:
    """Split items into units of this size, or of a larger size if there would be too many units."""
    size = max(size, -(-2 * len(items) // UNITS_MAX))
    return [items[first : first + size] for first in range(0, len(items), size)]


def _list_files(folder: str, prefix: str = "") -> set[str]:
    """Return the names of all files in and below a folder, without following links to folders."""
    names = set[str]()
    with os.scandir(f"{folder}/{prefix}") as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                names |= _list_files(folder, f"{prefix}{entry.name}/")
            elif entry.is_file():
                names.add(prefix + entry.name)
    return names


def _read_manifest(folder: Path) -> _Manifest:
    """Return a folder's manifest, empty for a new folder. Raises `BadArgument`."""
    if not folder.exists():
        return _Manifest("", {}, {})
    if not folder.is_dir():
        raise BadArgument(f"{folder} is not a folder; {CHOOSE_FOLDER}", "folder")
    path = folder / MANIFEST
    if not path.exists():
        if any(folder.iterdir()):
            raise BadArgument(f"{folder} has content but no {MANIFEST}; {CHOOSE_FOLDER}", "folder")
        return _Manifest("", {}, {})
    try:
        manifest = json.loads(path.read_bytes())
        files, pages = (
            {str(name): str(value) for name, value in manifest[part].items()} for part in ("files", "pages")
        )
        return _Manifest(str(manifest.get("settings")), files, pages, str(manifest.get("title", "")))
    except (ValueError, LookupError, TypeError, AttributeError):
        raise BadArgument(f"{path} is not a manifest of this program; {CHOOSE_FOLDER}", "folder") from None


def _is_unedited(folder: Path, name: str, file_hash: str) -> bool:
    """Tell whether a file in the manifest exists, is not behind a link, and still has its hash."""
    parts = Path(name).parts
    ancestors = [folder / Path(*parts[:depth]) for depth in range(1, len(parts) + 1)]
    if Path(name).is_absolute() or ".." in parts or any(path.is_symlink() for path in ancestors):
        return False
    return ancestors[-1].is_file() and sha256(ancestors[-1].read_bytes()).hexdigest() == file_hash


def _remove_empty_folders(folder: Path, path: Path) -> None:
    while path != folder and not any(path.iterdir()):
        path.rmdir()
        path = path.parent


def _write_file(root: Path, name: str, content: bytes) -> None:
    """Write a file so that a reader sees either the old or the new content.

    A new file is written in place, because no page links to it yet. To replace an existing file, a temporary file is
    written and renamed.
    """
    with _open_folder(root, name) as (descriptor, base_name):
        with suppress(FileExistsError):
            _write_new(root / name, base_name, descriptor, content)
            return
        temporary = f".{base_name[:100]}.new"
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=descriptor)
        _write_new(root / name, temporary, descriptor, content)
        os.replace(temporary, base_name, src_dir_fd=descriptor, dst_dir_fd=descriptor)


def _write_new(path: Path, name: str, descriptor: int, content: bytes) -> None:
    """Write a new file of this name into the folder with this descriptor. Raises `OSError`, which names the path."""
    try:  # O_EXCL keeps an existing file and follows no link
        file = os.fdopen(
            os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=descriptor), "wb"
        )
    except OSError as error:
        error.filename = str(path)
        raise
    with name_file_in_errors(path), _remove_on_error(name, descriptor), file:
        file.write(content)


@contextmanager
def _open_folder(root: Path, name: str) -> Iterator[tuple[int, str]]:
    """Open the folder of a file, creating it if necessary, without following links below the root.

    Yields its descriptor and the file's base name.

    Raises `BadArgument` for a link or a file in the way.
    """
    *parts, base_name = name.split("/")
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for depth, part in enumerate(parts, 1):
            with suppress(FileExistsError):
                os.mkdir(part, dir_fd=descriptor)
            try:
                inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor)
            except NotADirectoryError:
                obstacle = root.joinpath(*parts[:depth])
                remedy = f"remove it: rm {shlex.quote(str(obstacle))}"
                raise BadArgument(f"{obstacle} is a link or a file where pages belong; {remedy}", "folder") from None
            os.close(descriptor)
            descriptor = inner
        yield descriptor, base_name
    finally:
        os.close(descriptor)


@contextmanager
def _remove_on_error(path: str | Path, descriptor: int | None = None) -> Iterator[None]:
    """Remove a file that cannot be written completely, because every later run would refuse half a manifest.

    With a descriptor, the path is relative to its folder.
    """
    try:
        yield
    except OSError:
        with suppress(OSError):
            os.unlink(path, dir_fd=descriptor)
        raise
