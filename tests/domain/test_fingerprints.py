"""A set of texts by their hashes."""

from hypothesis import given
from hypothesis import strategies as st

from incarnate.domain.fingerprints import Fingerprints


@given(st.lists(st.text(max_size=3)))
def test_it_tells_what_is_new_as_a_set_does(texts: list[str]) -> None:
    known, marks = set[str](), Fingerprints()
    for text in texts:
        assert (text not in known) == (text not in marks) == marks.add(text)
        known.add(text)

    assert len(known) == len(marks)


def test_it_grows_and_forgets_nothing() -> None:
    marks = Fingerprints()
    names = [f"event-{number}" for number in range(5000)]

    assert all(marks.add(name) for name in names)
    assert all(name in marks for name in names)
    assert not any(marks.add(name) for name in names)
    assert 5000 == len(marks)
