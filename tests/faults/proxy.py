# SPDX-License-Identifier: Apache-2.0
"""A proxy that stands between the loader and a server, and does to their messages what networks do.

    proxy = Proxy(port_of_the_server)
    proxy.on_batch(5, cut_request(100))       # the fifth batch breaks off after 100 bytes
    proxy.on_batch(9, call(server.kill))      # before the ninth one, this happens
    ... load through proxy.port ...
    proxy.close()

Faults strike batches (inserts into the collection that is named) or commands of any kind, counted
over all connections in the order of their arrival, one that is sent again counting again: so the
same load meets the same fault at the same place, however fast the machine is. Greetings (hello) are
not counted, since drivers exchange them by the clock.

Each connection has two threads, one for each direction, since servers may speak unasked. A fault
that concerns a reply is noted under the number of its request before the request goes on, and is
looked up by the other thread when the reply with that number comes. A fault that ends a connection
shuts both its sockets down; both threads then end by themselves. Nothing but the counters and the
tables of faults and connections is shared, and `lock` guards them; it is not held while an action
runs.
"""
import socket
import struct
import threading

from support import bson

HOST = "127.0.0.1"
HEADER = 16
OP_MSG = 2013


class Action:
    """What is to happen to one batch. `before` runs before it goes on; `cut` bytes of it go on
    (None: all of it), and then `after` runs; of its reply, `reply_cut` bytes (None: all) go back,
    after `hold` has been set. `lost`: nothing goes back, and the connection stays open. `change`: a
    function from the reply, as a dictionary or as bytes, to the one that goes back. `swallow`: the
    batch never arrives, and `change` gets the answer {"ok": 1, "n": 0}."""

    def __init__(self, before=None, cut=None, reply_cut=None, after=None, hold=None, lost=False,
                 change=None, swallow=False):
        self.before, self.cut, self.reply_cut, self.after = before, cut, reply_cut, after
        self.hold, self.lost, self.change, self.swallow = hold, lost, change, swallow
        self.struck = threading.Event()      # set when the batch has come


def call(function):
    """Before the batch goes on."""
    return Action(before=function)


def call_after(function):
    """As soon as the batch has gone to the server, which may have done any part of it by then."""
    return Action(after=function)


def cut_request(count, before=None):
    """The connection breaks after so many bytes of the batch."""
    return Action(cut=count, before=before)


def cut_reply(count):
    """The batch arrives; the connection breaks after so many bytes of the answer."""
    return Action(reply_cut=count)


def lose_request():
    """The batch never arrives, and nobody says so: the connection stays open."""
    return Action(lost=True, cut=0)


def lose_reply():
    """The batch arrives, the answer does not, and the connection stays open."""
    return Action(lost=True)


def delay_reply(event):
    """The answer waits for the event."""
    return Action(hold=event)


def change_reply(function):
    """The batch arrives; of its answer, a dictionary, the function makes another one, or bytes."""
    return Action(change=function)


def answer(function):
    """The batch never arrives; the function makes an answer of {"ok": 1, "n": 0}."""
    return Action(change=function, swallow=True)


BODY = HEADER + 5             # where the body begins: behind the flags and the kind of section


def body_of(message):
    """The first section of a message, as a dictionary."""
    length = struct.unpack_from("<i", message, BODY)[0]
    return bson.decode(message[BODY:BODY + length])


def documents_of(message):
    """The documents of an insert, which are its second section."""
    at = BODY + struct.unpack_from("<i", message, BODY)[0]
    if at == len(message):
        return []
    end = at + 1 + struct.unpack_from("<i", message, at + 1)[0]
    at = message.index(b"\0", at + 5) + 1
    return bson.decode_all(message[at:end])


def reply_with(request, body):
    """A message that answers the request with the body, a dictionary or its bytes."""
    body = body if isinstance(body, bytes) else bson.encode(body)
    number = struct.unpack_from("<i", request, 4)[0]
    return struct.pack("<iiiiIB", BODY + len(body), number, number, OP_MSG, 0, 0) + body


def command_of(message):
    """The name of the command and its first value, as they stand in the message; None for messages
    of the old kind. The command comes first, then its documents."""
    if struct.unpack_from("<i", message, 12)[0] != OP_MSG or message[20] != 0:
        return None, None
    end = message.index(b"\0", 26)
    return message[26:end].decode(), message[end + 1:]


def collection_of(value):
    """The name that is the first value of a command."""
    return value[4:value.index(b"\0", 4)].decode()


def unknown_command(name):
    """A change of requests: commands of this name reach the server as one that it does not know, so
    that it refuses them and does nothing."""
    def change(message):
        if command_of(message)[0] != name:
            return message
        return message[:26] + name[:-1].encode() + b"?" + message[26 + len(name):]
    return change


def receive(side, count):
    """Exactly so many bytes, or None when the other end is gone."""
    parts = bytearray()
    while len(parts) < count:
        try:
            part = side.recv(min(1 << 20, count - len(parts)))
        except OSError:
            return None
        if not part:
            return None
        parts += part
    return bytes(parts)


