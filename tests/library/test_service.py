"""The service in examples/service.py answers the requests of a client."""

import http.client
import json
import runpy
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import ratings_ledger as rl

pytestmark = pytest.mark.slow

SERVICE = Path(__file__).parents[2] / "examples" / "service.py"
GAME = {
    "occurred_at": "2025-05-01T12:00:00Z",
    "game": "chess",
    "participants": [{"player": "anna", "place": 1}, {"player": "ben", "place": 2}],
}


def test_service_records_once_and_answers() -> None:
    """A game is recorded once, counts, and appears in the feed; invalid requests are refused."""
    service = runpy.run_path(str(SERVICE))["Service"]
    with rl.create(rulesets=["elo-chess"]) as ledger, service(("127.0.0.1", 0), ledger) as server:
        server.RequestHandlerClass.log_message = lambda *_: None
        Thread(target=server.serve_forever, daemon=True).start()

        def request(method: str, path: str, content: object = None) -> tuple[int, Any]:
            connection = http.client.HTTPConnection(*server.server_address)
            connection.request(method, path, None if content is None else json.dumps(content))
            answer = connection.getresponse()
            status_and_content = answer.status, json.loads(answer.read())
            connection.close()
            return status_and_content

        ruleset = ledger.at().rulesets().rows[0].version.partition("@")[0]
        first = request("PUT", "/games/g-1", GAME)
        assert first == (201, {"id": "game:g-1", "position": 2, "appended": True})
        assert request("PUT", "/games/g-1", GAME) == (200, {**first[1], "appended": False})
        status, standings = request("GET", f"/standings/{ruleset}/all")
        assert (status, [row["player"] for row in standings["rows"]]) == (200, ["anna", "ben"])
        assert [event["type"] for event in request("GET", "/feed?after=1")[1]] == ["game.recorded"]
        assert request("PUT", "/games/g-2", {**GAME, "participants": []})[0] == 422
        undated = {name: value for name, value in GAME.items() if name != "occurred_at"}
        for content in ([1], undated):
            status, answer = request("PUT", "/games/g-2", content)
            assert (status, answer["message"]) == (400, "send a game as a JSON object with occurred_at")
        assert request("GET", "/feed?after=x")[0] == 400
        assert request("GET", "/standings/none")[0] == 422
        assert request("GET", "/games/g-1")[0] == 404
        server.shutdown()
