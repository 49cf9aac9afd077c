"""The pages on a server: each request is a question at coordinates, answered from memory where nothing has changed.

It only reads. Answers are kept by the head of the log and the quarter of an hour at which they were made, so a new
event is on the pages within a second, and the end of a month when it comes; there are at most `KEPT_BYTES` of them.
At most `AT_ONCE` answers are worked out at a time, each for at most `SECONDS`; whoever would have to wait longer is
told to come back. Where the ledger has rules of packages, processes work them out that can be killed; a rule that never
ends, or ends its process, is given up until the next quarter of an hour.
"""

import sys
from asyncio import Future, get_running_loop, shield, timeout
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from logging import getLogger
from socket import AF_INET, AF_INET6, SO_REUSEADDR, SOL_SOCKET, socket
from threading import Lock, get_ident
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import uvicorn

from ratings_ledger import Ledger
from ratings_ledger import open as open_ledger
from ratings_ledger.ledger import clock
from ratings_ledger.ledger.errors import (
    REASONS,
    BadArgument,
    LedgerError,
    NotALedger,
    StoreDamaged,
    StoreUnavailable,
    Unknown,
    WorkerLost,
)
from ratings_ledger.ledger.rejections import Refused, quote
from ratings_ledger.ledger.store.log import Head, chain_hash_at, read_events_of_type, read_where
from ratings_ledger.ledger.store.opening import parse_url
from ratings_ledger.projections.queries.coordinates import UnknownLadder
from ratings_ledger.projections.rulesets.registry import BUILT_IN
from ratings_ledger.web.addresses import RULE_SECONDS, STATUS, Path
from ratings_ledger.web.connections import ACCEPTED_AT_ONCE, LimitedConnection, Server
from ratings_ledger.web.games import GAMES, game_lines
from ratings_ledger.web.openapi import OPENAPI, as_openapi
from ratings_ledger.web.page import CSS, FORMATS, STYLE, Site, refusal
from ratings_ledger.web.routes import REPEATED, members_of, page_at
from ratings_ledger.web.visits import AXES, Visit
from ratings_ledger.web.workers import RulesLost, Worker

KEPT_BYTES = 64 << 20
BESIDE_BYTES = 2_000  # of an answer beside its content
AT_ONCE, SECONDS = 2, 10
FILES_AT_ONCE = 4
LOCK_SECONDS = 3  # for so long an answer waits for a lock on the store, unless its URL says otherwise
HEAD_US = 300_000  # for so many microseconds nobody looks for a new head
QUARTER_US = 15 * 60 * 1_000_000  # in every zone, days and with them lists end on a quarter of an hour
# a thread that reads a row waits so many seconds for one that computes, and an append to SQLite for both
SWITCH_S = 0.0001
SCHEMA_US = 2_000_000  # and for so many, whether a ledger that can be read has another schema now
ADDRESS_MAX = 2_000  # bytes of a path, and of a query
FIELDS_MAX = 30  # members of a query


class Answered(NamedTuple):
    """What a request is told: the status, the type of the content, the content with its name, and other headers.

    What is long has the rest of its content in `parts`.
    """

    status: int
    type: str
    content: bytes
    etag: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    parts: Iterator[bytes] | None = None


class Request(NamedTuple):
    """What is asked for: the path of a page in a format, at coordinates, by name, and what else its page takes."""

    path: Path
    ending: str
    query: tuple[tuple[str, str], ...]

    @property
    def coordinates(self) -> dict[str, str]:
        """Return the coordinates among it."""
        return {name: value for name, value in self.query if name in AXES}

    @property
    def others(self) -> dict[str, list[str]]:
        """Return what is asked for besides."""
        found: dict[str, list[str]] = {}
        for name, value in self.query:
            if name not in AXES:
                found.setdefault(name, []).append(value)
        return found


