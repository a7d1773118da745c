"""ROS 2 bags in sqlite files (.db3), read without their metadata."""

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
_ZSTD = b"\x28\xb5\x2f\xfd"  # magic number of a compressed message; one in CDR begins with 0
_LARGEST = 2**30  # bytes of one message
_FAULTS = (sqlite3.Error, OverflowError, MemoryError, UnicodeDecodeError)
_RECOVER = "`.recover` of the program sqlite3 writes a valid database of the readable part"
_TABLES = ("topics", "messages", "message_definitions")
_PLAIN = ("CREATE TABLE ", "CREATE INDEX ", "CREATE UNIQUE INDEX ", "CREATE TRIGGER ")
_COMPUTED = (2, 3)  # values of such columns in table_xinfo
# steps of sqlite's bytecode: a row takes about twenty of them and at least eight bytes
_STEPS, _WORK, _LEAST_WORK = 10_000, 100, 5 * 10**7


class SqliteBag:
    """The messages of one file of a bag.

    Args:
        wanted: Selects the channels to read.
    """

    def __init__(self, path: Path, wanted: Wanted) -> None:
        self.path, self._wanted, self._exhausted = path, wanted, False

    def messages(self) -> Iterator[RawMessage | Damage]:
        """Iterate over the wanted messages in the order of their ids, and over damages."""
        try:
            # a log is opened read-only, and another program may still hold its lock
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
        """Check that the database consists of plain tables: rows of a view or a computed column may be unlimited.

        Raises:
            ValueError: it contains something else.
        """
        try:
            base.execute("PRAGMA trusted_schema = OFF").fetchall()
            rows = base.execute("SELECT name, sql FROM sqlite_master").fetchall()
            columns = [row for name in _TABLES for row in base.execute(f"PRAGMA table_xinfo({name})")]
        except _FAULTS:
            return  # damaged: the list of topics cannot be read either
        for name, statement in rows:
            # sqlite stores this prefix, whoever wrote the statement
            if statement is not None and not str(statement).startswith(_PLAIN):
                what = " ".join(str(statement).split())[:60]
                raise ValueError(
                    f"{self.path}: {str(name)[:60]}: expected the tables of a ROS 2 bag, got {what!r}; views and"
                    " virtual tables are not read, since their number of rows may be unlimited"
                )
        for column in columns:
            if column[6] in _COMPUTED:
                raise ValueError(
                    f"{self.path}: {str(column[1])[:60]}: expected a column of a ROS 2 bag, got a computed one"
                )

    def _limit_work(self, base: Any, size: int) -> None:
        """Abort queries that take far more steps than a file of that size requires."""
        left = [_LEAST_WORK + _WORK * size]

        def used_up() -> bool:
            left[0] -= _STEPS
            self._exhausted = left[0] < 0
            return self._exhausted

        base.set_progress_handler(used_up, _STEPS)

    def _read(self, base: Any) -> Iterator[RawMessage | Damage]:
        """Iterate over the messages up to the first unreadable page of the database."""
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
            left = "the remaining messages are skipped"
            yield Damage(f"message {last + 1}", f"{what}; {left}" + ("" if self._exhausted else f": {_RECOVER}"), True)

    def _message(self, channel: Channel, number: int, log_time: object, data: object) -> RawMessage | Damage:
        where = f"message {number}"
        if not isinstance(data, bytes) or not isinstance(log_time, int):
            return Damage(where, "a message has no bytes or no time; it is skipped")
        if data[:4] != _ZSTD:
            return RawMessage(channel, log_time, data, where)
        try:
            plain = unzstd(data, min(_LARGEST, size_limit()))
        except ModuleNotFoundError:
            raise
        except Exception as error:  # exceptions of the package
            return Damage(where, f"a message cannot be decompressed ({error}); it is skipped")
        return RawMessage(channel, log_time, plain, where)

    def _channels(self, base: Any) -> dict[int, Channel]:
        """The topics by id, with their definitions if the bag has them."""
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
