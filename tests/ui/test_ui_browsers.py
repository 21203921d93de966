"""Tokens belong to one browser: a link that is passed on is seen to be another's."""

from __future__ import annotations

import pytest

from planner.ui.browsers import COOKIE, browser_of, is_of, new_token

MINE, YOURS = bytes(range(16)), bytes(range(1, 17))


def test_a_token_is_its_browsers_and_nobody_elses() -> None:
    token = new_token(MINE)
    assert is_of(token, MINE)
    assert not is_of(token, YOURS)
    assert not is_of(token, b"")


def test_tokens_differ_and_have_the_form_that_the_store_takes() -> None:
    tokens = {new_token(MINE) for _ in range(50)}
    assert len(tokens) == 50
    assert {len(token) for token in tokens} == {22}


def test_without_a_secret_nobody_owns_a_token() -> None:
    token = new_token()
    assert not is_of(token, b"")
    assert not is_of(token, MINE)


@pytest.mark.parametrize("token", ["", "a", "é" * 22, "..", "A" * 22, "A" * 21, "/" * 22])
def test_what_is_no_token_is_nobodys(token: str) -> None:
    assert not is_of(token, MINE)


@pytest.mark.parametrize(("mask", "time"), [(b"\x00" * 4, 1), (b"\xff\x00\x10\x07", 2)])
def test_the_secret_is_the_same_under_every_mask(mask: bytes, time: int) -> None:
    masked = bytes(one ^ mask[place % 4] for place, one in enumerate(MINE))
    assert browser_of({COOKIE: f"2|{mask.hex()}|{masked.hex()}|{time}"}) == MINE


def test_a_bare_secret_is_read_too() -> None:
    assert browser_of({COOKIE: MINE.hex()}) == MINE


@pytest.mark.parametrize(
    "text", ["", "2|", "2|a|b", "2|zz|zz|1", "2||00112233|1", "no hex", "2|00|00|1", "00"]
)
def test_a_cookie_that_says_nothing_is_no_browser(text: str) -> None:
    assert browser_of({COOKIE: text}) == b""
    assert browser_of({}) == b""
