"""All pages as files in a folder, for any web host.

The folder has a MANIFEST.json: the head of the log, each file with its SHA-256, and for each page what it was made of.
The next time only pages that are made of something else are made, only files that come out differently are written, and
only files that are still as they were written are ever removed. The manifest is written last: what is interrupted is
made again. Many pages are made by several processes, which write them and tell the hashes.
"""

import json
import marshal
import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from hashlib import file_digest, sha256
from importlib.metadata import version
from pathlib import Path as Folder
from shutil import copyfileobj
from typing import Any, NamedTuple, TypeVar

from ratings_ledger import Ledger
from ratings_ledger.ledger.errors import BadArgument, RuleFailed
from ratings_ledger.ledger.own_files import name_file_in_errors, open_own
from ratings_ledger.ledger.processes.forking import UNITS_MAX, available_cores, run_forked
from ratings_ledger.ledger.store.log import chain_hash_at, types_after
from ratings_ledger.web import addresses
from ratings_ledger.web.games import GAMES, game_lines, page_of_story
from ratings_ledger.web.openapi import OPENAPI, as_openapi
from ratings_ledger.web.page import CSS, FORMATS, STYLE, Page, Site, refusal
from ratings_ledger.web.routes import Due, every_page
from ratings_ledger.web.visits import Visit

MANIFEST = "MANIFEST.json"
GAMES_PATH = ("games",)  # below which are the pages of games, and of their clocks
INSTEAD = "name an empty folder, or a new one"
# what one process makes at a time, and what is worth starting several; a page of another kind takes as long as 20 games
PART_PAGES, PART_GAMES = 10, 200
FORKING_GAMES = 1_000

T = TypeVar("T")


class Written(NamedTuple):
    """How many files a site has, and how many of them were written or removed now; and why ladders cannot be replayed,
    whose pages say no more than that."""

    files: int
    written: int
    removed: int
    failed: tuple[str, ...] = ()


class _Before(NamedTuple):
    """What a folder's manifest says: what all pages share, the files with their hashes, and what pages are made of."""

    settings: str
    files: dict[str, str]
    pages: dict[str, str]
    title: str = ""


