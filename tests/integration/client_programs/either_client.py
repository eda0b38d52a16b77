"""A way to ask a service by either client."""

import asyncio
import functools

import encoderd
import pytest


def _begin(client, name, arguments, options):
    found = getattr(client, name)
    return found(*arguments, **options) if callable(found) else found


def ask(kind, target, name, *arguments, settings=None, **options):
    """What a method, or a property, of a Client or an AsyncClient with these
    settings gives; of a stream, the list of its results."""
    if kind is encoderd.Client:
        with encoderd.Client(target, **settings or {}) as client:
            found = _begin(client, name, arguments, options)
            return list(found) if hasattr(found, "__next__") else found

    async def main():
        async with encoderd.AsyncClient(target, **settings or {}) as client:
            found = _begin(client, name, arguments, options)
            if hasattr(found, "__anext__"):
                return [result async for result in found]
            return await found
    return asyncio.run(main())


blocking = functools.partial(ask, encoderd.Client)
awaited = functools.partial(ask, encoderd.AsyncClient)
KINDS = pytest.mark.parametrize("kind", [encoderd.Client,
                                         encoderd.AsyncClient])
