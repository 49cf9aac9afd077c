"""Serve the pages over HTTP, read-only, with a cache of answers.

Answers are cached by the head of the log and the current quarter of an hour, so a new event is on the pages within a
second, and lists close on time. The cache holds at most `CACHE_BYTES`. At most `ANSWERS_AT_ONCE` answers are computed
at the same time. A client that has waited for `ANSWER_SECONDS_MAX` is asked to retry; a computation that has begun goes
on. If the ledger uses third-party rules, separate processes compute the answers, because they can be killed. A rule
that never ends, or that ends its process, is disabled until the next quarter of an hour.
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
from ratings_ledger.ledger.store.log import Head, read_chain_hash, read_events_of_type, read_matching_records
from ratings_ledger.ledger.store.opening import parse_url
from ratings_ledger.projections.queries.coordinates import UnknownLadder
from ratings_ledger.projections.rulesets.registry import BUILT_IN
from ratings_ledger.web.addresses import STATUS, PagePath
from ratings_ledger.web.connections import ACCEPTED_AT_ONCE, LimitedConnection, Server
from ratings_ledger.web.games import GAMES_FILE, iterate_game_lines
from ratings_ledger.web.openapi import OPENAPI, render_openapi
from ratings_ledger.web.page import CSS, FORMATS, STYLE, Site, build_error_page
from ratings_ledger.web.routes import REPEATED, build_page_at, list_parameters
from ratings_ledger.web.visits import AXES, Visit
from ratings_ledger.web.workers import PAGE_RULE_SECONDS, RulesLost, Worker

CACHE_BYTES = 64 << 20
OVERHEAD_BYTES = 2_000  # memory of a cached answer besides its content
ANSWERS_AT_ONCE, ANSWER_SECONDS_MAX = 2, 10
DOWNLOADS_MAX = 4  # concurrent downloads of all games
LOCK_SECONDS = 3  # wait for a lock on the store, unless its URL sets a timeout
HEAD_AGE_MAX_US = 300_000  # microseconds for which a head that was read is used
SCHEMA_AGE_MAX_US = 2_000_000  # microseconds after which the schema is checked again
QUARTER_US = 15 * 60 * 1_000_000  # in every time zone, days and lists end on a quarter of an hour
# shorter than Python's default: threads that read rows, and appends to SQLite, wait for a thread that computes
SWITCH_SECONDS = 0.0001
ADDRESS_MAX = 2_000  # bytes of a path, and of a query
PARAMETERS_MAX = 30  # parameters of a query


class Response(NamedTuple):
    """A response: status, content type, content, ETag and other headers.

    A long response has the rest of its content in `chunks`.
    """

    status: int
    type: str
    content: bytes
    etag: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    chunks: Iterator[bytes] | None = None


class Request(NamedTuple):
    """A request: the path of a page, the extension of its format, and all query parameters."""

    path: PagePath
    extension: str
    query: tuple[tuple[str, str], ...]

    @property
    def coordinates(self) -> dict[str, str]:
        """Return the query parameters that are coordinates."""
        return {name: value for name, value in self.query if name in AXES}

    @property
    def page_parameters(self) -> dict[str, list[str]]:
        """Return the query parameters of the page itself, besides coordinates."""
        parameters: dict[str, list[str]] = {}
        for name, value in self.query:
            if name not in AXES:
                parameters.setdefault(name, []).append(value)
        return parameters


class ResponseCache:
    """A thread-safe cache of responses, bounded in memory, that evicts the least recently used responses."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._responses: OrderedDict[Any, Response] = OrderedDict()
        self._bytes = 0

    def get(self, key: Any) -> Response | None:
        """Return a cached response, or None."""
        with self._lock:
            if (response := self._responses.get(key)) is not None:
                self._responses.move_to_end(key)
            return response

    def add(self, key: Any, response: Response) -> None:
        """Cache a response, and evict the least recently used responses."""
        with self._lock:
            if key not in self._responses and _estimate_memory(response) <= CACHE_BYTES:
                self._responses[key] = response
                self._bytes += _estimate_memory(response)
            while self._bytes > CACHE_BYTES:
                _, oldest = self._responses.popitem(last=False)
                self._bytes -= _estimate_memory(oldest)


def _get_current_quarter() -> int:
    """Return the number of the current quarter of an hour, at whose end lists may close."""
    return clock.now() // QUARTER_US


def _estimate_memory(response: Response) -> int:
    """Estimate the memory of a response and its key."""
    return len(response.content) + OVERHEAD_BYTES