class Answers:
    """The answers that were given last, by what was asked at which head, in a bounded memory. Threads may share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[Any, Answered] = OrderedDict()
        self._bytes = 0

    def get(self, key: Any) -> Answered | None:
        """Return an answer that was kept."""
        with self._lock:
            if (found := self._kept.get(key)) is not None:
                self._kept.move_to_end(key)
            return found

    def keep(self, key: Any, answered: Answered) -> None:
        """Keep an answer in place of those that nobody asked for lately."""
        with self._lock:
            if key not in self._kept and _size(answered) <= KEPT_BYTES:
                self._kept[key] = answered
                self._bytes += _size(answered)
            while self._bytes > KEPT_BYTES:
                _, old = self._kept.popitem(last=False)
                self._bytes -= _size(old)


def _quarter() -> int:
    """Return the number of the quarter of an hour, which decides what the clock says on a page: whether a list is
    closed.
    """
    return clock.now() // QUARTER_US


def _size(answered: Answered) -> int:
    """Return how much memory an answer takes, roughly, with what it is found by."""
    return len(answered.content) + BESIDE_BYTES


class Pages:
    """The pages of one ledger, as an ASGI application."""

    def __init__(
        self, url: str, site: Site, hosts: Collection[str], frames: str = "'none'", rule_seconds: float = RULE_SECONDS
    ) -> None:
        self.url, self.site, self.hosts = _impatient(url), site, frozenset(host.lower() for host in hosts)
        self.rule_seconds = rule_seconds
        self._policy = (
            "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; "
            f"frame-ancestors {frames}"
        )
        self._answers = Answers()
        self._workers, self._watcher = ThreadPoolExecutor(AT_ONCE), ThreadPoolExecutor(1)
        self._ledger: Ledger | None = None
        self._workers_of: dict[int, Worker] = {}  # by thread
        # a process that is forked while a file of SQLite is open inherits locks and files that are not its own
        self._reading_or_forking = Lock()
        self._needs_workers: tuple[Head | None, bool] = None, False
        self._given_up: tuple[int, dict[str, str]] = 0, {}  # in a quarter of an hour, why, by the rule
        self._looking: Future[tuple[int, Head | str]] | None = None
        self._seen: tuple[int, Head | str] | None = None
        self._opened_at = 0
        self._files = 0

    def close(self) -> None:
        """End the processes that work out answers."""
        while self._workers_of:
            self._workers_of.popitem()[1].end()

    async def __call__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
            self.close()
        elif scope["type"] == "http":
            await self._respond(scope, send)

    async def _respond(self, scope: Mapping[str, Any], send: Any) -> None:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        known = [one.strip().removeprefix("W/") for one in headers.get("if-none-match", "").split(",")]
        found = await self._answer(scope, headers, known)
        told = [
            ("content-security-policy", self._policy), ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"), *found.headers,
        ]  # fmt: skip
        status, content = found.status, found.content
        if found.etag:
            told.append(("etag", found.etag))
            if found.etag in known:
                status, content = 304, b""
        if status != 304:
            told += [("content-type", found.type)]
            told += [("content-length", str(len(content)))] if found.parts is None else []
        if "cache-control" not in dict(told):
            told.append(("cache-control", "no-cache"))
        raw = [(name.encode(), value.encode("ascii")) for name, value in told]
        await send({"type": "http.response.start", "status": status, "headers": raw})
        body = {"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else content}
        if found.parts is None:
            await send(body)
            return
        try:
            await send(body | {"more_body": True})
            if scope["method"] == "HEAD" or await self._send_parts(found.parts, send):
                await send({"type": "http.response.body", "body": b""})
        finally:
            self._files -= 1

    async def _send_parts(self, parts: Iterator[bytes], send: Any) -> bool:
        """Send one part after another, as fast as they are taken; whether all could be read. Without an end that is
        announced, whoever takes them sees that some are missing.
        """
        try:
            while (part := await get_running_loop().run_in_executor(self._workers, next, parts, None)) is not None:
                await send({"type": "http.response.body", "body": part, "more_body": True})
        except LedgerError as problem:
            LOGGER.warning("%s", problem)
            return False
        return True

    async def _answer(self, scope: Mapping[str, Any], headers: Mapping[str, str], known: Collection[str]) -> Answered:
        """Return what a request is told; refusals are pages, too, or JSON where that was asked for."""
        asked = _asked_path(scope["raw_path"])
        try:
            if headers.get("host", "").rpartition(":")[0].lower() not in self.hosts and (
                headers.get("host", "").lower() not in self.hosts
            ):
                raise _No(421, "This server does not answer for that host; start it with --host-name to let it.")
            if scope["method"] not in ("GET", "HEAD"):
                raise _No(405, "Pages are only read: GET and HEAD.", (("allow", "GET, HEAD"),))
            if len(scope["raw_path"]) > ADDRESS_MAX:
                raise _No(414, f"The path of an address has at most {ADDRESS_MAX:,} bytes.")
            if (lasting := self._lasting(scope["path"])) is not None:
                return lasting
            asked = asked._replace(query=_query(scope["query_string"], asked.path))
            async with timeout(SECONDS):
                head = await self._newest()
                if scope["path"] == f"/{GAMES}":
                    return await self._begin_games(head, asked, known)
                if (found := self._answers.get((head, _quarter(), asked))) is None:
                    found = await get_running_loop().run_in_executor(self._workers, self._work_out, head, asked)
                return found
        except _No as no:
            return self._refused(asked, no)
        except TimeoutError:
            return self._refused(asked, _No(503, "That takes too long just now; come back in a while.", RETRY))

    async def _newest(self) -> Head:
        """Return where the log ended a moment ago; requests at the same time look together. Raises `_No`."""
        seen = self._seen
        if seen is None or not 0 <= clock.now() - seen[0] <= HEAD_US:
            loop = get_running_loop()
            if self._looking is None or self._looking.done() or self._looking.get_loop() is not loop:
                self._looking = loop.run_in_executor(self._watcher, self._look)
            seen = await shield(self._looking)
        if isinstance(seen[1], str):
            raise _No(503, seen[1], RETRY)
        return seen[1]

    def _look(self) -> tuple[int, Head | str]:
        """Return where the log ends, or why nobody can tell."""
        found: Head | str
        try:
            try:
                with self._reading_or_forking:
                    found = self._read_head(not 0 <= clock.now() - self._opened_at <= SCHEMA_US)
            except LedgerError as problem:
                if problem.reason == "busy":  # for which it has waited
                    raise
                with self._reading_or_forking:
                    found = self._read_head(True)
        except LedgerError as problem:
            found = _why(problem)
            self._opened_at = 0
            if self._seen is None or self._seen[1] != found:
                LOGGER.warning("%s", problem)
        self._seen = clock.now(), found
        return self._seen

    def _read_head(self, anew: bool) -> Head:
        """Return where the log ends. A ledger that is opened anew is refused if it is none now, or has another schema;
        that of before connects for every question, and keeps what it knows by chain hashes, so it serves for any.
        """
        if anew or self._ledger is None:
            opened = open_ledger(self.url)
            self._ledger, self._opened_at = self._ledger or opened, clock.now()
        return self._ledger.head

    @contextmanager
    def _visiting(self, head: Head, asked: Request) -> Iterator[Visit]:
        """Provide the ledger at a head of its log. Raises `_No`, also if by the end it is another ledger."""
        assert self._ledger is not None
        with _refusing():
            there = {"known_at": str(head.position)} | asked.coordinates if head.position else {}
            visit = Visit(self._ledger, there, asked.others)
            visit.query = asked.coordinates
            try:
                yield visit
            finally:
                with visit.view.ledger.reading() as connection:
                    if chain_hash_at(connection, head.position) != head.chain_hash:
                        raise _No(503, "Another ledger has taken the place of this one just now; ask again.", RETRY)

    def _work_out(self, head: Head, asked: Request) -> Answered:
        """Return an answer at a head of the log. Raises `_No`."""
        if asked.ending not in FORMATS:
            raise _No(404, f"There is no such file; all games are in /{GAMES}.")
        quarter = _quarter()
        made = self._ask_worker(head, asked) if self._has_packages(head) else self._make(head, asked)
        if isinstance(made, Refusal):
            raise _No(made.status, made.reason, made.headers)
        # jobs leave no event, and what is asked of an empty log has no position to be asked at
        if head.position and asked.path != STATUS:
            self._answers.keep((head, quarter, asked), made)
        return made

    def _make(self, head: Head, asked: Request) -> "Answered | Refusal":
        """Work out an answer, or why there is none."""
        try:
            with self._visiting(head, asked) as visit, visit.view.staying():
                page = page_at(visit, asked.path)
            kind, write = FORMATS[asked.ending]
            if asked.ending == ".csv" and page.table is None:
                raise _No(404, "This page is no table, so there is no CSV of it.")
            content = write(page, self.site)
        except _No as no:
            return Refusal(no.status, str(no), no.headers, isinstance(no.__context__, UNREADABLE))
        return Answered(200, f"{kind}; charset=utf-8", content, _etag(content), _robots(asked))

    def _has_packages(self, head: Head) -> bool:
        """Tell whether a ruleset in the log names a rule of a package. Raises `_No`."""
        if self._needs_workers[0] != head:
            assert self._ledger is not None
            with _refusing(), self._reading_or_forking, self._ledger.at().ledger.reading() as connection:
                rows = read_where(connection, until=head.position, type_name=PUBLISHED)
                rules = [event.data["rule"] for event in read_events_of_type(PUBLISHED, rows)]
            self._needs_workers = head, not BUILT_IN.keys() >= {*rules}
        return self._needs_workers[1]

    def _ask_worker(self, head: Head, asked: Request) -> "Answered | Refusal":
        """Have this thread's process work out an answer; rules that cost it its life are given up. Raises `_No`."""
        while True:
            quarter = _quarter()
            if self._given_up[0] != quarter:
                self._given_up = quarter, {}
            given_up = self._given_up[1]
            worker = self._workers_of.get(get_ident())
            if worker is None or worker.given_up != given_up:
                if worker is not None:
                    worker.end()
                with self._reading_or_forking:
                    worker = Worker(partial(_make_in_worker, self), self.rule_seconds, given_up)
                self._workers_of[get_ident()] = worker
            try:
                made: Answered | Refusal = worker.do(head, asked)
                if isinstance(made, Refusal) and made.cannot_read:
                    self._workers_of.pop(get_ident(), worker).end()
                return made
            except RulesLost as lost:
                self._workers_of.pop(get_ident(), None)
                for reason in lost.reasons.values():
                    LOGGER.warning("%s", reason)
                self._given_up = quarter, self._given_up[1] | lost.reasons
            except WorkerLost as lost:
                self._workers_of.pop(get_ident(), None)
                LOGGER.warning("%s", lost)
                raise _No(503, f"The process that worked out this page is gone: {lost}.", RETRY) from None

    async def _begin_games(self, head: Head, asked: Request, known: Collection[str]) -> Answered:
        """Return all games, of which the first are read; the name is that of the place in the log. Raises `_No`."""
        etag, kind = _etag(repr((str(head), asked.query, version("ratings-ledger"))).encode()), "application/jsonl"
        if etag in known:
            return Answered(200, kind, b"", etag)
        if self._files >= FILES_AT_ONCE:
            raise _No(503, "Others are reading all games just now; come back in a while.", RETRY)
        self._files += 1
        try:
            first, parts = await get_running_loop().run_in_executor(self._workers, self._first_games, head, asked)
        except BaseException:
            self._files -= 1
            raise
        return Answered(200, kind, first, etag, _robots(asked), parts)

    def _first_games(self, head: Head, asked: Request) -> tuple[bytes, Iterator[bytes]]:
        with self._reading_or_forking, self._visiting(head, asked) as visit:
            parts = game_lines(visit)
            return next(parts), parts

    def _lasting(self, path: str) -> Answered | None:
        """Return what never changes under its name, and what crawlers are told."""
        if path == f"/{STYLE[0]}.css":
            return Answered(200, "text/css; charset=utf-8", CSS, "", (("cache-control", LASTING),))
        if path == f"/{OPENAPI}":
            return Answered(200, "application/json; charset=utf-8", as_openapi(), _etag(as_openapi()))
        if path == "/robots.txt":
            return Answered(200, "text/plain; charset=utf-8", b"User-agent: *\nDisallow: /*?\n", "")
        return None

    def _refused(self, asked: Request, no: "_No") -> Answered:
        page = refusal(asked.path, no.status, str(no))
        kind, content = FORMATS[".json" if asked.ending in (".json", ".jsonl") else ""]
        return Answered(no.status, f"{kind}; charset=utf-8", content(page, self.site), "", no.headers)


