"""Decompression of logs with a limit on the unpacked size."""

from __future__ import annotations

from lgsim.support.packages import package


def unzstd(data: bytes, most: int) -> bytes:
    """Decompress a complete zstd frame of at most ``most`` bytes.

    Raises:
        ValueError: the declared or actual size is larger.
        ModuleNotFoundError: zstandard is not installed.
        Exception: the frame is damaged: zstandard's own error.
    """
    zstd = package("zstandard", "logs")
    # zstandard allocates the declared size of a frame, whatever limit it is given
    said = zstd.get_frame_parameters(data).content_size
    if said not in (zstd.CONTENTSIZE_UNKNOWN, zstd.CONTENTSIZE_ERROR) and said > most:
        raise ValueError(f"expected at most {most} bytes, got {said}")
    return zstd.ZstdDecompressor().decompress(data, max_output_size=most)


def unlz4(data: bytes, most: int) -> bytes:
    """Decompress a complete lz4 frame of at most ``most`` bytes.

    Raises:
        ValueError: the frame has more than ``most`` bytes, or ends too early.
        ModuleNotFoundError: lz4 is not installed.
        Exception: the frame is damaged: lz4's own error.
    """
    frame = package("lz4.frame", "logs").LZ4FrameDecompressor()
    out = frame.decompress(data, max_length=most + 1)
    if len(out) > most:
        raise ValueError(f"more than {most} bytes")
    if not frame.eof:
        raise ValueError("the frame is incomplete")
    return out
