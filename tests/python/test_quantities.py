from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpushare._settings.quantities import MissingUnitError, parse_bytes, parse_number, parse_seconds


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("1048576", 1 << 20),
        (4096, 4096),
        ("2GiB", 2 << 30),
        ("2 gib", 2 << 30),
        ("512 MB", 512 * 10**6),
        ("1.5G", 3 << 29),
        ("64k", 64 << 10),
        ("1tb", 10**12),
        ("2e6", 2000000),
        (" 7 B ", 7),
    ],
)
def test_reads_sizes_as_the_daemon_does(text, size):
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "GiB", "-1", "1 XB", "2GiBB", "1,5G", "nan", "inf", "1e30 G"])
def test_refuses_what_is_no_size(text):
    with pytest.raises(ValueError, match="is n"):
        parse_bytes(text)


@pytest.mark.parametrize("text", ["2", " 2 ", "0.5", "1048575"])
def test_a_small_size_without_a_unit_is_refused_and_what_it_may_mean_is_said(text):
    with pytest.raises(MissingUnitError, match=f"^say {text.strip()}GiB or {text.strip()}MiB "):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10s", 10.0),
        ("0", 0.0),
        (0.5, 0.5),
        (10, 10.0),
        ("250ms", 0.25),
        ("2 min", 120.0),
        ("1m", 60.0),
        ("3us", 3e-6),
    ],
)
def test_reads_times(text, seconds):
    assert parse_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "soon", "-1s", "1 day", "inf", "1e12s"])
def test_refuses_what_is_no_time(text):
    with pytest.raises(ValueError, match="is n"):
        parse_seconds(text)


@pytest.mark.parametrize("text", ["50", " 50 ", "0.05", "1e3"])
def test_a_time_without_a_unit_is_refused_and_both_meanings_are_said(text):
    with pytest.raises(MissingUnitError, match=f"^say {text.strip()}ms or {text.strip()}s$"):
        parse_seconds(text)


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "x"])
def test_refuses_what_is_no_finite_number(text):
    with pytest.raises(ValueError, match=r"finite|convert"):
        parse_number(text)


@given(st.integers(min_value=1 << 20, max_value=2**53))
def test_a_size_in_bytes_is_itself(size):
    assert parse_bytes(size) == parse_bytes(f"{size}") == parse_bytes(f"{size} B") == size


@given(st.text(max_size=12))
def test_any_text_is_a_size_or_a_value_error(text):
    said = ""
    try:
        assert parse_bytes(text) >= 0
    except MissingUnitError as error:
        assert text.strip() in str(error)
    except ValueError as error:
        said = str(error)
    assert not said or repr(text) in said
