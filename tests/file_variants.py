"""Damaged and hostile variants of files, for tests of readers: the same number gives the same variant."""

from __future__ import annotations

import copy
import io
import json
import random
import re
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

NUMBERS = (
    "-5", "0", "0.5", "-1e308", "1e308", "1e400", "1e-320", "Infinity", "inf", "-inf", "NaN", "nan", "2147483648",
    "99999999999999999999", "9" * 5000, "0x10", "1_0", "٣", "", "true", "null", '"x"', "[]", "{}",
)  # fmt: skip
"""What takes the place of a number in a text."""

VALUES = (
    -5, 0, 1, 0.5, 2**31, 10**20, 10**300, float("inf"), float("-inf"), float("nan"), 1e308, None, True, "", "x",
    "\ud800", "a\0b", "n" * 5000, [], {}, [[]], [-5], ["x"], {"kind": "x"}, {"x": {}},
)  # fmt: skip
"""What takes the place of a value in a tree of JSON."""

DEPTH = 3000
"""More of each other than Python's stack has room for."""


def mutate(name: str, data: bytes, seed: str) -> bytes:
    """A variant of a file's content.

    Args:
        name: The file's name, whose ending says what can be changed in it besides its bytes.
        data: The content of a valid file.
        seed: Variants of different seeds differ; those of one do not.
    """
    rng = random.Random(seed)
    change = BY_ENDING.get(Path(name).suffix, mutate_text)
    return mutate_bytes(data, rng) if rng.random() < 0.25 else change(data, rng)


def mutate_bytes(data: bytes, rng: random.Random) -> bytes:
    """Bytes flipped, cut, doubled, inserted or zeroed, once to four times."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        a, b = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        b = min(b, a + rng.choice((1, 4, 16, 256, len(data))))
        data = rng.choice((
            lambda a=a, b=b, d=data: d[:a] + bytes([rng.randrange(256)]) + d[a + 1 :],
            lambda a=a, b=b, d=data: d[:a] + bytes([(d[a : a + 1] or b"x")[0] ^ (1 << rng.randrange(8))]) + d[a + 1 :],
            lambda a=a, b=b, d=data: d[:a],
            lambda a=a, b=b, d=data: d[:a] + d[b:],
            lambda a=a, b=b, d=data: d[:b] + d[a:b] + d[b:],
            lambda a=a, b=b, d=data: d[:a] + rng.randbytes(rng.choice((1, 8, 100))) + d[a:],
            lambda a=a, b=b, d=data: d[:a] + bytes(b - a) + d[b:],
            lambda a=a, b=b, d=data: d[:a] + b"\xff" * (b - a) + d[b:],
        ))()  # fmt: skip
    return data


def mutate_text(data: bytes, rng: random.Random) -> bytes:
    """Numbers, words and lines of a text changed, once to three times."""
    text = data.decode("utf-8", "surrogateescape")
    for _ in range(rng.choice((1, 1, 2, 3))):
        text = rng.choice(TEXT_CHANGES)(text, rng)
    return text.encode("utf-8", "surrogateescape")


def _number(text: str, rng: random.Random) -> str:
    return _replaced(text, r"-?\d+\.?\d*(?:[eE][+-]?\d+)?", rng.choice(NUMBERS), rng)


def _word(text: str, rng: random.Random) -> str:
    return _replaced(text, r"\w+", rng.choice(("", "n" * 5000, "a\0b", "\x1b[2J", "*/", "x y", "é", "-5")), rng)


def _other_word(text: str, rng: random.Random) -> str:
    words = re.findall(r"\w+", text)
    return _replaced(text, r"\w+", rng.choice(words or [""]), rng)


def _replaced(text: str, pattern: str, new: str, rng: random.Random) -> str:
    found = list(re.finditer(pattern, text))
    if not found:
        return text + new
    match = rng.choice(found)
    return text[: match.start()] + new + text[match.end() :]


def _line(text: str, rng: random.Random) -> str:
    lines = text.splitlines(keepends=True) or [""]
    i = rng.randrange(len(lines))
    change = rng.randrange(4)
    if change == 0:
        del lines[i]
    elif change == 1:
        lines.insert(rng.randrange(len(lines) + 1), lines[i])
    elif change == 2:
        lines[i : i + 1] = [lines[i]] * 50
    else:
        lines[i] = lines[i][: rng.randrange(len(lines[i]) + 1)]
    return "".join(lines)


def _junk(text: str, rng: random.Random) -> str:
    at = rng.randrange(len(text) + 1)
    junk = rng.choice(("\0", "\n" * 2000, '"', "'", "]", "}", "<", ">", "&#10;", "&", "\ufffe", "="))
    return text[:at] + junk + text[at:]


def _nested(text: str, rng: random.Random) -> str:
    opening, closing = rng.choice((("[", "]"), ("{a=", "}"), ("<a>", "</a>"), ('{"a":', "}"), ("(", ")"), ("a.", "")))
    at = rng.choice([m.end() for m in re.finditer(r"[\s=:,>\"]", text)] or [0])
    count = rng.choice((50, DEPTH, 10 * DEPTH))
    inner = rng.choice(("", "1"))
    return text[:at] + opening * count + inner + closing * rng.choice((0, count)) + text[at:]


TEXT_CHANGES = (_number, _number, _number, _word, _other_word, _line, _line, _junk, _nested)


def mutate_json(data: bytes, rng: random.Random) -> bytes:
    """A value of a tree of JSON changed, or its text."""
    if rng.random() < 0.2:
        return mutate_text(data, rng)
    return mutated_tree(data.decode(), rng).encode("utf-8", "surrogatepass")


def mutated_tree(text: str, rng: random.Random) -> str:
    """JSON with a key dropped, renamed or doubled, or with another value; JSON within its texts too."""
    try:
        tree = json.loads(text)
    except ValueError:  # a text that only begins like JSON
        return mutate_text(text.encode(), rng).decode("utf-8", "replace")
    for _ in range(rng.choice((1, 1, 2))):
        tree = _changed(tree, rng)
    if rng.random() < 0.05:
        return "[" * DEPTH + json.dumps(tree)
    return json.dumps(tree)


def _changed(tree: object, rng: random.Random) -> object:
    if isinstance(tree, str) and tree.startswith("{") and rng.random() < 0.95:
        return mutated_tree(tree, rng)
    if not isinstance(tree, dict | list) or not tree or rng.random() < 0.05:
        if rng.random() < 0.1:
            deep: object = 1
            for _ in range(200):
                deep = [deep]
            return deep
        return copy.deepcopy(rng.choice(VALUES))
    key = rng.choice(list(tree)) if isinstance(tree, dict) else rng.randrange(len(tree))
    change = rng.random()
    if change < 0.1:
        del tree[key]  # pyright: ignore
    elif change < 0.15 and isinstance(tree, dict):
        tree[rng.choice(("x", "", "kind", "n" * 5000))] = tree.pop(key)
    elif change < 0.2 and isinstance(tree, list):
        tree[key:key] = [tree[key]] * rng.choice((1, 100))
    else:
        tree[key] = _changed(tree[key], rng)  # pyright: ignore
    return tree


def mutate_zip(data: bytes, rng: random.Random) -> bytes:
    """A member of an archive dropped, doubled, renamed or changed; its checksum is right again."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name, change = rng.choice(list(members)), rng.random()
    if "about.npy" in members and rng.random() < 0.4:
        name, change = "about.npy", 0.9
    if change < 0.08:
        del members[name]
    elif change < 0.16:
        other = rng.choice(("x", "../x.npy", "a/b.npy", "about.npy", "x" * 5000 + ".npy", *members))
        members[other] = members.pop(name)
    elif change < 0.3:
        members[name] = mutate_bytes(members[name], rng)
    elif change < 0.5:
        members[name] = _other_header(members[name], rng)
    elif change < 0.7 or name != "about.npy":
        members[name] = _npy(rng.choice(_arrays(members[name], rng)))
    else:
        members[name] = _npy(np.array(mutated_tree(str(np.load(io.BytesIO(members[name]))), rng)))
    out, compression = io.BytesIO(), rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2))
    with zipfile.ZipFile(out, "w", compression) as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return out.getvalue()