def receive_message(side):
    head = receive(side, HEADER)
    if head is None:
        return None
    rest = receive(side, struct.unpack_from("<i", head)[0] - HEADER)
    return None if rest is None else head + rest


class Link:
    """One connection through the proxy."""

    def __init__(self, proxy, client):
        self.proxy, self.client = proxy, client
        self.server = socket.create_connection((HOST, proxy.target))
        self.replies = {}                    # request number -> action
        for side in (self.client, self.server):
            side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.threads = [threading.Thread(target=self.guard, args=[work], daemon=True)
                        for work in (self.requests, self.answers)]
        for thread in self.threads:
            thread.start()

    def guard(self, work):
        try:
            work()
        except OSError:
            pass                             # one end is gone: so is the other one
        finally:
            self.cut()

    def cut(self):
        for side in (self.client, self.server):
            try:
                side.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def requests(self):
        while (message := receive_message(self.client)) is not None:
            message = self.proxy.change_request(message)
            self.proxy.observe(self, "request", message)
            action = self.proxy.action_for(message)
            if action is None:
                self.server.sendall(message)
                continue
            if action.before:
                action.before()
            if action.swallow:
                self.client.sendall(reply_with(message, action.change({"n": 0, "ok": 1.0})))
                action.struck.set()
                continue
            self.replies[struct.unpack_from("<i", message, 4)[0]] = action
            self.server.sendall(message[:action.cut])
            action.struck.set()
            if action.after:
                action.after()
            if action.cut is not None and not action.lost:
                return

    def answers(self):
        while (message := receive_message(self.server)) is not None:
            message = self.proxy.change(message)
            self.proxy.observe(self, "reply", message)
            action = self.replies.pop(struct.unpack_from("<i", message, 8)[0], None)
            if action is not None:
                if action.hold:
                    action.hold.wait()
                if action.lost:
                    continue
                if action.reply_cut is not None:
                    self.client.sendall(message[:action.reply_cut])
                    return
                if action.change:
                    request = message[:4] + message[8:12]
                    message = reply_with(request, action.change(body_of(message)))
            self.client.sendall(message)

    def close(self):
        self.cut()
        for thread in self.threads:
            thread.join()
        self.client.close()
        self.server.close()


class Proxy:
    def __init__(self, target, collection="t"):
        """`collection`: the name of the one whose batches count, or a function that tells it."""
        self.target = target
        self.is_counted = collection if callable(collection) else collection.__eq__
        self.change = lambda message: message    # of every reply; must keep its length
        self.seen = None                     # a list: every message but greetings is kept
        self.always = None                   # the action for batches that have none of their own
        self.observe = lambda link, kind, message: None   # every request and reply, before it goes on
        self.change_request = lambda message: message    # of every request, likewise
        self.lock = threading.Lock()
        self.faults, self.links = {}, []     # faults: (kind, number) -> action
        self.counts = {"batch": 0, "command": 0}
        self.port = 0
        self.listener = None
        self.accept()

    def accept(self):
        """Takes connections: from the beginning, and again after refuse()."""
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind((HOST, self.port))
        self.port = self.listener.getsockname()[1]
        self.listener.listen(64)
        self.acceptor = threading.Thread(target=self.take, args=[self.listener], daemon=True)
        self.acceptor.start()

    def take(self, listener):
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            try:
                link = Link(self, client)
            except OSError:                  # the server refuses: so does the proxy
                client.close()
                continue
            with self.lock:
                self.links.append(link)

    def refuse(self):
        """No new connections, until accept() is called."""
        if self.listener:
            self.listener.shutdown(socket.SHUT_RDWR)
            self.acceptor.join()
            self.listener.close()
            self.listener = None

    def cut_all(self):
        """Every connection breaks, at whatever place it is."""
        with self.lock:
            links = list(self.links)
        for link in links:
            link.cut()

    @property
    def batches(self):
        """How many have come so far."""
        return self.counts["batch"]

    def on_batch(self, number, action):
        """The number-th batch from now on meets this. Returns the action."""
        return self.on("batch", number, action)

    def on_command(self, number, action):
        return self.on("command", number, action)

    def on(self, kind, number, action):
        with self.lock:
            self.faults[kind, self.counts[kind] + number] = action
        return action

    def action_for(self, message):
        name, value = command_of(message)
        if name is None or name.lower() in ("hello", "ismaster"):
            return None
        kinds = ["command"]
        if name == "insert" and self.is_counted(collection_of(value)):
            kinds.append("batch")
        action = self.always if "batch" in kinds else None
        with self.lock:
            if self.seen is not None:
                self.seen.append(message)
            for kind in kinds:
                self.counts[kind] += 1
                action = self.faults.pop((kind, self.counts[kind]), action)
        return action

    def unused(self):
        """The faults that have not struck."""
        with self.lock:
            return sorted(self.faults)

    def forget(self):
        """No faults any more."""
        with self.lock:
            self.faults.clear()
            self.always = None

    def close(self):
        self.refuse()
        with self.lock:
            links, self.links = self.links, []
        for link in links:
            for action in link.replies.values():
                if action.hold:
                    action.hold.set()
            link.close()
