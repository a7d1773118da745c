"""The sqlite files of ROS 2 bags (.db3), as far as they can be read; the database needs no other file beside it."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from lgsim.identify.logs.decompression import unzstd
from lgsim.identify.logs.raw_messages import Channel, Damage, RawMessage, Wanted, type_name
from lgsim.support.packages import package
from lgsim.support.reading.size_limits import size_limit

MAGIC = b"SQLite format 3\x00"
_ROWS = 1000  # messages read at a time
_ZSTD = b"\x28\xb5\x2f\xfd"  # how a compressed message begins; one in CDR begins with 0
_LARGEST = 2**30  # bytes of one message
_TABLES = ("topics", "messages", "message_definitions")
_PLAIN = ("CREATE TABLE ", "CREATE INDEX ", "CREATE UNIQUE INDEX ", "CREATE TRIGGER ")
_COMPUTED = (2, 3)  # marks of such columns in table_xinfo
# steps of sqlite's machine: a row takes some twenty of them and eight bytes at least
_STEPS, _WORK, _LEAST_WORK = 10_000, 100, 5 * 10**7
_MOST_FAULTS = 200  # after so many damaged places the rest is given up


class SqliteBag:
    """The messages of one file of a bag.

    Args:
        path: The file.
        wanted: Which channels to read.
    """

    def __init__(self, path: Path, wanted: Wanted) -> None:
        self.path, self._wanted, self._exhausted = path, wanted, False

    def messages(self) -> Iterator[RawMessage | Damage]:
        """The wanted messages by their numbers, with what is damaged among them."""
        try:
            size, full = self.path.stat().st_size, _full_size(self.path)
            if size < full:
                yield Damage(
                    f"byte {size}", f"the file ends there and should have {full} bytes; what lies before is read", True
                )
                base, fault = _open_padded(self.path, full), package("apsw", "logs").Error
            else:
                # a log is never written to, and another program may still hold its lock
                base = sqlite3.connect(f"file:{quote(str(self.path.absolute()))}?immutable=1", uri=True)
                base.text_factory, fault = lambda text: text.decode(errors="replace"), sqlite3.Error
        except ModuleNotFoundError:
            raise
        except Exception as error:  # of either package
            yield Damage("byte 0", f"the database cannot be opened: {error}", True)
            return
        self._faults = (fault, OverflowError, MemoryError, UnicodeDecodeError)
        try:
            self._check_tables(base)
            self._limit_work(base, size)
            yield from self._read(base, size)
        finally:
            base.close()

    def _check_tables(self, base: Any) -> None:
        """Check that the database consists of plain tables: a view or a computed column may never end.

        Raises:
            ValueError: it has something else.
        """
        try:
            base.execute("PRAGMA trusted_schema = OFF").fetchall()
            rows = base.execute("SELECT name, sql FROM sqlite_master").fetchall()
            columns = [row for name in _TABLES for row in base.execute(f"PRAGMA table_xinfo({name})")]
        except self._faults:
            return  # damaged: the list of topics cannot be read either
        for name, statement in rows:
            # what sqlite stores begins so, whoever wrote the statement
            if statement is not None and not str(statement).startswith(_PLAIN):
                what = " ".join(str(statement).split())[:60]
                raise ValueError(
                    f"{self.path}: {str(name)[:60]}: expected the tables of a ROS 2 bag, got {what!r}; views and"
                    " virtual tables are not read, since their rows may never end"
                )
        for column in columns:
            if column[6] in _COMPUTED:
                raise ValueError(
                    f"{self.path}: {str(column[1])[:60]}: expected a column of a ROS 2 bag, got one that is computed"
                )

    def _limit_work(self, base: Any, size: int) -> None:
        """End queries that take far more steps than rows of a file of that size need."""
        left = [_LEAST_WORK + _WORK * size]

        def used_up() -> bool:
            left[0] -= _STEPS
            self._exhausted = left[0] < 0
            return self._exhausted

        base.set_progress_handler(used_up, _STEPS)

    def _read(self, base: Any, size: int) -> Iterator[RawMessage | Damage]:
        try:
            channels = self._channels(base)
        except (*self._faults, TypeError, ValueError) as error:
            yield Damage("byte 0", f"the list of topics cannot be read: {error}", True)
            return
        ids = {number: channel for number, channel in channels.items() if self._wanted(channel)}
        if not ids:
            return
        least, most = self._range(base)
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
            rows, error = self._rows(base, first, last, ids)
            for number, topic, log_time, data in rows:
                yield self._message(ids[topic], number, log_time, data)
            if error is None:
                continue
            faults += 1
            done = rows[-1][0] if rows else first - 1
            if self._exhausted:
                text = "its queries take more steps than its size explains; the messages from there on are left out"
                yield Damage(f"message {done + 1}", text, True)
                return
            if faults > _MOST_FAULTS:
                yield Damage(f"message {done + 1}", f"{error}; the messages from there on are left out", True)
                return
            # the page behind is lost: go on where reading works again
            after = self._readable(base, done + 1, last, ids)
            lost = f"before {after}" if after <= last or spans else "from there on"
            yield Damage(f"message {done + 1}", f"{error}; the messages {lost} are left out")
            if after <= last:
                spans.append((after, last))

    def _message(self, channel: Channel, number: int, log_time: object, data: object) -> RawMessage | Damage:
        where = f"message {number}"
        if not isinstance(data, bytes) or not isinstance(log_time, int):
            return Damage(where, "a message has no bytes or no time; it is left out")
        if data[:4] != _ZSTD:
            return RawMessage(channel, log_time, data, where)
        try:
            plain = unzstd(data, min(_LARGEST, size_limit()))
        except ModuleNotFoundError:
            raise
        except Exception as error:  # the package's own errors
            return Damage(where, f"a message cannot be decompressed ({error}); it is left out")
        return RawMessage(channel, log_time, plain, where)

    def _channels(self, base: Any) -> dict[int, Channel]:
        """The topics by their numbers, with definitions where the bag has them."""
        definitions: dict[str, tuple[str, str]] = {}
        try:
            rows = base.execute("SELECT topic_type, encoding, encoded_message_definition FROM message_definitions")
            definitions = {type_name(str(name)): (str(language), str(text)) for name, language, text in rows}
        except self._faults:
            pass  # bags before Iron have none
        found = {}
        for number, name, kind, encoding in base.execute("SELECT id, name, type, serialization_format FROM topics"):
            language, text = definitions.get(type_name(str(kind)), ("", ""))
            found[int(number)] = Channel(str(name), type_name(str(kind)), str(encoding), language, text)
        return found

    def _range(self, base: Any) -> tuple[int | None, int | None]:
        """The smallest and the largest number of a message; where that cannot be read, a range that is wide enough."""
        ends: list[int | None] = []
        for which in ("min", "max"):
            try:
                value = base.execute(f"SELECT {which}(id) FROM messages").fetchone()[0]
                ends.append(value if isinstance(value, int) else None)
            except self._faults:
                ends.append(None)
        least, most = ends
        if least is None and most is None:
            try:
                base.execute("SELECT id FROM messages LIMIT 1").fetchone()
            except self._faults:
                return None, None
            return 1, 0
        return (1 if least is None else least), (10**7 if most is None else most)

    def _rows(
        self, base: Any, first: int, last: int, ids: dict[int, Channel]
    ) -> tuple[list[tuple[int, int, object, object]], str | None]:
        """The rows of a range of messages up to the first fault, and that fault."""
        marks = ",".join("?" * len(ids))
        query = (
            "SELECT id, topic_id, timestamp, data FROM messages"
            f" WHERE id BETWEEN ? AND ? AND topic_id IN ({marks}) ORDER BY id"
        )
        rows: list[tuple[int, int, object, object]] = []
        try:
            for row in base.execute(query, (first, last, *ids)):
                if isinstance(row[0], int) and row[1] in ids:
                    rows.append(row)
        except self._faults as error:
            return rows, str(error) or type(error).__name__
        return rows, None

    def _readable(self, base: Any, start: int, last: int, ids: dict[int, Channel]) -> int:
        """A number from `start` to `last` from which on reading works again, or last + 1; the steps double."""
        step = 1
        while start + step <= last:
            if self._rows(base, start + step, min(start + step, last), ids)[1] is None:
                return start + step
            step *= 2
        return last + 1


def _full_size(path: Path) -> int:
    """The bytes that a database should have by its head, 0 where that is damaged."""
    with path.open("rb") as file:
        head = file.read(32)
    if len(head) < 32 or not head.startswith(MAGIC):
        return 0
    page, count = struct.unpack(">H", head[16:18])[0], struct.unpack(">I", head[28:32])[0]
    page = 65536 if page == 1 else page
    return page * count if 512 <= page and page & (page - 1) == 0 else 0


def _open_padded(path: Path, size: int) -> Any:
    """A database that is cut, as if the bytes that are missing were zeros: what lies before them can be read then."""
    apsw = package("apsw", "logs", "a bag that is cut")

    class PaddedFile(apsw.VFSFile):
        """The file, which is read alone."""

        def __init__(self) -> None:
            self._file = path.open("rb")

        def xRead(self, amount: int, offset: int) -> bytes:
            self._file.seek(offset)
            return self._file.read(amount).ljust(amount, b"\0")

        def xFileSize(self) -> int:
            return size

        def xClose(self) -> None:
            self._file.close()

        def xSectorSize(self) -> int:
            return 0

        def xDeviceCharacteristics(self) -> int:
            return 0

        def xFileControl(self, op: int, pointer: int) -> bool:
            return False

    class PaddedFiles(apsw.VFS):
        """Opens nothing but that file."""

        def __init__(self) -> None:
            super().__init__("lgsim-padded", "")

        def xOpen(self, name: Any, flags: list[int]) -> PaddedFile:
            return PaddedFile()

    files = PaddedFiles()
    base = apsw.Connection(
        f"file:{quote(str(path.absolute()))}?immutable=1", vfs="lgsim-padded",
        flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI,
    )  # fmt: skip
    return _Padded(base, files)


class _Padded(NamedTuple):
    """A connection with the files that it reads by, which must live as long."""

    base: Any
    files: Any

    def execute(self, query: str, values: tuple[int, ...] = ()) -> Any:
        """The rows of a query."""
        return self.base.execute(query, values)

    def set_progress_handler(self, handler: Any, steps: int) -> None:
        """Call a function each so many steps of a query, which ends where it is true."""
        self.base.set_progress_handler(handler, steps)

    def close(self) -> None:
        """Close the file."""
        self.base.close()
