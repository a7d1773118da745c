"""MCAP files, chunk by chunk: https://mcap.dev/spec.

A complete file is read by the index at its end, so that chunks without a wanted topic are skipped. Without the index
its records are read sequentially, up to the point where the file is truncated or damaged.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import IO, Any, NamedTuple

from lgsim.identify.logs.decompression import unlz4, unzstd
from lgsim.identify.logs.raw_messages import Channel, Damage, RawMessage, Wanted, type_name
from lgsim.support.packages import package
from lgsim.support.reading.size_limits import FileSizeError, check_size

MAGIC = b"\x89MCAP0\r\n"
_HEADER, _FOOTER, _SCHEMA, _CHANNEL, _MESSAGE, _CHUNK = 1, 2, 3, 4, 5, 6
_CHUNK_INDEX, _STATISTICS, _DATA_END = 8, 11, 15
_KNOWN = range(1, 16)
_PRIVATE = 0x80  # opcodes from here on are private, and skipped
_FRAME = struct.Struct("<BQ")  # opcode and length of a record
_FOOTER_BYTES = _FRAME.size + 20 + len(MAGIC)
_CHUNK_HEAD = struct.Struct("<QQQII")  # first and last time, size, checksum, length of the compression's name
_MESSAGE_HEAD = struct.Struct("<HIQQ")  # channel, sequence, log time, publish time
_LARGEST = 2**31  # bytes of a chunk: a larger one is a damaged length
_MOST_UNPACKED = 100  # limit on the unpacked size of all chunks together, relative to the size of the file
_FAULTS = (ValueError, struct.error, IndexError, KeyError, OverflowError, MemoryError, EOFError, RuntimeError)


class _Chunk(NamedTuple):
    """A chunk of the index: its position, its length with the frame, its channels, or None if unknown."""

    start: int
    length: int
    channels: frozenset[int] | None


class _Index(NamedTuple):
    """The index of a file: its chunks and number of messages; None if unknown."""

    chunks: list[_Chunk]
    messages: int | None
    end: int


class McapFile:
    """The messages of an MCAP file.

    Args:
        wanted: Selects the channels to read.
    """

    def __init__(self, path: Path, wanted: Wanted) -> None:
        self._records, self._errors = package("mcap.records", "logs"), package("mcap.exceptions", "logs")
        self._streams = package("mcap.data_stream", "logs")
        self.path, self._wanted = path, wanted
        self._schemas: dict[int, Any] = {}
        self._channels: dict[int, tuple[Channel, bool]] = {}
        self._size, self._unpacked = path.stat().st_size, 0

    def messages(self) -> Iterator[RawMessage | Damage]:
        """Iterate over the wanted messages in the order of the file, and over its damages."""
        with self.path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(0)
            if file.read(len(MAGIC)) != MAGIC:
                yield Damage("byte 0", "not the beginning of an MCAP file")
            index = self._index(file, size)
            if index is not None and index.chunks:
                yield from self._by_index(file, index)
            else:
                yield from self._by_walk(file, index.end if index else size, size, index is None)

    # the index

    def _index(self, file: IO[bytes], size: int) -> _Index | None:
        """The index; None if it is missing or damaged. Schemas and channels are stored."""
        if size < len(MAGIC) + _FOOTER_BYTES:
            return None
        file.seek(size - _FOOTER_BYTES)
        tail = file.read(_FOOTER_BYTES)
        opcode, length = _FRAME.unpack_from(tail)
        start, _, crc = struct.unpack_from("<QQI", tail, _FRAME.size)
        if tail[-len(MAGIC) :] != MAGIC or (opcode, length) != (_FOOTER, 20) or not 0 < start <= size - _FOOTER_BYTES:
            return None
        file.seek(start)
        summary = file.read(size - _FOOTER_BYTES - start)
        if crc and zlib.crc32(summary + tail[: _FRAME.size + 16]) != crc:
            return None
        chunks, messages = [], None
        try:
            for opcode, content, _ in _frames(summary):
                if opcode in (_SCHEMA, _CHANNEL):
                    self._declare(opcode, content)
                elif opcode == _CHUNK_INDEX:
                    entry = self._read(self._records.ChunkIndex, content)
                    ids = frozenset(entry.message_index_offsets) or None
                    chunks.append(_Chunk(entry.chunk_start_offset, entry.chunk_length, ids))
                elif opcode == _STATISTICS:
                    messages = self._read(self._records.Statistics, content).message_count
        except (*_FAULTS, self._errors.McapError):
            return None
        good = all(c.start + c.length <= start and _FRAME.size < c.length <= _LARGEST for c in chunks)
        return _Index(sorted(chunks), messages, start) if good else None

    def _by_index(self, file: IO[bytes], index: _Index) -> Iterator[RawMessage | Damage]:
        for chunk in index.chunks:
            if chunk.channels is not None and not any(self._is_wanted(i) for i in chunk.channels):
                continue
            file.seek(chunk.start)
            data = file.read(chunk.length)
            if _FRAME.unpack_from(data) != (_CHUNK, chunk.length - _FRAME.size):
                yield Damage(f"byte {chunk.start}", "the header of a chunk is damaged")
            yield from self._chunk(data[_FRAME.size :], chunk.start)

    def _is_wanted(self, channel: int) -> bool:
        """True if a channel is to be read; unknown ones count as wanted."""
        return channel not in self._channels or self._channels[channel][1]

    # without the index

    def _by_walk(self, file: IO[bytes], end: int, size: int, broken: bool) -> Iterator[RawMessage | Damage]:
        """Iterate over all records sequentially; `broken` reports that the file should have had an index."""
        at, ended = len(MAGIC), False
        while at < end:
            file.seek(at)
            frame = file.read(_FRAME.size)
            opcode, length = _FRAME.unpack(frame) if len(frame) == _FRAME.size else (0, 0)
            if opcode in (_DATA_END, _FOOTER) and length in (4, 20):
                ended = True
                break
            fits = length <= end - at - _FRAME.size and (opcode in _KNOWN or opcode >= _PRIVATE)
            if not fits or (opcode == _CHUNK and length > _LARGEST):
                what = (
                    f"a record is truncated or damaged; the {end - at} bytes from there on are skipped: `mcap recover`"
                )
                yield Damage(f"byte {at}", f"{what} of the MCAP tools writes a valid file of the readable part", True)
                return
            if opcode == _CHUNK:
                yield from self._chunk(file.read(length), at)
            elif opcode in (_SCHEMA, _CHANNEL, _MESSAGE):
                yield from self._record(opcode, file.read(length), at)
            at += _FRAME.size + length
        if broken and not ended:
            yield Damage(f"byte {size}", "the file ends without its index; it was read up to this point", True)
        elif broken:
            yield Damage(f"byte {at}", "the index at the end of the file is damaged; the messages were read without it")

    # records

    def _chunk(self, content: bytes, at: int) -> Iterator[RawMessage | Damage]:
        """Iterate over the messages of a chunk."""
        where = f"byte {at}"
        try:
            _, _, size, crc, letters = _CHUNK_HEAD.unpack_from(content)
            name = content[_CHUNK_HEAD.size : _CHUNK_HEAD.size + letters].decode() if letters < 16 else "?"
            data = content[_CHUNK_HEAD.size + letters + 8 :]
            if size > _LARGEST:
                raise ValueError(f"a chunk of {size} bytes")
            if name:
                self._count(size)
        except FileSizeError:
            raise
        except _FAULTS as error:
            yield Damage(where, f"the header of a chunk is damaged ({_short(error)}); its messages are skipped")
            return
        try:
            records = _decompressed(name, data, size)
        except ModuleNotFoundError:
            raise
        except Exception as error:  # each compression package has its own exceptions
            yield Damage(where, f"a chunk cannot be decompressed ({_short(error)}); its messages are skipped")
            return
        if crc and zlib.crc32(records) != crc:
            if name:  # one wrong bit of compressed bytes corrupts many values
                yield Damage(where, "the checksum of a chunk is wrong; its messages are skipped")
                return
            yield Damage(where, "the checksum of a chunk is wrong; it was read anyway: some of its values may be wrong")
        done = 0
        for opcode, inner, offset in _frames(records):
            done = offset + _FRAME.size + len(inner)
            yield from self._record(opcode, inner, at, offset)
        if done < len(records):
            yield Damage(f"{where}, +{done} in the chunk", "a record is damaged; the rest of the chunk is skipped")

    def _count(self, size: int) -> None:
        """Add up the unpacked sizes of chunks; a large log may exceed the limit in total.

        Raises:
            FileSizeError: a chunk exceeds the limit, or all together exceed it and what a log of that size can contain.
        """
        check_size(self.path, size, "has a chunk of")
        self._unpacked += size
        if self._unpacked > _MOST_UNPACKED * self._size:
            check_size(self.path, self._unpacked)

    def _record(self, opcode: int, content: bytes, at: int, offset: int | None = None) -> Iterator[RawMessage | Damage]:
        """The message of a record; a schema or a channel is stored."""
        where = f"byte {at}" + ("" if offset is None else f", +{offset} in the chunk")
        try:
            if opcode in (_SCHEMA, _CHANNEL):
                self._declare(opcode, content)
            elif opcode == _MESSAGE:
                number, _, log_time, _ = _MESSAGE_HEAD.unpack_from(content)
                if number not in self._channels:
                    yield Damage(where, f"a message of an unknown channel, {number}; it is skipped")
                elif self._channels[number][1]:
                    yield RawMessage(self._channels[number][0], log_time, content[_MESSAGE_HEAD.size :], where)
        except (*_FAULTS, self._errors.McapError) as error:
            yield Damage(where, f"a record is damaged ({_short(error)}); it is skipped")

    def _declare(self, opcode: int, content: bytes) -> None:
        """Store a schema or a channel; later ones with the same number are repetitions."""
        if opcode == _SCHEMA:
            schema = self._read(self._records.Schema, content)
            self._schemas.setdefault(schema.id, schema)
            return
        channel = self._read(self._records.Channel, content)
        if channel.id not in self._channels:
            schema = self._schemas.get(channel.schema_id)
            definition = "" if schema is None else schema.data.decode(errors="replace")
            name = "" if schema is None else type_name(schema.name)
            encoding = "" if schema is None else schema.encoding
            found = Channel(channel.topic, name, channel.message_encoding, encoding, definition)
            self._channels[channel.id] = found, self._wanted(found)

    def _read(self, kind: Any, content: bytes) -> Any:
        """Parse a record of the package mcap from its bytes."""
        return kind.read(self._streams.ReadDataStream(BytesIO(content)))


def _frames(data: bytes) -> Iterator[tuple[int, bytes, int]]:
    """Iterate over (opcode, content, offset) of the complete records."""
    at = 0
    while at + _FRAME.size <= len(data):
        opcode, length = _FRAME.unpack_from(data, at)
        if not (opcode in _KNOWN or opcode >= _PRIVATE) or length > len(data) - at - _FRAME.size:
            return
        yield opcode, data[at + _FRAME.size : at + _FRAME.size + length], at
        at += _FRAME.size + length


def _decompressed(name: str, data: bytes, size: int) -> bytes:
    """Decompress the records of a chunk.

    Raises:
        ValueError: the compression is unknown, or there are more than ``size`` bytes.
        ModuleNotFoundError: its package is not installed.
    """
    if name == "zstd":
        return unzstd(data, size)
    if name == "lz4":
        return unlz4(data, size)
    if name:
        raise ValueError(f"a compression {name!r}")
    return data


def _short(error: BaseException) -> str:
    """The text of an error, shortened."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text[:80]