def _arrays(content: bytes, rng: random.Random) -> list[np.ndarray]:
    """Arrays of other shapes, types and numbers than that of a member."""
    try:
        own = np.load(io.BytesIO(content))
    except ValueError:
        own = np.zeros(3)
    made = [np.zeros(0), np.zeros(()), np.zeros((2, 3, 4)), np.array("x"), np.array(["x", "y"]), np.array(b"\xff\xfe"),
            np.array([1 + 2j]), np.array([True]), np.array([2**63 - 1]), np.zeros((1, 0, 5)), np.array("[" * DEPTH),
            own.ravel(), own[..., None], np.zeros(2, [("a", "<f8"), ("b", "<i4")]),
            np.array(["2020-01-01"], "M8[D]")]  # fmt: skip
    if own.dtype.kind in "fiu":
        value = rng.choice((np.nan, np.inf, -np.inf, -5.0, 1e308, 0.0))
        made += 3 * [np.full(own.shape, value), np.where(np.arange(own.size).reshape(own.shape) == 0, value, own)]
        made += [own.astype(np.float32), np.round(np.nan_to_num(own)).clip(-5, 5).astype(np.int64), own.astype(str)]
        made += [own[:-1] if own.ndim else own, np.concatenate([own, own]) if own.ndim else own, own.T]
    return made


