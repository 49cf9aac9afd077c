"""Serve a ledger over HTTP with the library: record games by PUT, and return standings and recorded events as JSON.

    python examples/service.py ratings.db 8080
    curl -X PUT localhost:8080/games/g-1 -d '{"occurred_at": "2025-05-01T20:00:00Z", "game": "chess",
        "participants": [{"player": "anna", "place": 1}, {"player": "ben", "place": 2}]}'
    curl localhost:8080/standings/elo-chess/all
    curl 'localhost:8080/feed?after=0&limit=100'

Sending a game again changes nothing; the answer is then 200 instead of 201.
"""

import json
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import ratings_ledger as rl


class Service(ThreadingHTTPServer):
    """The server, with the ledger that its threads share."""

    def __init__(self, address: tuple[str, int], ledger: rl.Ledger) -> None:
        super().__init__(address, Handler)
        self.ledger = ledger


class Handler(BaseHTTPRequestHandler):
    """A handler of one request."""

    server: Service

    def do_PUT(self) -> None:
        """Record a game with the id in its address."""
        self._answer(self._record)

    def do_GET(self) -> None:
        """Return standings, or the events after a position."""
        self._answer(self._read)

    def _record(self, kind: str, name: str, query: dict[str, str]) -> tuple[HTTPStatus, Any]:
        if kind != "games":
            return HTTPStatus.NOT_FOUND, {"message": "no such address; use PUT /games/ID"}
        game = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        if not isinstance(game, dict) or "occurred_at" not in game:
            raise ValueError("send a game as a JSON object with occurred_at")
        proposed = {"type": "game.recorded", "occurred_at": game.pop("occurred_at"), "data": {**game, "game_id": name}}
        (event,) = self.server.ledger.propose(proposed, by="service").commit().events
        return HTTPStatus.CREATED if event.appended else HTTPStatus.OK, event._asdict()

    def _read(self, kind: str, name: str, query: dict[str, str]) -> tuple[HTTPStatus, Any]:
        if kind == "standings":
            return HTTPStatus.OK, self.server.ledger.at().standings(name).model_dump()
        if kind == "feed":
            page = self.server.ledger.log(int(query.get("after", 0)), int(query.get("limit", 100)))
            return HTTPStatus.OK, [row.event for row in page.rows]
        return HTTPStatus.NOT_FOUND, {"message": "no such address; use GET /standings/LADDER or GET /feed?after=N"}

    def _answer(self, handle: Any) -> None:
        url = urlsplit(self.path)
        kind, _, name = url.path.strip("/").partition("/")
        try:
            status, answer = handle(kind, unquote(name), dict(parse_qsl(url.query)))
        except rl.StoreUnavailable as problem:
            status, answer = HTTPStatus.SERVICE_UNAVAILABLE, {"code": problem.reason, "message": str(problem)}
        except rl.LedgerError as problem:
            status, answer = HTTPStatus.UNPROCESSABLE_ENTITY, {"code": problem.reason, "message": str(problem)}
        except ValueError as problem:
            status, answer = HTTPStatus.BAD_REQUEST, {"code": "bad-request", "message": str(problem)}
        content = json.dumps(answer, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


if __name__ == "__main__":
    with rl.open(sys.argv[1], create=True) as ledger:
        ledger.publish("elo-chess", by="service")
        Service(("127.0.0.1", int(sys.argv[2])), ledger).serve_forever()
