# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy between the loader and a server that cuts, delays, loses and changes messages.

    proxy = Proxy(port_of_the_server)
    proxy.on_batch(5, cut_request(100))       # cut the connection after 100 bytes of the fifth batch
    proxy.on_batch(9, call(server.kill))      # kill the server before the ninth batch is forwarded
    ... load through proxy.port ...
    proxy.close()

A fault is set for a batch (an insert into the counted collection, or an update or delete) or for a command of any kind.
Batches and commands are counted over all connections in the order of their arrival; a retried batch
counts again. So the same load has the same fault at the same batch, however fast the machine is.
hello commands are not counted, because drivers send them at fixed intervals.

Each connection has two threads, one per direction, since a server may send several replies to one
request. A fault in a reply is stored under the number of its request before the request is
forwarded; the thread of the replies looks it up. A fault that ends a connection shuts down both its
sockets, and both threads then end. The threads share only the counters and the tables of faults and
connections, under `lock`, which is not held while an action runs.
"""
import socket
import struct
import threading

from support import bson

HOST = "127.0.0.1"
HEADER = 16
OP_MSG = 2013


class Action:
    """What the proxy does with one message, a batch or another command.

    before     called before the message is forwarded
    cut        bytes of the message that are forwarded; None: all
    after      called after the message was forwarded
    hold       an event; the reply is held until it is set
    reply_cut  bytes of the reply that are forwarded; None: all
    lost       no reply is forwarded, and the connection stays open
    change     a function that gets the reply as a dictionary and returns the reply to forward, as a
               dictionary or as the bytes of its body
    swallow    the message is not forwarded; `change` gets {"n": 0, "ok": 1.0} as its reply"""

    def __init__(self, before=None, cut=None, reply_cut=None, after=None, hold=None, lost=False,
                 change=None, swallow=False):
        self.before, self.cut, self.reply_cut, self.after = before, cut, reply_cut, after
        self.hold, self.lost, self.change, self.swallow = hold, lost, change, swallow
        self.arrived = threading.Event()     # set when the proxy has received the message


def call(function):
    """Calls the function before the message is forwarded."""
    return Action(before=function)


def call_after(function):
    """Calls the function once the message was sent to the server, which may have executed any part
    of it by then."""
    return Action(after=function)


def cut_request(count, before=None):
    """Cuts the connection after `count` bytes of the message."""
    return Action(cut=count, before=before)


def cut_reply(count):
    """Forwards the message, and cuts the connection after `count` bytes of its reply."""
    return Action(reply_cut=count)


def lose_request():
    """Drops the message, and leaves the connection open."""
    return Action(lost=True, cut=0)


def lose_reply():
    """Forwards the message, drops its reply, and leaves the connection open."""
    return Action(lost=True)


def delay_reply(event):
    """Holds the reply until the event is set."""
    return Action(hold=event)


def change_reply(function):
    """Forwards the message, and replaces its reply (a dictionary) by what the function returns, a
    dictionary or the bytes of a body."""
    return Action(change=function)


def error_reply(code, errmsg):
    """Forwards the message, and replaces its reply by this error."""
    return change_reply(lambda _: {"ok": 0.0, "code": code, "errmsg": errmsg})


def answer(function):
    """Drops the message, and replies with what the function makes of {"n": 0, "ok": 1.0}."""
    return Action(change=function, swallow=True)


BODY = HEADER + 5             # offset of the body: after the flags and the kind of the section


def body_of(message):
    """The first section of a message, as a dictionary."""
    length = struct.unpack_from("<i", message, BODY)[0]
    return bson.decode(message[BODY:BODY + length])


def documents_of(message):
    """The documents of an insert, from its second section."""
    at = BODY + struct.unpack_from("<i", message, BODY)[0]
    if at == len(message):
        return []
    end = at + 1 + struct.unpack_from("<i", message, at + 1)[0]
    at = message.index(b"\0", at + 5) + 1
    return bson.decode_all(message[at:end])


def reply_with(request, body):
    """A reply to the request; `body` is a dictionary or bytes."""
    body = body if isinstance(body, bytes) else bson.encode(body)
    number = struct.unpack_from("<i", request, 4)[0]
    return struct.pack("<iiiiIB", BODY + len(body), number, number, OP_MSG, 0, 0) + body


def command_of(message):
    """The name of the command and the message from the command's value on; (None, None) if this is
    not an OP_MSG whose first section is the command."""
    if struct.unpack_from("<i", message, 12)[0] != OP_MSG or message[20] != 0:
        return None, None
    end = message.index(b"\0", 26)
    return message[26:end].decode(), message[end + 1:]


def collection_of(value):
    """The collection of a command, from the second result of command_of()."""
    return value[4:value.index(b"\0", 4)].decode()


def unknown_command(name):
    """For Proxy.change_request: changes the last letter of this command's name, so that the server
    refuses the command as unknown."""
    def change(message):
        if command_of(message)[0] != name:
            return message
        return message[:26] + name[:-1].encode() + b"?" + message[26 + len(name):]
    return change


def receive(side, count):
    """Exactly `count` bytes, or None when the peer has closed the connection."""
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
        self.threads = [threading.Thread(target=self.cut_at_end_of, args=[forward], daemon=True)
                        for forward in (self.forward_requests, self.forward_replies)]
        for thread in self.threads:
            thread.start()

    def cut_at_end_of(self, forward):
        try:
            forward()
        except OSError:
            pass                             # one side has closed its connection
        finally:
            self.cut()

    def cut(self):
        for side in (self.client, self.server):
            try:
                side.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def forward_requests(self):
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
                action.arrived.set()
                continue
            self.replies[struct.unpack_from("<i", message, 4)[0]] = action
            self.server.sendall(message[:action.cut])
            action.arrived.set()
            if action.after:
                action.after()
            if action.cut is not None and not action.lost:
                return

    def forward_replies(self):
        while (message := receive_message(self.server)) is not None:
            message = self.proxy.change_reply(message)
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
        """`target`: the server's port. `collection`: the collection whose inserts are counted as
        batches: its name, or a function that decides by the name."""
        self.target = target
        self.is_counted = collection if callable(collection) else collection.__eq__
        # Called with each message before it is forwarded. A change must keep the length.
        self.change_request = lambda message: message
        self.change_reply = lambda message: message
        self.observe = lambda link, kind, message: None
        self.recorded = None                 # a list: receives every request but hello
        self.always = None                   # the action for batches without an action of their own
        self.lock = threading.Lock()
        self.faults, self.links = {}, []     # faults: (kind, number) -> action
        self.counts = {"batch": 0, "command": 0}
        self.port = 0
        self.listener = None
        self.accept()

    def accept(self):
        """Accepts connections: from the beginning, and again after refuse()."""
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind((HOST, self.port))
        self.port = self.listener.getsockname()[1]
        self.listener.listen(64)
        self.acceptor = threading.Thread(target=self.accept_from, args=[self.listener], daemon=True)
        self.acceptor.start()

    def accept_from(self, listener):
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            try:
                link = Link(self, client)
            except OSError:                  # the server refuses connections
                client.close()
                continue
            with self.lock:
                self.links.append(link)

    def refuse(self):
        """Refuses new connections until accept() is called."""
        if self.listener:
            self.listener.shutdown(socket.SHUT_RDWR)
            self.acceptor.join()
            self.listener.close()
            self.listener = None

    @property
    def batches(self):
        """The number of batches received so far."""
        return self.counts["batch"]

    def on_batch(self, number, action):
        """Sets the action for the number-th batch from now on, and returns the action."""
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
        if name in ("insert", "update", "delete") and self.is_counted(collection_of(value)):
            kinds.append("batch")
        action = self.always if "batch" in kinds else None
        with self.lock:
            if self.recorded is not None:
                self.recorded.append(message)
            for kind in kinds:
                self.counts[kind] += 1
                action = self.faults.pop((kind, self.counts[kind]), action)
        return action

    def unused(self):
        """The faults whose batch or command has not arrived, as (kind, number)."""
        with self.lock:
            return sorted(self.faults)

    def clear_faults(self):
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


class Refusing(Proxy):
    """Replies to each command of one name, or with a stage of that name ($sample), with an error. If
    `executed`, the server executes the command all the same."""

    def __init__(self, target, name, code=13, errmsg="not authorized for this", executed=True):
        self.name, self.code, self.errmsg, self.executed = name, code, errmsg, executed
        super().__init__(target)

    def action_for(self, message):
        action = super().action_for(message)
        name, value = command_of(message)
        if name == self.name or (self.name[0] == "$" and name and self.name.encode() in value):
            if not self.executed:
                return answer(lambda _: {"ok": 0.0, "code": self.code, "errmsg": self.errmsg})
            return error_reply(self.code, self.errmsg)
        return action