def _other_header(content: bytes, rng: random.Random) -> bytes:
    """A member whose header says another type, shape or anything."""
    length = int.from_bytes(content[8:10], "little")
    header, rest = content[10 : 10 + length].decode("latin1"), content[10 + length :]
    made = (
        lambda: re.sub(r"'shape': \([^)]*\)", f"'shape': {rng.choice(SHAPES)}", header),
        lambda: re.sub(r"'descr': '[^']*'", f"'descr': {rng.choice(DTYPES)}", header),
        lambda: mutate_text(header.encode(), rng).decode("utf-8", "replace"),
        lambda: "(" * rng.choice((100, DEPTH)),
        lambda: "-" * DEPTH + "1",
        lambda: "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 2)}",
    )
    text = rng.choice(made)().encode("utf-8", "replace")[:65000]
    version = rng.choice((b"\x01\x00", b"\x01\x00", b"\x02\x00", b"\x03\x00", b"\x09\x00"))
    size = len(text).to_bytes(2 if version == b"\x01\x00" else 4, "little")
    return b"\x93NUMPY" + version + size + text + rest


SHAPES = (
    "(-5,)", "(1e3,)", "(10**9,)", "(1000000000000,)", "(3, -1)", "(0, 1000000000000)", "()", "(True,)", "5", "(2, 2)",
    "(" + "1, " * 100 + ")", "(99999999999999999999,)", "('x',)", "None",
)  # fmt: skip
DTYPES = (
    "'|O'", "'<f2'", "'>f8'", "'<U1000000000'", "'|V0'", "'<U0'", "'|S0'", "[('a', '<f8')]", "('<f8', (1000000000,))",
    "'x'", "None", "'<c16'", "'<M8[s]'", "[('a', '|O')]", "'|b1'", "'<i8'", "5", "''",
)  # fmt: skip


def _npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, np.asanyarray(array), allow_pickle=False)
    return out.getvalue()


def mutate_parquet(data: bytes, rng: random.Random) -> bytes:
    """A table with a column dropped, renamed or of another type, or with other metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(io.BytesIO(data))
    metadata = dict(table.schema.metadata or {})
    if metadata and rng.random() < 0.6:
        key = rng.choice(list(metadata))
        if rng.random() < 0.1:
            del metadata[key]
        elif metadata[key].startswith(b"{"):
            metadata[key] = mutate_json(metadata[key], rng)
        else:
            metadata[key] = mutate_bytes(metadata[key], rng)
    else:
        i, n = rng.randrange(table.num_columns), table.num_rows
        name, change = table.column_names[i], rng.random()
        if change < 0.15:
            table = table.remove_column(i)
        elif change < 0.3:
            table = table.append_column(rng.choice((name, "x", "", "q x", "\x1b[2J")), table.column(i))
        elif change < 0.4:
            table = table.slice(0, rng.choice((0, 1, n)))
        else:
            value = rng.choice((np.nan, np.inf, -5.0, 1e308, None, "x", b"\xff", [1.0], [], {"a": 1}, True, 2**62))
            made = [pa.array([value] * n), pa.nulls(n), pa.array(["x"] * n).dictionary_encode(),
                    pa.array([[1.0] * (k % 3) for k in range(n)]), pa.array([str(k) for k in range(n)])]  # fmt: skip
            table = table.set_column(i, name, rng.choice(made))
    out = io.BytesIO()
    pq.write_table(
        table.replace_schema_metadata(metadata), out, row_group_size=rng.choice((5, 1000)),
        use_dictionary=rng.random() < 0.5, compression=rng.choice(("none", "snappy", "zstd")),
    )  # fmt: skip
    return out.getvalue()


def mutate_sqlite(data: bytes, rng: random.Random) -> bytes:
    """A database with other values, columns or tables, by its own statements."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.db3"
        path.write_bytes(data)
        base = sqlite3.connect(path)
        try:
            for _ in range(rng.choice((1, 1, 3))):
                table = rng.choice(("messages", "messages", "messages", "topics"))
                columns = [row[1] for row in base.execute(f"PRAGMA table_info({table})")]
                column = rng.choice(columns)
                count = base.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                row = rng.randrange(max(count, 1))
                which = rng.choice(("", f" WHERE rowid IN (SELECT rowid FROM {table} LIMIT 1 OFFSET {row})"))
                value = rng.choice((None, -5, 2**63 - 1, -(2**63), 1e308, "x", "", b"", b"\xff" * 100, 0))
                if column == "data" and rng.random() < 0.7:
                    found = base.execute(f"SELECT data FROM messages LIMIT 1 OFFSET {row}").fetchone()
                    value = mutate_bytes(found[0], rng) if found and isinstance(found[0], bytes) else value
                try:
                    base.execute(f"UPDATE {table} SET {column} = ?{which}", (value,))
                except sqlite3.Error:
                    base.execute(f"DROP TABLE {table}")
                    break
            base.commit()
        except sqlite3.Error:
            pass
        finally:
            base.close()
        return path.read_bytes()


BY_ENDING: dict[str, Callable[[bytes, random.Random], bytes]] = {
    ".npz": mutate_zip,
    ".parquet": mutate_parquet,
    ".db3": mutate_sqlite,
    ".json": mutate_json,
    ".mcap": mutate_bytes,
    ".bag": mutate_bytes,
    ".mat": mutate_bytes,
    ".STL": mutate_bytes,
}
"""What changes more of a file than its bytes, by endings; all other files are texts."""
