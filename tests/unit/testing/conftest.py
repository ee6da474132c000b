"""Every async test of the test tools runs on trio and on asyncio, in virtual time."""

from __future__ import annotations

import functools
import inspect

import pytest

from pyoco_runtime.testing.virtual_time import run_virtual


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if inspect.iscoroutinefunction(metafunc.function):
        metafunc.fixturenames.append("backend")
        metafunc.parametrize("backend", ["trio", "asyncio"])


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    test = functools.partial(pyfuncitem.obj, **{name: pyfuncitem.funcargs[name] for name in wanted})
    run_virtual(test, backend="trio" if pyfuncitem.callspec.params["backend"] == "trio" else "asyncio")
    return True
