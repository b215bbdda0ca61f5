import io
import tracemalloc

from incarnate.actors.ingest_report import IngestReport, NotedLine, RefusedLine
from incarnate.actors.lines import read_lines


def test_lines_end_at_line_feeds_alone() -> None:
    data = "a\rb\u2028c\x85d\x0ce\r\nlast".encode()
    lines = list(read_lines(io.BytesIO(data)))

    assert [data[:-4], b"last"] == [line.data for line in lines]
    assert [True, False] == [line.whole for line in lines]


def test_a_line_over_the_limit_is_measured_and_not_kept() -> None:
    lines = list(read_lines(io.BytesIO(b"x" * 25 + b"\nshort\n" + b"y" * 30), max_bytes=10))

    assert [26, 6, 30] == [line.size for line in lines]
    assert [None, b"short\n", None] == [line.data for line in lines]
    assert [True, True, False] == [line.whole for line in lines]


def test_a_line_of_exactly_the_limit_is_kept() -> None:
    lines = list(read_lines(io.BytesIO(b"x" * 9 + b"\nnext\n"), max_bytes=10))

    assert [b"x" * 9 + b"\n", b"next\n"] == [line.data for line in lines]


class Pieces:
    """A pipe whose writer gives two bytes at a time."""

    left = 100_000

    def read1(self, _size: int, /) -> bytes:
        self.left -= 1
        return b"%02d" % (self.left % 100) if self.left >= 0 else b""


def test_a_line_that_comes_in_tiny_pieces_takes_no_more_than_its_bytes() -> None:
    tracemalloc.start()
    try:
        sizes = [line.size for line in read_lines(Pieces())]
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert [200_000] == sizes
    assert most < 1_000_000  # as a list of the pieces it took 12 MB


def test_a_report_stays_small_whatever_the_file() -> None:
    report = IngestReport(key="a/b", harness="h")
    for number in range(5000):
        report.ignore(f"kind-{number}" * 1000)
        report.refuse(RefusedLine(number, "x" * 100_000))
        report.hear(NotedLine(number, "y" * 100_000))
        report.mend(NotedLine(number, "z" * 100_000), 2)

    assert (5000, 10_000, 10_000) == (report.refused, sum(report.ignored.values()), report.mended)
    assert (1000, 1000) == (len(report.text_lines), len(report.mended_lines))
    assert (1000, 1001) == (len(report.refused_lines), len(report.ignored))
    assert 300 == len(report.refused_lines[0].reason)
