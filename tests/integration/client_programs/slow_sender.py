"""Makes gRPC's thread that sends keep its call's lock for long, once
`LATE` is set. A module, because the interpreter does not clear the globals of
`__main__` while a thread runs in a function that has them."""

import threading
import time

from grpc import _channel

LATE = threading.Event()


class _Lock(threading.Condition):

    def __enter__(self, current=threading.current_thread, late=LATE.is_set,
                  sender="Thread-2", sleep=time.sleep,
                  enter=threading.Condition.__enter__):
        # The names of modules are None while the interpreter ends.
        slow = late() and current().name.startswith(sender)
        if slow:
            sleep(0.5)  # the one that reads has ended by now
        found = enter(self)
        if slow:
            sleep(2)
        return found


def _begin(state, *arguments, begin=_channel._RPCState.__init__):
    begin(state, *arguments)
    state.condition = _Lock()


_channel._RPCState.__init__ = _begin
