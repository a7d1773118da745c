"""The sqlite files of ROS 2 bags (.db3), which need no other file beside them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from lgsim.identify.logs.decompression import unzstd
from lgsim.identify.logs.raw_messages import Channel, Damage, RawMessage, Wanted, type_name
from lgsim.support.reading.size_limits import size_limit

MAGIC = b"SQLite format 3\x00"
_ZSTD = b"\x28\xb5\x2f\xfd"  # how a compressed message begins; one in CDR begins with 0
_LARGEST = 2**30  # bytes of one message
_FAULTS = (sqlite3.Error, OverflowError, MemoryError, UnicodeDecodeError)
_RECOVER = "`.recover` of the program sqlite3 writes a whole database of what can be read"
_TABLES = ("topics", "messages", "message_definitions")
_PLAIN = ("CREATE TABLE ", "CREATE INDEX ", "CREATE UNIQUE INDEX ", "CREATE TRIGGER ")
_COMPUTED = (2, 3)  # marks of such columns in table_xinfo
# steps of sqlite's machine: a row takes some twenty of them and eight bytes at least
_STEPS, _WORK, _LEAST_WORK = 10_000, 100, 5 * 10**7


class SqliteBag:
    """The messages of one file of a bag.

    Args:
        wanted: Which channels to read.
    """

    def __init__(self, path: Path, wanted: Wanted) -> None:
        self.path, self._wanted, self._exhausted = path, wanted, False

    def messages(self) -> Iterator[RawMessage | Damage]:
        """The wanted messages by their numbers, with what is damaged among them."""
        try:
            # a log is never written to, and another program may still hold its lock
            base = sqlite3.connect(f"file:{quote(str(self.path.absolute()))}?immutable=1", uri=True)
        except sqlite3.Error as error:
            yield Damage("byte 0", f"the database cannot be opened: {error}", True)
            return
        base.text_factory = lambda text: text.decode(errors="replace")
        try:
            self._check_tables(base)
            self._limit_work(base, self.path.stat().st_size)
            yield from self._read(base)
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
        except _FAULTS:
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

    def _read(self, base: Any) -> Iterator[RawMessage | Damage]:
        """The messages up to the first page of the database that cannot be read."""
        try:
            channels = self._channels(base)
        except (*_FAULTS, TypeError, ValueError) as error:
            yield Damage("byte 0", f"the list of topics cannot be read: {error}; {_RECOVER}", True)
            return
        ids = {number: channel for number, channel in channels.items() if self._wanted(channel)}
        if not ids:
            return
        marks, last = ",".join("?" * len(ids)), 0
        query = f"SELECT id, topic_id, timestamp, data FROM messages WHERE topic_id IN ({marks}) ORDER BY id"
        try:
            for number, topic, log_time, data in base.execute(query, tuple(ids)):
                if isinstance(number, int) and topic in ids:
                    yield self._message(ids[topic], number, log_time, data)
                    last = number
        except _FAULTS as error:
            what = "its queries take more steps than its size explains" if self._exhausted else f"{error}"
            left = "the messages behind are left out"
            yield Damage(f"message {last + 1}", f"{what}; {left}" + ("" if self._exhausted else f": {_RECOVER}"), True)

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
        except _FAULTS:
            pass  # bags before Iron have none
        found = {}
        for number, name, kind, encoding in base.execute("SELECT id, name, type, serialization_format FROM topics"):
            language, text = definitions.get(type_name(str(kind)), ("", ""))
            found[int(number)] = Channel(str(name), type_name(str(kind)), str(encoding), language, text)
        return found
