"""How long a look for a bearer token takes tells nothing of the tokens."""

import re

PATH = "server/security/token_table.cc"
FIND = re.compile(r"TokenTable::Find\(.*?\n}\n", re.DOTALL)
LOOP = re.compile(r"\n  for \(.*?\n  }\n", re.DOTALL)
# Whatever ends early, or compares what is not the result of the one compare.
EARLY = re.compile(r"\b(?:return|break|continue|goto|strn?cmp|equal|compare"
                   r"|(?<!CRYPTO_)memcmp|EqualsIgnoreCase)\b"
                   r"|[!=]=(?! 0\b)|&&|\|\|")


def token_compare(tree):
    """Find looks at every token, with CRYPTO_memcmp alone."""
    if PATH not in tree.files:
        return [f"{PATH} is missing"]
    find = FIND.search(tree.read(PATH))
    loop = find and LOOP.search(find[0])
    if not loop or "CRYPTO_memcmp(" not in loop[0]:
        return [f"{PATH}: Find has no loop with CRYPTO_memcmp"]
    outside = find[0].replace(loop[0], "")
    return ([f"{PATH}: Find compares with '{word}' within its loop"
             for word in EARLY.findall(loop[0])]
            + [f"{PATH}: Find compares hashes outside of its loop"
               for _ in re.findall(r"hash_|memcmp|hash ==", outside)])
