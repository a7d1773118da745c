"""ROS 1 bags (.bag), read by the package rosbags."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lgsim.identify.logs.raw_messages import Channel, Damage, RawMessage, Wanted, type_name
from lgsim.support.packages import package
from lgsim.support.reading.file_faults import short

MAGIC = b"#ROSBAG V2.0"


class Ros1Bag:
    """The messages of a ROS 1 bag.

    Args:
        wanted: Selects the channels to read.
    """

    def __init__(self, path: Path, wanted: Wanted) -> None:
        self.path, self._wanted, self._reader = path, wanted, package("rosbags.rosbag1", "logs", "a ROS 1 bag").Reader

    def messages(self) -> Iterator[RawMessage | Damage]:
        """Iterate over the wanted messages in the order of recording, up to the first damage."""
        number = 0
        try:
            with self._reader(self.path) as bag:
                channels = {one.id: Channel(one.topic, type_name(one.msgtype), "ros1", "ros1msg", one.msgdef.data)
                            for one in bag.connections}  # fmt: skip
                wanted = [one for one in bag.connections if self._wanted(channels[one.id])]
                for one, log_time, data in bag.messages(wanted) if wanted else ():
                    number += 1
                    yield RawMessage(channels[one.id], log_time, data, f"message {number}")
        except Exception as error:  # any exception that rosbags raises for damaged bytes
            yield Damage(f"message {number + 1}", f"{short(error)}; the remaining messages are skipped", True)
