"""Claims about a server, made with the vendors' Python clients.

A program defines functions called claim_*, plain or async, each taking `endpoint` (url, key, and what the test gave
besides), and ends in `claims.run(globals())`. Each is told to the test as one line; what a program prints besides is shown
as a remark. A claim fails by raising, and is skipped by raising Skipped.
"""
import asyncio
import inspect
import json
import os
import traceback
import types


class Skipped(Exception):
    """Why a claim was not tried."""


def raises(kind, call, *args, **kwargs):
    """The exception of this kind that the call must end in."""
    try:
        call(*args, **kwargs)
    except kind as error:
        return error
    raise AssertionError(f"{getattr(call, '__name__', call)} raised nothing")


async def raises_async(kind, awaitable):
    try:
        await awaitable
    except kind as error:
        return error
    raise AssertionError("nothing was raised")


def _try(function, endpoint):
    try:
        if inspect.iscoroutinefunction(function):
            asyncio.run(function(endpoint))
        else:
            function(endpoint)
    except Skipped as reason:
        return {"skipped": str(reason)}
    except Exception:  # a claim that fails does not keep the others from being tried
        return {"error": traceback.format_exc(limit=-8)}
    return {}


def run(names):
    endpoint = types.SimpleNamespace(**json.loads(os.environ["E2E_ENDPOINT"]))
    for name, function in list(names.items()):
        if name.startswith("claim_") and callable(function):
            result = _try(function, endpoint)
            print("claim " + json.dumps({"claim": name[len("claim_"):].replace("_", " "), **result}), flush=True)
