# SPDX-License-Identifier: Apache-2.0
"""A program: relays TCP connections to a server, delays every byte in both directions, and limits
the rate of each direction, that of all connections together.

    python3 relay.py HOST:PORT MILLISECONDS [BYTES_PER_SECOND]

Listens on a free loopback port, prints it, and runs until its standard input ends, so that it ends
with the program that started it. One thread: bytes that were read are queued with the time at which
they may be written. A direction queues up to HELD bytes, enough that the delay does not limit the
rate, and then stops reading.
"""
import selectors
import socket
import sys
import time
from collections import deque

CHUNK = 1 << 18
HELD = 64 << 20  # bytes that a direction may hold


class Link:
    """One direction of all connections. `rate` in bytes per second; 0: unlimited."""

    def __init__(self, delay, rate):
        self.delay, self.rate = delay, rate
        self.free = 0.0       # when it has passed on all bytes that were read

    def arrival(self, size):
        """When bytes that are read now may be written."""
        self.free = max(self.free, time.monotonic()) + (size / self.rate if self.rate else 0)
        return self.free + self.delay


class Direction:
    """Bytes on their way from one socket to another."""

    def __init__(self, source, target, link):
        self.source, self.target, self.link = source, target, link
        self.queue = deque()  # (when, bytes)
        self.held = 0
        self.ended = False

    def reads(self):
        return not self.ended and self.held < HELD

    def due(self, now):
        return bool(self.queue) and self.queue[0][0] <= now

    def read(self):
        try:
            data = self.source.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self.ended = not data
        self.held += len(data)
        self.queue.append((self.link.arrival(len(data)), memoryview(data)))

    def write(self, now):
        """Writes bytes that are due. False at the end of the source, or if the target is closed."""
        while self.due(now):
            when, data = self.queue[0]
            if not data:
                return False
            try:
                sent = self.target.send(data)
            except BlockingIOError:
                return True
            except OSError:
                return False
            self.held -= sent
            if sent < len(data):
                self.queue[0] = (when, data[sent:])
                return True
            self.queue.popleft()
        return True


class Relay:
    def __init__(self, address, delay, rate):
        self.address = address
        self.there, self.back = Link(delay, rate), Link(delay, rate)
        self.selector = selectors.DefaultSelector()
        self.directions = []
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.listener.setblocking(False)
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.selector.register(sys.stdin, selectors.EVENT_READ)

    def accept(self):
        near, _ = self.listener.accept()
        try:
            far = socket.create_connection(self.address)
        except OSError:
            near.close()
            return
        for one in (near, far):
            one.setblocking(False)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.directions += [Direction(near, far, self.there), Direction(far, near, self.back)]

    def hang_up(self, direction):
        """Closes both directions of a connection."""
        pair = {direction.source, direction.target}
        for one in pair:
            if one in self.selector.get_map():
                self.selector.unregister(one)
            one.close()
        self.directions = [d for d in self.directions if d.source not in pair]

    def watch(self, now):
        """Registers each socket for the events it needs. Returns when the next bytes are due."""
        needed, soonest = {}, None
        for direction in self.directions:
            if direction.reads():
                needed[direction.source] = needed.get(direction.source, 0) | selectors.EVENT_READ
            if direction.due(now):
                needed[direction.target] = needed.get(direction.target, 0) | selectors.EVENT_WRITE
            elif direction.queue:
                when = direction.queue[0][0]
                soonest = when if soonest is None else min(soonest, when)
        known = self.selector.get_map()
        for one in {s for d in self.directions for s in (d.source, d.target)}:
            events = needed.get(one, 0)
            if one in known:
                if not events:
                    self.selector.unregister(one)
                elif known[one].events != events:
                    self.selector.modify(one, events)
            elif events:
                self.selector.register(one, events)
        return soonest

    def run(self):
        while True:
            now = time.monotonic()
            soonest = self.watch(now)
            timeout = None if soonest is None else max(soonest - now, 0)
            ready = {key.fileobj: events for key, events in self.selector.select(timeout)}
            if sys.stdin in ready:
                return
            if self.listener in ready:
                self.accept()
            now = time.monotonic()
            for direction in list(self.directions):
                if direction not in self.directions:
                    continue
                if ready.get(direction.source, 0) & selectors.EVENT_READ and direction.reads():
                    direction.read()
                if not direction.write(now):
                    self.hang_up(direction)


def main():
    host, _, port = sys.argv[1].rpartition(":")
    rate = float(sys.argv[3]) if len(sys.argv) > 3 else 0
    relay = Relay((host, int(port)), float(sys.argv[2]) / 1000, rate)
    print(relay.listener.getsockname()[1], flush=True)
    relay.run()


if __name__ == "__main__":
    main()
