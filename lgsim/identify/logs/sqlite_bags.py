"""The sqlite files of ROS 2 bags (.db3), as far as they can be read; the database needs no other file beside it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from lgsim.identify.logs.raw_messages import Channel, Damage, RawMessage, Wanted, type_name
from lgsim.support.packages import package

MAGIC = b"SQLite format 3\x00"
_ROWS = 1000  # messages read at a time
_ZSTD = b"\x28\xb5\x2f\xfd"  # how a compressed message begins; one in CDR begins with 0
_LARGEST = 2**30  # bytes of one message
_MOST_FAULTS = 200  # after so many damaged places the rest is given up


class SqliteBag:
    """The messages of one file of a bag.

    Args:
        path: The file.
        wanted: Which channels to read.
    """

    def __init__(self, path: Path, wanted: Wanted) -> None:
        self.path, self._wanted = path, wanted

    def messages(self) -> Iterator[RawMessage | Damage]:
        """The wanted messages by their numbers, with what is damaged among them."""
        try:
            # a log is never written to, and another program may still hold its lock
            base = sqlite3.connect(f"file:{quote(str(self.path.absolute()))}?immutable=1", uri=True)
        except sqlite3.Error as error:
            yield Damage("byte 0", f"the database cannot be opened: {error}", True)
            return
        try:
            base.text_factory = lambda text: text.decode(errors="replace")
            yield from self._read(base)
        finally:
            base.close()

    def _read(self, base: sqlite3.Connection) -> Iterator[RawMessage | Damage]:
        try:
            channels = _channels(base)
        except (sqlite3.Error, TypeError, ValueError) as error:
            yield Damage("byte 0", f"the list of topics cannot be read: {error}", True)
            return
        ids = {number: channel for number, channel in channels.items() if self._wanted(channel)}
        if not ids:
            return
        size, (pages, page) = self.path.stat().st_size, _pages(base)
        if size < pages * page:
            yield Damage(f"byte {size}", f"the file ends there and should have {pages * page} bytes", True)
        least, most = _range(base)
        if least is None or most is None:
            yield Damage("byte 0", "the numbers of the messages cannot be read", True)
            return
        # a damaged number can be anything, and a message takes eight bytes at least
        most = min(most, least + size // 8)
        spans, faults = [(least, most)], 0
        while spans:
            first, last = spans.pop()
            last, rest = min(last, first + _ROWS - 1), last
            if last < rest:
                spans.append((last + 1, rest))
            rows, error = _rows(base, first, last, ids)
            for number, topic, log_time, data in rows:
                yield self._message(ids[topic], number, log_time, data)
            if error is None:
                continue
            faults += 1
            done = rows[-1][0] if rows else first - 1
            if faults > _MOST_FAULTS:
                yield Damage(f"message {done + 1}", f"{error}; the messages from there to {most} are left out", True)
                return
            # the page behind is lost: go on where reading works again
            after = _readable(base, done + 1, last, ids)
            yield Damage(f"message {done + 1}", f"{error}; the messages before {after} are left out")
            if after <= last:
                spans.append((after, last))

    def _message(self, channel: Channel, number: int, log_time: int, data: object) -> RawMessage | Damage:
        where = f"message {number}"
        if not isinstance(data, bytes) or not isinstance(log_time, int):
            return Damage(where, "a message has no bytes or no time and is left out")
        if data[:4] == _ZSTD:
            try:
                data = package("zstandard", "logs").ZstdDecompressor().decompress(data, max_output_size=_LARGEST)
            except ModuleNotFoundError:
                raise
            except Exception as error:  # the package's own errors
                return Damage(where, f"a message cannot be decompressed ({error}) and is left out")
        return RawMessage(channel, log_time, data, where)


def _channels(base: sqlite3.Connection) -> dict[int, Channel]:
    """The topics by their numbers, with definitions where the bag has them."""
    definitions: dict[str, tuple[str, str]] = {}
    try:
        rows = base.execute("SELECT topic_type, encoding, encoded_message_definition FROM message_definitions")
        definitions = {type_name(str(name)): (str(language), str(text)) for name, language, text in rows}
    except sqlite3.Error:
        pass  # bags before Iron have none
    found = {}
    for number, name, kind, encoding in base.execute("SELECT id, name, type, serialization_format FROM topics"):
        language, text = definitions.get(type_name(str(kind)), ("", ""))
        found[int(number)] = Channel(str(name), type_name(str(kind)), str(encoding), language, text)
    return found


def _pages(base: sqlite3.Connection) -> tuple[int, int]:
    """(number of pages, size of a page) by the file's head."""
    try:
        return base.execute("PRAGMA page_count").fetchone()[0], base.execute("PRAGMA page_size").fetchone()[0]
    except (sqlite3.Error, TypeError):
        return 0, 0


def _range(base: sqlite3.Connection) -> tuple[int | None, int | None]:
    """The smallest and the largest number of a message; where that cannot be read, a range that is wide enough."""
    ends: list[int | None] = []
    for which in ("min", "max"):
        try:
            value = base.execute(f"SELECT {which}(id) FROM messages").fetchone()[0]
            ends.append(value if isinstance(value, int) else None)
        except sqlite3.Error:
            ends.append(None)
    least, most = ends
    if least is None and most is None:
        try:
            base.execute("SELECT id FROM messages LIMIT 1").fetchone()
        except sqlite3.Error:
            return None, None
        return 1, 0
    return (1 if least is None else least), (10**7 if most is None else most)


def _rows(
    base: sqlite3.Connection, first: int, last: int, ids: dict[int, Channel]
) -> tuple[list[tuple[int, int, int, object]], str | None]:
    """The rows of a range of messages up to the first fault, and that fault."""
    marks = ",".join("?" * len(ids))
    query = (
        "SELECT id, topic_id, timestamp, data FROM messages"
        f" WHERE id BETWEEN ? AND ? AND topic_id IN ({marks}) ORDER BY id"
    )
    rows: list[tuple[int, int, int, object]] = []
    try:
        for row in base.execute(query, (first, last, *ids)):
            if isinstance(row[0], int) and row[1] in ids:
                rows.append(row)
    except (sqlite3.Error, OverflowError, MemoryError) as error:
        return rows, str(error) or type(error).__name__
    return rows, None


def _readable(base: sqlite3.Connection, start: int, last: int, ids: dict[int, Channel]) -> int:
    """A number from `start` to `last` from which on reading works again, or last + 1; the steps double."""
    step = 1
    while start + step <= last:
        if _rows(base, start + step, min(start + step, last), ids)[1] is None:
            return start + step
        step *= 2
    return last + 1