class Pages:
    """The pages of one ledger, as an ASGI application."""

    def __init__(
        self,
        url: str,
        site: Site,
        hosts: Collection[str],
        frames: str = "'none'",
        rule_seconds: float = PAGE_RULE_SECONDS,
    ) -> None:
        self.url, self.site, self.hosts = _limit_lock_wait(url), site, frozenset(host.lower() for host in hosts)
        self.rule_seconds = rule_seconds
        self._security_policy = (
            "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; "
            f"frame-ancestors {frames}"
        )
        self._cache = ResponseCache()
        self._threads, self._head_thread = ThreadPoolExecutor(ANSWERS_AT_ONCE), ThreadPoolExecutor(1)
        self._ledger: Ledger | None = None
        self._workers: dict[int, Worker] = {}  # by thread
        # a process forked while a SQLite file is open would inherit its locks
        self._reading_or_forking = Lock()
        # whether the rulesets at a head of the log need worker processes
        self._needs_workers: tuple[Head | None, bool] = None, False
        # a quarter of an hour, and the rules that are disabled until its end, each with the reason
        self._disabled: tuple[int, dict[str, str]] = 0, {}
        self._reading_head: Future[tuple[int, Head | str]] | None = None
        # the time of the last reading, with the head or the error message
        self._last_head: tuple[int, Head | str] | None = None
        self._opened_at = 0
        self._downloads = 0

    def close(self) -> None:
        """End the worker processes."""
        while self._workers:
            self._workers.popitem()[1].end()

    async def __call__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await _handle_lifespan(receive, send)
            self.close()
        elif scope["type"] == "http":
            await self._respond(scope, send)

    async def _respond(self, scope: Mapping[str, Any], send: Any) -> None:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        known_etags = [etag.strip().removeprefix("W/") for etag in headers.get("if-none-match", "").split(",")]
        response = await self._answer(scope, headers, known_etags)
        status, content = response.status, response.content
        response_headers = [
            ("content-security-policy", self._security_policy),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            *response.headers,
        ]
        if response.etag:
            response_headers.append(("etag", response.etag))
            if response.etag in known_etags:
                status, content = 304, b""
        if status != 304:
            response_headers.append(("content-type", response.type))
            if response.chunks is None:
                response_headers.append(("content-length", str(len(content))))
        if "cache-control" not in dict(response_headers):
            response_headers.append(("cache-control", "no-cache"))
        raw_headers = [(name.encode(), value.encode("ascii")) for name, value in response_headers]
        await send({"type": "http.response.start", "status": status, "headers": raw_headers})
        body = {"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else content}
        if response.chunks is None:
            await send(body)
            return
        try:
            await send(body | {"more_body": True})
            if scope["method"] == "HEAD" or await self._send_chunks(response.chunks, send):
                await send({"type": "http.response.body", "body": b""})
        finally:
            self._downloads -= 1

    async def _send_chunks(self, chunks: Iterator[bytes], send: Any) -> bool:
        """Send chunks as fast as the client reads them; return False if the ledger could not be read to the end.

        After a failure the end of the body is not sent, so the client sees that the download is incomplete.
        """
        try:
            while (chunk := await get_running_loop().run_in_executor(self._threads, next, chunks, None)) is not None:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        except LedgerError as error:
            LOGGER.warning("%s", error)
            return False
        return True

    async def _answer(
        self, scope: Mapping[str, Any], headers: Mapping[str, str], known_etags: Collection[str]
    ) -> Response:
        """Return the response to a request. An error is also a page, or JSON if the request is for JSON."""
        request = _parse_path(scope["raw_path"])
        try:
            host = headers.get("host", "").lower()
            if host not in self.hosts and host.rpartition(":")[0] not in self.hosts:
                raise _HttpError(421, "This server does not answer for this host; restart it with `--host-name HOST`.")
            if scope["method"] not in ("GET", "HEAD"):
                raise _HttpError(405, "Pages are read-only: use GET or HEAD.", (("allow", "GET, HEAD"),))
            if len(scope["raw_path"]) > ADDRESS_MAX:
                raise _HttpError(414, f"The path of an address can have at most {ADDRESS_MAX:,} bytes.")
            if (static := self._build_static_response(scope["path"])) is not None:
                return static
            request = request._replace(query=_parse_query(scope["query_string"], request.path))
            async with timeout(ANSWER_SECONDS_MAX):
                head = await self._get_current_head()
                if scope["path"] == f"/{GAMES_FILE}":
                    return await self._start_download(head, request, known_etags)
                if (response := self._cache.get((head, _get_current_quarter(), request))) is None:
                    response = await get_running_loop().run_in_executor(self._threads, self._compute, head, request)
                return response
        except _HttpError as error:
            return self._build_error_response(request, error)
        except TimeoutError:
            message = "The answer takes too long right now; try again in a minute."
            return self._build_error_response(request, _HttpError(503, message, RETRY))

    async def _get_current_head(self) -> Head:
        """Return the head of the log, at most `HEAD_AGE_MAX_US` old; concurrent requests share one reading.

        Raises `_HttpError`.
        """
        latest = self._last_head
        if latest is None or not 0 <= clock.now() - latest[0] <= HEAD_AGE_MAX_US:
            loop = get_running_loop()
            reading = self._reading_head
            if reading is None or reading.done() or reading.get_loop() is not loop:
                reading = self._reading_head = loop.run_in_executor(self._head_thread, self._refresh_head)
            latest = await shield(reading)
        if isinstance(latest[1], str):
            raise _HttpError(503, latest[1], RETRY)
        return latest[1]

    def _refresh_head(self) -> tuple[int, Head | str]:
        """Read the head of the log, or the reason why it cannot be read."""
        head: Head | str
        try:
            try:
                with self._reading_or_forking:
                    head = self._read_head(reopen=not 0 <= clock.now() - self._opened_at <= SCHEMA_AGE_MAX_US)
            except LedgerError as error:
                if error.reason == "busy":  # the reading has already waited for the lock
                    raise
                with self._reading_or_forking:
                    head = self._read_head(reopen=True)
        except LedgerError as error:
            head = _describe_for_visitors(error)
            self._opened_at = 0
            if self._last_head is None or self._last_head[1] != head:
                LOGGER.warning("%s", error)
        self._last_head = clock.now(), head
        return self._last_head

    def _read_head(self, *, reopen: bool) -> Head:
        """Return the head of the log; with `reopen`, refuse a ledger that was removed or has another schema.

        The first ledger object stays in use. It connects to a server for every query, connects to a file again when
        the file was replaced, and caches by chain hash, so it is valid for any ledger at this URL.
        """
        if reopen or self._ledger is None:
            opened = open_ledger(self.url)
            self._ledger, self._opened_at = self._ledger or opened, clock.now()
        return self._ledger.head

    @contextmanager
    def _visit(self, head: Head, request: Request) -> Iterator[Visit]:
        """Provide the ledger at a head of its log. Raises `_HttpError`, also if another ledger has replaced it."""
        assert self._ledger is not None
        with _convert_errors():
            coordinates = {"known_at": str(head.position)} | request.coordinates if head.position else {}
            visit = Visit(self._ledger, coordinates, request.page_parameters)
            visit.query = request.coordinates
            try:
                yield visit
            finally:
                with visit.view.ledger.reading() as connection:
                    if read_chain_hash(connection, head.position) != head.chain_hash:
                        message = "This ledger was replaced by a different ledger a moment ago; try again."
                        raise _HttpError(503, message, RETRY)

    def _compute(self, head: Head, request: Request) -> Response:
        """Compute a response at a head of the log and cache it. Raises `_HttpError`."""
        if request.extension not in FORMATS:
            raise _HttpError(404, f"There is no such file; the games are in /{GAMES_FILE}.")
        quarter = _get_current_quarter()
        if self._uses_packages(head):
            response = self._compute_in_worker(head, request)
        else:
            response = self._build_response(head, request)
        if isinstance(response, ErrorReport):
            raise _HttpError(response.status, response.reason, response.headers)
        # the status changes without an event, and an empty log has no position as a key
        if head.position and request.path != STATUS:
            self._cache.add((head, quarter, request), response)
        return response

    def _build_response(self, head: Head, request: Request) -> "Response | ErrorReport":
        """Build a page and render it, or return the error."""
        try:
            with self._visit(head, request) as visit, visit.view.hold_connection():
                page = build_page_at(visit, request.path)
            content_type, render = FORMATS[request.extension]
            if request.extension == ".csv" and page.table is None:
                raise _HttpError(404, "This page has no table, so there is no CSV; request .json instead.")
            content = render(page, self.site)
        except _HttpError as error:
            return ErrorReport(
                error.status, str(error), error.headers, cannot_read=isinstance(error.__context__, UNREADABLE)
            )
        return Response(
            status=200,
            type=f"{content_type}; charset=utf-8",
            content=content,
            etag=_compute_etag(content),
            headers=_build_robots_header(request),
        )

    def _uses_packages(self, head: Head) -> bool:
        """Tell whether a ruleset in the log uses a third-party rule. Raises `_HttpError`."""
        if self._needs_workers[0] != head:
            assert self._ledger is not None
            with _convert_errors(), self._reading_or_forking, self._ledger.at().ledger.reading() as connection:
                rows = read_matching_records(connection, until=head.position, type_name=RULESET_PUBLISHED)
                rules = [event.data["rule"] for event in read_events_of_type(RULESET_PUBLISHED, rows)]
            self._needs_workers = head, not BUILT_IN.keys() >= {*rules}
        return self._needs_workers[1]

    def _compute_in_worker(self, head: Head, request: Request) -> "Response | ErrorReport":
        """Compute a response in this thread's worker process; disable rules that kill it. Raises `_HttpError`."""
        while True:
            quarter = _get_current_quarter()
            if self._disabled[0] != quarter:
                self._disabled = quarter, {}
            disabled = self._disabled[1]
            worker = self._workers.get(get_ident())
            if worker is None or worker.disabled != disabled:
                if worker is not None:
                    worker.end()
                with self._reading_or_forking:
                    worker = Worker(partial(_build_in_worker, self), self.rule_seconds, disabled)
                self._workers[get_ident()] = worker
            try:
                response: Response | ErrorReport = worker.call(head, request)
                if isinstance(response, ErrorReport) and response.cannot_read:
                    self._workers.pop(get_ident(), worker).end()
                return response
            except RulesLost as error:
                self._workers.pop(get_ident(), None)
                for reason in error.reasons.values():
                    LOGGER.warning("%s", reason)
                self._disabled = quarter, self._disabled[1] | error.reasons
            except WorkerLost as error:
                self._workers.pop(get_ident(), None)
                LOGGER.warning("%s", error)
                message = "The process that computed this page ended unexpectedly; try again."
                raise _HttpError(503, message, RETRY) from None

    async def _start_download(self, head: Head, request: Request, known_etags: Collection[str]) -> Response:
        """Start the download of all games, with an ETag for the head of the log. Raises `_HttpError`."""
        etag = _compute_etag(repr((str(head), request.query, version("ratings-ledger"))).encode())
        content_type = "application/jsonl"
        if etag in known_etags:
            return Response(200, content_type, b"", etag)
        if self._downloads >= DOWNLOADS_MAX:
            raise _HttpError(503, "Too many downloads of all games are running; try again in a minute.", RETRY)
        self._downloads += 1
        try:
            first_chunk, chunks = await get_running_loop().run_in_executor(
                self._threads, self._open_download, head, request
            )
        except BaseException:
            self._downloads -= 1
            raise
        return Response(
            status=200,
            type=content_type,
            content=first_chunk,
            etag=etag,
            headers=_build_robots_header(request),
            chunks=chunks,
        )

    def _open_download(self, head: Head, request: Request) -> tuple[bytes, Iterator[bytes]]:
        with self._reading_or_forking, self._visit(head, request) as visit:
            chunks = iterate_game_lines(visit)
            return next(chunks), chunks

    def _build_static_response(self, path: str) -> Response | None:
        """Return the style, the OpenAPI document or robots.txt; None for any other path."""
        if path == f"/{STYLE[0]}.css":
            return Response(
                status=200,
                type="text/css; charset=utf-8",
                content=CSS,
                etag="",
                headers=(("cache-control", IMMUTABLE),),
            )
        if path == f"/{OPENAPI}":
            return Response(200, "application/json; charset=utf-8", render_openapi(), _compute_etag(render_openapi()))
        if path == "/robots.txt":
            return Response(200, "text/plain; charset=utf-8", b"User-agent: *\nDisallow: /*?\n", "")
        return None

    def _build_error_response(self, request: Request, error: "_HttpError") -> Response:
        page = build_error_page(request.path, error.status, str(error))
        content_type, render = FORMATS[".json" if request.extension in (".json", ".jsonl") else ""]
        return Response(
            status=error.status,
            type=f"{content_type}; charset=utf-8",
            content=render(page, self.site),
            etag="",
            headers=error.headers,
        )


LOGGER = getLogger("uvicorn.error")
RETRY = (("retry-after", "5"),)
IMMUTABLE = "public, max-age=31536000, immutable"
RULESET_PUBLISHED = "ruleset.published"
UNREADABLE = (StoreUnavailable, NotALedger, StoreDamaged)


class ErrorReport(NamedTuple):
    """An HTTP error as a value; `cannot_read` tells whether the store could not be read."""

    status: int
    reason: str
    headers: tuple[tuple[str, str], ...]
    cannot_read: bool


def _build_in_worker(pages: Pages, head: Head, request: Request) -> Response | ErrorReport:
    """Compute a response in a worker process, on its own connections."""
    global _opened
    try:
        _opened = _opened or open_ledger(pages.url)
    except LedgerError as error:
        return ErrorReport(503, _describe_for_visitors(error), RETRY, cannot_read=True)
    pages._ledger = _opened
    return pages._build_response(head, request)


_opened: Ledger | None = None  # the ledger that this worker process has opened


class _HttpError(Exception):
    """An error response: its status, reason and headers."""

    def __init__(self, status: int, reason: str, headers: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(reason)
        self.status, self.headers = status, headers


@contextmanager
def _convert_errors() -> Iterator[None]:
    """Convert the errors of queries to HTTP errors."""
    try:
        yield
    except (Unknown, BadArgument, Refused) as error:
        raise _HttpError(404 if isinstance(error, Unknown | UnknownLadder) else 400, str(error)) from None
    except LedgerError as error:
        raise _HttpError(503, _describe_for_visitors(error), RETRY) from None


def _describe_for_visitors(error: LedgerError) -> str:
    """Return the message of an error for visitors, without the location of the ledger."""
    if isinstance(error, UNREADABLE):
        return f"The ledger cannot be read now: {REASONS[error.reason][1]}."
    return str(error)


def _limit_lock_wait(name: str) -> str:
    """Return the URL of the ledger with a lock timeout that suits a web page, unless the URL sets a timeout."""
    url = parse_url(name)
    if "timeout" in url.query or "?" in (url.database or ""):
        return name
    return url.update_query_dict({"timeout": str(LOCK_SECONDS)}).render_as_string(hide_password=False)


def _build_robots_header(request: Request) -> tuple[tuple[str, str], ...]:
    return (("x-robots-tag", "noindex"),) if request.query else ()


def _compute_etag(content: bytes) -> str:
    return f'"{sha256(content).hexdigest()[:32]}"'


def _parse_path(raw: bytes) -> Request:
    """Return the request for a path, without its query."""
    path, extension = raw.decode("ascii", "replace").removeprefix("/"), ""
    for suffix in (".json", ".csv", ".jsonl"):
        if path.endswith(suffix):
            path, extension = path.removesuffix(suffix), suffix
    if path == "index" and extension:
        path = ""
    return Request(tuple(path.split("/")) if path else (), extension, ())


def _parse_query(raw: bytes, path: PagePath) -> tuple[tuple[str, str], ...]:
    """Return a page's query parameters that have a value, in the order of its route. Raises `_HttpError`."""
    if len(raw) > ADDRESS_MAX:
        raise _HttpError(414, f"The query after the ? can have at most {ADDRESS_MAX:,} bytes.")
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, max_num_fields=PARAMETERS_MAX, errors="strict")
    except ValueError:
        raise _HttpError(
            400,
            "The query after the ? cannot be read; write it as NAME=VALUE&NAME=VALUE, in UTF-8 and with at most "
            f"{PARAMETERS_MAX} parameters.",
        ) from None
    parameters: dict[str, list[str]] = {name: [] for name in list_parameters(path)}
    for name, value in pairs:
        if name not in parameters:
            accepted = ", ".join(parameters) or "none"
            raise _HttpError(400, f"{quote(name)} is not a parameter of this page; it takes {accepted}.")
        if parameters[name] and name not in REPEATED:
            raise _HttpError(400, f"{name} is used twice; use it only once.")
        if value:
            parameters[name].append(value)
    return tuple((name, value) for name, values in parameters.items() for value in values)


async def _handle_lifespan(receive: Any, send: Any) -> None:
    """Acknowledge startup and shutdown."""
    while (await receive())["type"] == "lifespan.startup":
        await send({"type": "lifespan.startup.complete"})
    await send({"type": "lifespan.shutdown.complete"})


def serve_pages(pages: Pages, host: str, port: int, on_listening: Callable[[int], None]) -> None:
    """Serve pages until a signal arrives. Call `on_listening` with the port. Raises `StoreUnavailable`."""
    listener = socket(AF_INET6 if ":" in host else AF_INET)
    listener.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen()
    except OSError as error:
        message = f"cannot listen on {host}:{port}: {error.strerror}; choose another --port or --host"
        raise StoreUnavailable(message, "unreachable") from None
    on_listening(listener.getsockname()[1])
    sys.setswitchinterval(SWITCH_SECONDS)
    settings = uvicorn.Config(
        pages,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
        http=LimitedConnection,
        backlog=ACCEPTED_AT_ONCE,
    )
    Server(settings).run([listener])
