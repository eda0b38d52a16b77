"""What callgrind counted, by the functions of the program alone.

What shared libraries execute belongs to the functions that called them: a copy
too many is named where it is made and not as memcpy.
"""

import dataclasses
import re

ROUNDS = 100  # calls within libraries are less deep


@dataclasses.dataclass
class Counts:
    """Of one path."""

    instructions: int
    functions: dict[str, int]  # each without those that it calls


def without_arguments(name):
    """encoderd::Pack(std::vector<int> const&) -> encoderd::Pack."""
    depth = 0
    for i, character in enumerate(name):
        if character == "(" and depth == 0 and not name[:i].endswith(
                "operator"):
            return name[:i]
        depth += (character in "<({") - (character in ">)}")
    return name


def without_allocators(name):
    """std::vector<int, std::allocator<int> > -> std::vector<int>."""
    mark = ", std::allocator<"
    while (at := name.find(mark)) >= 0:
        end, depth = at + len(mark), 1
        while depth > 0 and end < len(name):
            depth += (name[end] == "<") - (name[end] == ">")
            end += 1
        name = name[:at] + name[end:].lstrip()
    return name


def short_name(name):
    """As people write it; a lambda has the name of its function."""
    name = re.sub(r"'\d+$", "", name)  # callgrind's mark of a recursion
    name = name.replace("(anonymous namespace)::", "")
    name = without_allocators(name)
    name = name.replace(
        "std::__cxx11::basic_string<char, std::char_traits<char>>",
        "std::string")
    return without_arguments(re.sub(r"^(?:void|bool|auto) ", "", name))


class Profile:
    """What callgrind wrote. Functions have numbers: names are not unique."""

    def __init__(self, text, program):
        self.names = {}
        self.counts = {}  # of a function without those that it calls
        self.callers = {}  # of a function: theirs, and what it took for them
        self.ours = set()  # functions of the program itself
        objects = {}
        function = called = of = None
        for line in text.splitlines():
            named = re.match(r"(c?fn|c?ob)=\((\d+)\)(?: (.*))?$", line)
            if named:
                kind, number, name = named.groups()
                known = objects if kind.endswith("ob") else self.names
                if name is not None:
                    known[number] = name
                if kind == "ob":
                    of = known[number]
                elif kind == "cfn":
                    called = number
                elif kind == "fn":
                    function = number
                    if of == program:
                        self.ours.add(number)
            elif re.match(r"[-+*\d]", line):
                count = int(line.split()[-1])
                if called is None:
                    self.add(self.counts, function, count)
                else:  # the line after "calls=": what the call took
                    self.add(self.callers.setdefault(called, {}), function,
                             count)
                    called = None

    @staticmethod
    def add(counts, function, count):
        counts[function] = counts.get(function, 0) + count

    def of_our_functions(self):
        """Counts by name; what libraries executed belongs to their callers.

        Exact where a library does not call back.
        """
        own = {number: count for number, count in self.counts.items()
               if number in self.ours}
        libraries = {number: count for number, count in self.counts.items()
                     if number not in self.ours}
        for _ in range(ROUNDS):
            above = {}
            for number, count in libraries.items():
                callers = self.callers.get(number, {})
                whole = sum(callers.values())
                if whole == 0:
                    self.add(own, number, count)
                for caller, share in callers.items():
                    self.add(own if caller in self.ours else above, caller,
                             count * share / max(whole, 1))
            libraries = above
        counts = {}
        for number, count in [*own.items(), *libraries.items()]:
            self.add(counts, short_name(self.names[number]), count)
        return {name: round(count) for name, count in counts.items()
                if count >= 0.5}


def read(text, program):
    profile = Profile(text, program)
    return Counts(sum(profile.counts.values()), profile.of_our_functions())
