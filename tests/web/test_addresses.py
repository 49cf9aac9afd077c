"""Addresses: each id has a legal path segment of its own, which can be decoded unless it was truncated."""

import re
from unicodedata import category

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from ratings_ledger.web import addresses

# what an id may hold: no control characters, no / and no =
IDS = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/="), min_size=1, max_size=64)
LEGAL = re.compile(r"[a-z0-9~-]{1,120}")
DEVICES = {"con", "prn", "aux", "nul", *(f"{port}{digit}" for port in ("com", "lpt") for digit in range(10))}


@given(IDS)
def test_segment_decodes_to_its_id(text: str) -> None:
    """A segment is a legal file name on every system; it decodes to its id, or is truncated and found among the ids."""
    segment = addresses.encode_segment(text)
    assert LEGAL.fullmatch(segment)
    assert segment not in DEVICES
    is_truncated = "~~" in segment
    event("truncated" if is_truncated else "whole")
    assert addresses.decode_segment(segment) == (None if is_truncated else text)
    assert addresses.is_truncated(segment) == is_truncated
    assert addresses.resolve_truncated(segment, ["another", text]) == text


@given(st.lists(IDS | st.sampled_from(sorted(DEVICES)), unique=True, min_size=2))
def test_no_two_ids_share_a_segment(texts: list[str]) -> None:
    """Ids that differ, if only by case or an accent, have different segments, also on systems that ignore case."""
    assert len({addresses.encode_segment(text).casefold() for text in texts}) == len(texts)


@given(st.text(max_size=40))
def test_only_segments_of_ids_are_read(text: str) -> None:
    """A text that is no id's segment decodes to nothing, so that each id has a single address."""
    decoded_id = addresses.decode_segment(text)
    assert decoded_id is None or addresses.encode_segment(decoded_id) == text


@pytest.mark.parametrize("segment", ["~00", "a~0ab", "~7f", "~c2~85"])
def test_no_id_has_control_characters(segment: str) -> None:
    """A segment of a text that no id may hold decodes to nothing; PostgreSQL, for one, accepts no NUL in a text."""
    assert addresses.decode_segment(segment) is None


def test_long_ids_that_begin_alike_differ() -> None:
    """Two ids of 64 Cyrillic letters that differ only in the last letter have different segments."""
    left, right = "Ж" * 64, "Ж" * 63 + "Ю"
    assert category("Ж") == "Lu"
    assert addresses.encode_segment(left) != addresses.encode_segment(right)
    assert addresses.encode_segment(left).startswith("~d0~96")


PATHS = st.lists(st.sampled_from(["ladders", "elo", "all", "anna", "games", "g-1"]), max_size=4).map(tuple)


@given(PATHS, PATHS, st.sampled_from(["", ".html", ".json"]))
def test_links_lead_to_their_targets(start: tuple[str, ...], target: tuple[str, ...], ending: str) -> None:
    """A link, followed from its page, leads to the address of its target, on a server and in a folder."""
    link = addresses.build_relative_link(start, target, ending)
    parts = ["site", *start[:-1]]
    for part in link.split("/"):
        if part == "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    expected = addresses.name_file(target, ending)
    assert "/".join(parts) == f"site/{expected}".rstrip("/")
