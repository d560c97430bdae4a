"""Python runs this at its start: the clock of the process is off by the number in the file CHAOS_CLOCK, which may change at any time."""

import mmap
import os
import struct
import time

_real = time.time
_file = os.open(os.environ["CHAOS_CLOCK"], os.O_RDONLY)
_offset = mmap.mmap(_file, 8, access=mmap.ACCESS_READ)


def stepped_time() -> float:
    return _real() + float(struct.unpack_from("d", _offset)[0])


time.time = stepped_time
