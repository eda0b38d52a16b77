"""A way to ask a service by either client."""

import asyncio

import encoderd
import pytest


def ask(kind, target, name, *arguments, **options):
    """What a method, or a property, of a Client or an AsyncClient gives."""
    if kind is encoderd.Client:
        with encoderd.Client(target) as client:
            found = getattr(client, name)
            return found(*arguments, **options) if callable(found) else found

    async def main():
        async with encoderd.AsyncClient(target) as client:
            found = getattr(client, name)
            return await (found(*arguments, **options) if callable(found)
                          else found)
    return asyncio.run(main())


KINDS = pytest.mark.parametrize("kind", [encoderd.Client,
                                         encoderd.AsyncClient])
