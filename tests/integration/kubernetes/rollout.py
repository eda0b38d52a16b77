"""A rolling update as callers see it who find pods by name: a model, in seconds.

A caller knows the addresses of its last lookup. It looks the name up again when
an address that it knows has closed, but at most once per interval, as gRPC does.
A resolver may answer with what was true some time before.
"""

import dataclasses
import math


@dataclasses.dataclass
class Pod:
    ready: float
    leaves: float = math.inf  # TERM: no longer an answer to lookups
    closes: float = math.inf  # tells its callers to go elsewhere


@dataclasses.dataclass(frozen=True)
class Update:
    surge: bool  # the new pod comes before an old one leaves, not after
    min_ready: float
    drain_delay: float

    def pods(self, starts):
        """The pods, old ones first, of an update where the new ones take these
        times to become ready, and the moment at which it is done."""
        old, new, now = [Pod(-math.inf) for _ in starts], [], 0.
        for pod, start in zip(old, starts):
            ready = now + start
            now_ready = ready + self.min_ready
            pod.leaves = now_ready if self.surge else now
            pod.closes = pod.leaves + self.drain_delay
            new.append(Pod(ready))
            now = now_ready
        return old + new, now


@dataclasses.dataclass(frozen=True)
class Lookups:
    interval: float  # of a caller, at least
    kept: float  # how old an answer may be

    def outage(self, pods, end, random):
        """The longest time for which a caller knows no open pod. It last looked
        the name up at a random moment, and does so once for another reason."""
        last = newest = -self.interval * random.random()
        known, other = pods[:len(pods) // 2], random.uniform(0, end)
        longest = outage = 0
        for now in range(math.ceil(end) + 2 * math.ceil(self.interval)):
            wants = (other is not None and now >= other
                     or any(pod.closes <= now for pod in known))
            if wants and now - last >= self.interval:
                # Answers never go back in time.
                age = self.kept * random.choice((0, 1, random.random()))
                last, newest, other = now, max(newest, now - age), None
                known = [pod for pod in pods
                         if pod.ready <= newest < pod.leaves]
            served = any(pod.ready <= now < pod.closes for pod in known)
            outage = 0 if served else outage + 1
            longest = max(longest, outage)
        return longest