LOGGER = getLogger("uvicorn.error")
RETRY = (("retry-after", "5"),)
LASTING = "public, max-age=31536000, immutable"


PUBLISHED = "ruleset.published"
UNREADABLE = (StoreUnavailable, NotALedger, StoreDamaged)


class Refusal(NamedTuple):
    """Why a request is refused, as a process tells another."""

    status: int
    reason: str
    headers: tuple[tuple[str, str], ...]
    cannot_read: bool


def _make_in_worker(pages: Pages, head: Head, asked: Request) -> Answered | Refusal:
    """Work out an answer in a process of its own, which reads on connections of its own."""
    global _opened
    try:
        _opened = _opened or open_ledger(pages.url)
    except LedgerError as problem:
        return Refusal(503, _why(problem), RETRY, True)
    pages._ledger = _opened
    return pages._make(head, asked)


_opened: Ledger | None = None


class _No(Exception):
    """A request is refused with a status, for a reason."""

    def __init__(self, status: int, reason: str, headers: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(reason)
        self.status, self.headers = status, headers


@contextmanager
def _refusing() -> Iterator[None]:
    """Provide what a question raises, as a refusal."""
    try:
        yield
    except (Unknown, BadArgument, Refused) as problem:
        raise _No(404 if isinstance(problem, Unknown | UnknownLadder) else 400, str(problem)) from None
    except LedgerError as problem:
        raise _No(503, _why(problem), RETRY) from None


def _why(problem: LedgerError) -> str:
    """Return why a ledger cannot be read, for everybody: where it is, which the program's own message says, is not
    told.
    """
    if isinstance(problem, UNREADABLE):
        return f"The ledger cannot be read now: {REASONS[problem.reason][1]}."
    return str(problem)


def _impatient(name: str) -> str:
    """Return the same ledger, whose locks are not waited for longer than people wait for a page."""
    url = parse_url(name)
    if "timeout" in url.query or "?" in (url.database or ""):
        return name
    return url.update_query_dict({"timeout": str(LOCK_SECONDS)}).render_as_string(hide_password=False)


def _robots(asked: Request) -> tuple[tuple[str, str], ...]:
    return (("x-robots-tag", "noindex"),) if asked.query else ()


def _etag(content: bytes) -> str:
    return f'"{sha256(content).hexdigest()[:32]}"'


def _asked_path(raw: bytes) -> Request:
    """Return the page and the format that a path asks for."""
    path, ending = raw.decode("ascii", "replace").removeprefix("/"), ""
    for one in (".json", ".csv", ".jsonl"):
        if path.endswith(one):
            path, ending = path.removesuffix(one), one
    if path == "index" and ending:
        path = ""
    return Request(tuple(path.split("/")) if path else (), ending, ())


def _query(raw: bytes, path: Path) -> tuple[tuple[str, str], ...]:
    """Return what a query asks of a page, in the order of its members. Raises `_No`."""
    if len(raw) > ADDRESS_MAX:
        raise _No(414, f"What stands behind the ? has at most {ADDRESS_MAX:,} bytes.")
    try:
        members = parse_qsl(raw.decode("ascii"), keep_blank_values=True, max_num_fields=FIELDS_MAX, errors="strict")
    except ValueError:
        raise _No(400, "What stands behind the ? is not written as NAME=VALUE&NAME=VALUE.") from None
    found: dict[str, list[str]] = {name: [] for name in members_of(path)}
    for name, value in members:
        if name not in found:
            raise _No(400, f"{quote(name)} is nothing that can be asked for here; there are {', '.join(found)}.")
        if found[name] and name not in REPEATED:
            raise _No(400, f"{name} is asked for twice.")
        if value:
            found[name].append(value)
    return tuple((name, value) for name, values in found.items() for value in values)


async def _live(receive: Any, send: Any) -> None:
    """Begin and end as the server asks."""
    while (await receive())["type"] == "lifespan.startup":
        await send({"type": "lifespan.startup.complete"})
    await send({"type": "lifespan.shutdown.complete"})


def serve_pages(pages: Pages, host: str, port: int, ready: Callable[[int], None]) -> None:
    """Serve pages until a signal ends it. `ready` gets the port once it listens. Raises `StoreUnavailable`."""
    listening = socket(AF_INET6 if ":" in host else AF_INET)
    listening.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen()
    except OSError as problem:
        raise StoreUnavailable(f"{host}:{port}: {problem.strerror}", "unreachable") from None
    ready(listening.getsockname()[1])
    sys.setswitchinterval(SWITCH_S)
    settings = uvicorn.Config(
        pages,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
        http=LimitedConnection,
        backlog=ACCEPTED_AT_ONCE,
    )
    Server(settings).run([listening])