class _Writing:
    """A site that is being written."""

    def __init__(self, folder: Folder, site: Site, settings: str) -> None:
        self.folder, self.site, self.settings = folder, site, settings
        self.before = _manifest(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self._there = _files_in(str(folder)) if self.before.files else set()
        self.files: dict[str, str] = {}
        self.pages: dict[str, str] = {}
        self.written = 0

    def keeps(self, path: addresses.Path, basis: Any) -> bool:
        """Tell whether a page is there already, made of the same; its files are kept then."""
        name = addresses.file_of(path, "")
        self.pages[name] = made_of = repr(basis)
        if basis is None or self.settings != self.before.settings or self.before.pages.get(name) != made_of:
            return False
        names = [addresses.file_of(path, ending or self.site.ending) for ending in FORMATS]
        kept = {found: self.before.files[found] for found in names if found in self.before.files}
        if not kept or not self._there.issuperset(kept):
            return False
        self.files |= kept
        return True

    def add(self, page: Page) -> None:
        """Write the files of a page."""
        for ending, (_, content) in FORMATS.items():
            if ending != ".csv" or page.table is not None:
                self.write(addresses.file_of(page.path, ending or self.site.ending), content(page, self.site))

    def write(self, name: str, content: bytes) -> None:
        """Write a file unless it is there already."""
        self.files[name] = sha256(content).hexdigest()
        if self.before.files.get(name) != self.files[name] or name not in self._there:
            _write(self.folder, name, content)
            self.written += 1

    def finish(self, head: str) -> None:
        """Write the manifest, with what there is now."""
        told = {
            "head": head, "title": self.site.title, "settings": self.settings,
            "files": dict(sorted(self.files.items())), "pages": dict(sorted(self.pages.items())),
        }  # fmt: skip
        # a line for each, which `indent` would write ten times as slowly
        _write(self.folder, MANIFEST, (json.dumps(told, separators=(",\n", ": ")) + "\n").encode())


def title_of(folder: Folder) -> str:
    """Return the title of the site that is in a folder, or that of one without any. Raises `BadArgument` as
    `write_site`.
    """
    return _manifest(folder).title or Site().title


def write_site(ledger: Ledger, folder: Folder, site: Site, game_pages: int = addresses.GAME_PAGES) -> Written:
    """Bring the files of a site up to date; up to so many games have pages of their own.

    Raises `BadArgument` for a folder that holds something else, `OSError` if it cannot be written.
    """
    head = ledger.head
    visit = Visit(ledger, {"known_at": str(head.position)} if head.position else {})
    with visit.view.staying():  # but not where pages are made: by other processes, perhaps
        site = site._replace(game_pages=visit.view.games_recorded() <= game_pages)
        visit.query = {}  # nobody asked for it: what is recorded meanwhile is for the next time
        shared = version("ratings-ledger"), STYLE, site.title, site.ending, site.game_pages, visit.ladders.times
        settings = repr((*shared, sorted(site.names.items())))
        writing = _Writing(folder, site, sha256(settings.encode()).hexdigest())
        if not writing.before.files:
            writing.finish("")  # the folder is ours from now on, whatever becomes of this
        writing.write(addresses.file_of(STYLE, ".css"), CSS)
        writing.write(OPENAPI, as_openapi())
        _write_games(writing, visit, f"{head} {version('ratings-ledger')}")
        due, games = _due(writing, visit)
    _add_all(writing, visit, due, games)
    gone = [name for name, found in writing.before.files.items()
            if name not in writing.files and _is_ours(folder, name, found)]  # fmt: skip
    for name in gone:
        (folder / name).unlink()
        _drop_empty(folder, (folder / name).parent)
    writing.finish(str(head))
    failed = (*visit.everybody.unusable, *visit.everybody.failed)
    return Written(len(writing.files), writing.written, len(gone), failed)


def _due(writing: _Writing, visit: Visit) -> tuple[list[Due], list[str]]:
    """Return the pages that must be made, and the games whose pages must be."""
    has_games = writing.site.game_pages
    due = [one for one in every_page(visit)
           if (has_games or one.path[:1] != GAMES_PATH) and not writing.keeps(one.path, one.basis)]  # fmt: skip
    lasts: dict[str, int | None] = {**visit.view.last_positions_of_games()} if has_games else {}
    if visit.everybody.failed:  # which any game may tell
        lasts = dict.fromkeys(lasts)
    games = [game_id for game_id, last in lasts.items()
             if not writing.keeps(addresses.game(game_id), last and (last, game_id in visit.clocks))]  # fmt: skip
    return due, games


def _write_games(writing: _Writing, visit: Visit, basis: str) -> None:
    """Write all games, of which only some are held in memory, unless the file is there already, made of the same.

    Where only games were recorded since it was made, their lines are all that is new.
    """
    there, beside = writing.folder / GAMES, writing.folder / f".{GAMES}.new"
    before, writing.pages[GAMES] = writing.before.files.get(GAMES, ""), basis
    made_of = writing.before.pages.get(GAMES, "") if before and there.is_file() else ""
    if made_of == basis:
        writing.files[GAMES] = before
        return
    after = _continued(visit, made_of, basis)
    if after and _hash_of(there) != before:
        after = 0
    with name_file_in_errors(there), _or_nothing(beside), open_own(beside, "wb") as file:
        if after:
            with there.open("rb") as made:
                copyfileobj(made, file)
        for part in game_lines(visit, after):
            file.write(part)
    writing.files[GAMES] = _hash_of(beside)
    if writing.files[GAMES] == before and there.is_file():
        beside.unlink()
        return
    os.replace(beside, there)
    writing.written += 1


def _hash_of(path: Folder) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _continued(visit: Visit, made_of: str, basis: str) -> int:
    """Return the position at which the file of all games was made, if it was made of this log by this program, and
    nothing but games was recorded since; else 0.
    """
    head, _, program = made_of.partition(" ")
    position, _, chain_hash = head.partition(":")
    if not position.isdecimal() or program != basis.partition(" ")[2]:
        return 0
    with visit.view.ledger.reading() as connection:
        found = chain_hash_at(connection, int(position))
        same = found is not None and found.hex() == chain_hash
        return int(position) if same and types_after(connection, int(position)) <= {"game.recorded"} else 0


def _add_all(writing: _Writing, visit: Visit, due: Sequence[Due], games: Sequence[str]) -> None:
    """Make and write pages, and those of games; many of them by several processes."""

    def pages(number: int) -> Iterator[Page]:
        """Yield the pages of a part."""
        with visit.view.staying():
            if number < len(some_due):
                yield from map(_made, some_due[number])
            else:
                stories = visit.view.stories(some_games[number - len(some_due)])
                yield from (page_of_story(visit, story) for story in stories)

    def work(number: int) -> bytes:
        """Return the files of a part, written by a process that has a copy of all this."""
        writing.files, writing.written = {}, 0
        for page in pages(number):
            writing.add(page)
        return marshal.dumps((writing.files, writing.written))

    some_due, some_games = _in_parts(due, PART_PAGES), _in_parts(games, PART_GAMES)
    parts, cores = len(some_due) + len(some_games), available_cores()
    if cores == 1 or len(due) * (PART_GAMES // PART_PAGES) + len(games) < FORKING_GAMES:
        for number in range(parts):
            for page in pages(number):
                writing.add(page)
        return
    with closing(run_forked(work, parts, cores, closes_files=False)) as messages:
        for message in messages:
            files, written = marshal.loads(message)
            writing.files |= files
            writing.written += written


def _made(one: Due) -> Page:
    """Return a page that there is; where a rule fails, it says so, as the server does."""
    try:
        return one.make()
    except RuleFailed as problem:
        return refusal(one.path, 503, str(problem))


def _in_parts(things: Sequence[T], size: int) -> list[Sequence[T]]:
    """Things in their order, in parts of some size, or larger ones if these were too many."""
    size = max(size, -(-2 * len(things) // UNITS_MAX))
    return [things[first : first + size] for first in range(0, len(things), size)]


def _files_in(folder: str, inside: str = "") -> set[str]:
    """Return the names of all files in a folder and below it, without following links to folders."""
    found = set[str]()
    with os.scandir(f"{folder}/{inside}") as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                found |= _files_in(folder, f"{inside}{entry.name}/")
            elif entry.is_file():
                found.add(inside + entry.name)
    return found


def _manifest(folder: Folder) -> _Before:
    """Return what the folder's manifest says. Raises `BadArgument`."""
    if not folder.exists():
        return _Before("", {}, {})
    if not folder.is_dir():
        raise BadArgument(f"{folder} is no folder", "folder")
    path = folder / MANIFEST
    if not path.exists():
        if any(folder.iterdir()):
            raise BadArgument(f"{folder} holds something else and no {MANIFEST}; {INSTEAD}", "folder")
        return _Before("", {}, {})
    try:
        told = json.loads(path.read_bytes())
        files, pages = ({str(name): str(found) for name, found in told[part].items()} for part in ("files", "pages"))
        return _Before(str(told.get("settings")), files, pages, str(told.get("title", "")))
    except (ValueError, LookupError, TypeError, AttributeError):
        raise BadArgument(f"{path} is not a manifest of this program; {INSTEAD}", "folder") from None


def _is_ours(folder: Folder, name: str, found: str) -> bool:
    """Tell whether a file that the manifest names is in the folder, not by way of links, and as it was written."""
    parts = Folder(name).parts
    on_the_way = [folder / Folder(*parts[:depth]) for depth in range(1, len(parts) + 1)]
    if Folder(name).is_absolute() or ".." in parts or any(path.is_symlink() for path in on_the_way):
        return False
    return on_the_way[-1].is_file() and sha256(on_the_way[-1].read_bytes()).hexdigest() == found


def _drop_empty(folder: Folder, path: Folder) -> None:
    while path != folder and not any(path.iterdir()):
        path.rmdir()
        path = path.parent


def _write(root: Folder, name: str, content: bytes) -> None:
    """Write a file: a new one in its place; another beside it, and rename it, so that a reader sees the old or the new.

    Of a new one, nobody knows until the pages that lead to it and the manifest are written.
    """
    with _opened_folder(root, name) as (folder, last):
        with suppress(FileExistsError):
            _write_new(root / name, last, folder, content)
            return
        beside = f".{last[:100]}.new"
        with suppress(FileNotFoundError):
            os.unlink(beside, dir_fd=folder)
        _write_new(root / name, beside, folder, content)
        os.replace(beside, last, src_dir_fd=folder, dst_dir_fd=folder)


def _write_new(path: Folder, name: str, folder: int, content: bytes) -> None:
    try:  # what has the name already stays, and no link is followed
        file = os.fdopen(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=folder), "wb")
    except OSError as error:
        error.filename = str(path)
        raise
    with name_file_in_errors(path), _or_nothing(name, folder), file:
        file.write(content)


@contextmanager
def _opened_folder(root: Folder, name: str) -> Iterator[tuple[int, str]]:
    """Open the folder of a file, created if need be, without following a link below the root; also give the last name.

    Raises `BadArgument` for a link or a file in the way.
    """
    *parts, last = name.split("/")
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for depth, part in enumerate(parts, 1):
            with suppress(FileExistsError):
                os.mkdir(part, dir_fd=folder)
            try:
                inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            except NotADirectoryError:
                way = root.joinpath(*parts[:depth])
                raise BadArgument(
                    f"{way} is a link or a file where pages belong; remove it: rm {way}", "folder"
                ) from None
            os.close(folder)
            folder = inner
        yield folder, last
    finally:
        os.close(folder)


@contextmanager
def _or_nothing(path: str | Folder, folder: int | None = None) -> Iterator[None]:
    """Leaves nothing of a file that cannot be written to its end: half a manifest would be refused for ever."""
    try:
        yield
    except OSError:
        with suppress(OSError):
            os.unlink(path, dir_fd=folder)
        raise
