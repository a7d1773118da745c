"""Compressed parts of logs, unpacked to no more bytes than they may have."""

from __future__ import annotations

from lgsim.support.packages import package


def unzstd(data: bytes, most: int) -> bytes:
    """The bytes of a whole frame of zstd, ``most`` at most.

    Raises:
        ValueError: it says, or has, more.
        ModuleNotFoundError: zstandard is missing.
        Exception: it is damaged: zstandard's own error.
    """
    zstd = package("zstandard", "logs")
    # zstandard makes room for the size that a frame says, whatever limit it is given
    said = zstd.get_frame_parameters(data).content_size
    if said not in (zstd.CONTENTSIZE_UNKNOWN, zstd.CONTENTSIZE_ERROR) and said > most:
        raise ValueError(f"{said} bytes, expected at most {most}")
    return zstd.ZstdDecompressor().decompress(data, max_output_size=most)


def unlz4(data: bytes, most: int) -> bytes:
    """The bytes of a whole frame of lz4, ``most`` at most.

    Raises:
        ValueError: it has more than ``most``, or ends too early.
        ModuleNotFoundError: lz4 is missing.
        Exception: it is damaged: lz4's own error.
    """
    frame = package("lz4.frame", "logs").LZ4FrameDecompressor()
    out = frame.decompress(data, max_length=most + 1)
    if len(out) > most:
        raise ValueError(f"more than {most} bytes")
    if not frame.eof:
        raise ValueError("the frame is not whole")
    return out
