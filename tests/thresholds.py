"""Lower the program's thresholds, so that a test reaches them with a few games."""

import pytest

THRESHOLDS = {
    # reading the log
    "cached_events": ["projections.facts.decoding.CACHED_EVENTS"],
    "delta_events": ["projections.facts.decoding.DELTA_EVENTS"],
    "scanned_events": ["projections.facts.decoding.BULK_EVENTS"],
    "scanned_page_events": ["projections.facts.bulk_decoding.PAGE_EVENTS"],
    "followed_events": ["projections.queries.snapshot_reader.FOLLOWED_EVENTS"],
    "short_games": ["projections.queries.ladders_at.SHORT_LADDER_GAMES"],
    "merge_ratio": ["projections.facts.column_cache.MERGE_RATIO"],
    "segments_open": ["projections.facts.column_cache.SEGMENTS_MAX"],
    "verified_events": ["ledger.verification.PART_EVENTS"],
    # replay
    "traced_games": ["projections.replay.trace_cache.CACHED_GAMES_MIN"],
    "games_per_replayed_game": ["projections.replay.continuation.GAMES_PER_REPLAYED_GAME"],
    "sorted_slots": ["projections.replay.trace.SORT_CHUNK_SLOTS"],
    "compiled_games": ["projections.compiling.COMPILED_GAMES"],
    "last_steps": ["projections.queries.standings.LAST_STEPS_MAX"],
    "history_ends": ["projections.queries.rank_history.ENDS_MAX"],
    "history_steps": ["projections.queries.rank_history.STEPS_MAX"],
    "numpy_games": ["projections.arrays.LONG_HISTORY"],
    # clusters
    "segment_events": ["projections.cluster.prepared_log.SEGMENT_EVENTS"],
    "sealed_page_events": ["projections.cluster.prepared_log.PAGE_EVENTS"],
    "part_games": ["projections.cluster.segments.PART_GAMES"],
    "pack_games": ["projections.cluster.cluster_work.PACK_GAMES"],
    "streamed_games": ["projections.cluster.packs.STREAMED_GAMES"],
    "window_games": ["projections.cluster.pack_replays.WINDOW_GAMES"],
    "slow_task_seconds": ["projections.cluster.task_runner.SLOW_SECONDS"],
    "task_wait_seconds": ["projections.cluster.task_runner.WAIT_SECONDS"],
    "no_workers_seconds": ["projections.cluster.task_runner.NO_WORKERS_SECONDS"],
    "connect_seconds": ["projections.cluster.engines.CONNECT_SECONDS"],
    # writing
    "imported_chunk": ["ledger.intake.importing.CHUNK_EVENTS"],
    "parsed_items": ["ledger.intake.parsing.BLOCK_ITEMS"],
    "parsed_alone": ["ledger.intake.parsing.ALONE_BLOCKS"],
    "expanded_bytes": ["ledger.intake.files.EXPANDED_BYTES_MAX"],
    "previewed_games": ["projections.admission.proposals.SMALL_GAMES"],
    "stored_rows": ["projections.stored.generations.TRANSACTION_ROWS"],
    "stored_changes": ["projections.stored.sql_rows.CHANGES_PER_BLOCK"],
    "stored_games": ["projections.stored.sql_rows.GAMES_PER_BLOCK"],
    "forking_cost": ["projections.stored.computing.FORKING_COST"],
    "runs_kept": ["ledger.store.runs.KEPT_RUNS"],
    "busy_seconds": ["ledger.store.sqlite.BUSY_SECONDS"],
    "notify_seconds": ["ledger.store.postgres_connection.NOTIFY_SECONDS"],
    "silent_seconds": ["ledger.store.postgres_connection.SILENT_SECONDS"],
    "ping_seconds": ["ledger.store.postgres_connection.PING_SECONDS"],
    "shown_ladders": ["cli.commands.rebuild.LINES_SHOWN_MAX"],
    "retry_seconds": ["cli.commands.nightly.RETRY_SECONDS"],
    # pages
    "head_us": ["web.server.HEAD_AGE_MAX_US"],
    "answers_bytes": ["web.server.CACHE_BYTES"],
    "answer_seconds": ["web.server.ANSWER_SECONDS_MAX"],
    "lock_seconds": ["web.server.LOCK_SECONDS"],
    "files_at_once": ["web.server.DOWNLOADS_MAX"],
    "header_seconds": ["web.connections.HEADER_SECONDS"],
    "stalled_seconds": ["web.connections.STALLED_SECONDS"],
    "page_rows": ["web.ladders.PAGE_ROWS"],
    "spread_players": ["web.ladders.DISTRIBUTION_MIN"],
    "page_events": ["web.log.PAGE_EVENTS", "web.routes.PAGE_EVENTS"],
    "page_lines": ["web.players.STATEMENT_LINES_MAX", "web.routes.STATEMENT_LINES_MAX"],
    "lines_together": ["web.games.LINES_PER_CHUNK"],
}


def set_thresholds(patch: pytest.MonkeyPatch, **values: float) -> None:
    """Set thresholds to other values: `set_thresholds(monkeypatch, cached_events=1)`."""
    for name, value in values.items():
        for place in THRESHOLDS[name]:
            patch.setattr(f"ratings_ledger.{place}", value)
