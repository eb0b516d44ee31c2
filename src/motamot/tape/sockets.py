"""What asyncio does not offer of TCP: knowing that everything has arrived, and a reset on close."""

from __future__ import annotations

import asyncio
import fcntl
import socket
import struct
import sys
import termios
import time
from typing import Any

__all__ = ["all_delivered", "reset_on_close"]

_SO_NWRITE = 0x1024  # macOS <sys/socket.h>: bytes not yet acknowledged
_LOOK_SECONDS = 0.001
_PLATFORM: str = sys.platform


def reset_on_close(transport: asyncio.WriteTransport) -> None:
    """Make the next close of this connection a TCP reset: linger on, for no time (RFC 9293 3.10.5, ABORT)."""
    sock: Any = transport.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


async def all_delivered(transport: asyncio.WriteTransport, seconds: float) -> None:
    """Wait until the peer's machine has everything that was written, `seconds` at most.

    A reset throws away what the sending side still holds: without this a script's last words would be lost at random.
    """
    until = time.monotonic() + seconds
    while _undelivered(transport) and time.monotonic() < until and not transport.is_closing():  # noqa: ASYNC110
        await asyncio.sleep(_LOOK_SECONDS)
    if _PLATFORM != "linux":
        await asyncio.sleep(0.02)  # elsewhere a reset also discards what the peer has received and not yet read


def _undelivered(transport: asyncio.WriteTransport) -> int:
    held = transport.get_write_buffer_size()
    sock: Any = transport.get_extra_info("socket")
    if held or sock is None:
        return held
    if _PLATFORM == "linux":
        # SIOCOUTQ has the number of TIOCOUTQ: bytes not yet acknowledged (tcp(7)).
        return int(struct.unpack("i", fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, b"\0\0\0\0"))[0])
    if _PLATFORM == "darwin":
        return int(sock.getsockopt(socket.SOL_SOCKET, _SO_NWRITE))
    return 0
