"""A way to ask a service by either client."""

import asyncio
import functools

import encoderd
import pytest


def ask(kind, target, name, *arguments, settings=None, **options):
    """What a method, or a property, of a Client or an AsyncClient with these
    settings gives; of a stream, the list of its results."""
    if kind is encoderd.Client:
        with encoderd.Client(target, **settings or {}) as client:
            found = getattr(client, name)
            found = found(*arguments, **options) if callable(found) else found
            return list(found) if name == "embed_stream" else found

    async def main():
        async with encoderd.AsyncClient(target, **settings or {}) as client:
            found = getattr(client, name)
            found = found(*arguments, **options) if callable(found) else found
            if name == "embed_stream":
                return [result async for result in found]
            return await found
    return asyncio.run(main())


blocking = functools.partial(ask, encoderd.Client)
awaited = functools.partial(ask, encoderd.AsyncClient)
KINDS = pytest.mark.parametrize("kind", [encoderd.Client,
                                         encoderd.AsyncClient])
