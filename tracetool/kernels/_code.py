"""Machine code of kernels: called through ctypes, kept in the user's cache folder, loaded by LLVM's linker.

numba's calling convention (``numba.core.callconv.CPUCallConv``): a place for the result, a place for an exception,
then the arguments; an array is seven numbers and more: two owners, size, bytes of an element, address, shape, strides.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import json
import os
import re
import stat
import sys
import tempfile
import threading
import weakref
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import llvmlite
import numpy as np
from llvmlite import binding as llvm

from tracetool._version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FunctionType

_CALL = ctypes.CFUNCTYPE
_linking = threading.Lock()  # the engine is one, and not for several threads; a function is linked once
_IMPORTS = re.compile(r"^from tracetool\.kernels(?: import (.*)|\.(\w+) import)", re.MULTILINE)
#: Functions of numba's run time that kernels use that make arrays; see `_MEMORY`.
PROVIDED = frozenset({"NRT_MemInfo_alloc_aligned", "NRT_MemInfo_call_dtor", "NRT_Free"})
#: A block of memory begins with its count of references, three fields of no use here, the data's address and size.
_MEMORY = """
declare i8* @malloc(i64)
declare void @free(i8*)
define i8* @NRT_MemInfo_alloc_aligned(i64 %size, i32 %align) {
  %wide = zext i32 %align to i64
  %spare = add i64 %wide, 64
  %total = add i64 %size, %spare
  %block = call i8* @malloc(i64 %total)
  %none = icmp eq i8* %block, null
  br i1 %none, label %out, label %fill
fill:
  %words = bitcast i8* %block to i64*
  store i64 1, i64* %words
  %number = ptrtoint i8* %block to i64
  %beyond = add i64 %number, %spare
  %over = urem i64 %beyond, %wide
  %data = sub i64 %beyond, %over
  %at = getelementptr i64, i64* %words, i64 3
  store i64 %data, i64* %at
  %length = getelementptr i64, i64* %words, i64 4
  store i64 %size, i64* %length
  br label %out
out:
  ret i8* %block
}
define void @NRT_MemInfo_call_dtor(i8* %block) {
  call void @free(i8* %block)
  ret void
}
define void @NRT_Free(i8* %block) {
  call void @free(i8* %block)
  ret void
}
"""


class Returned(NamedTuple):
    """One value that a kernel returns: NumPy's name of its type, and the dimensions of an array (0: a number)."""

    dtype: str
    ndim: int

    @property
    def field(self) -> Any:
        """The C type that holds it."""
        if self.ndim:
            return ctypes.c_int64 * (5 + 2 * self.ndim)
        return np.ctypeslib.as_ctypes_type(np.dtype(self.dtype))

    def value(self, stored: Any) -> Any:
        """As Python has it; an array that has its memory to itself keeps it, others are copies."""
        if not self.ndim:
            return stored
        block, _, size, width, address, *shape = stored[: 5 + self.ndim]
        count = ctypes.c_int64.from_address(block) if block else ctypes.c_int64(0)
        if count.value == 1 and size:
            memory = (ctypes.c_char * (size * width)).from_address(address)
            weakref.finalize(memory, _library().free, ctypes.c_void_p(block)).atexit = False
            return np.frombuffer(memory, self.dtype).reshape(shape)
        data = ctypes.string_at(address, size * width)
        count.value -= 1
        if not count.value:
            _library().free(ctypes.c_void_p(block))
        return np.frombuffer(bytearray(data), self.dtype).reshape(shape)


class Code:
    """A compiled function.

    Parameters
    ----------
    symbol
        Its name in the object file.
    returned
        What it returns; none: nothing.
    several
        Whether that is a tuple.
    content
        The object file.
    """

    def __init__(self, symbol: str, returned: list[Returned], several: bool, content: bytes) -> None:
        self.symbol, self.returned, self.several, self.content = symbol, returned, several, content
        fields = [(f"f{n}", part.field) for n, part in enumerate(returned)] or [("none", ctypes.c_void_p)]
        self._result = type("Result", (ctypes.Structure,), {"_fields_": fields})
        self._call: Any = None

    def _link(self, args: tuple[Any, ...]) -> Any:
        engine = _engine()
        engine.add_object_file(llvm.ObjectFileRef.from_data(self.content))
        engine.finalize_object()
        kinds: list[Any] = [ctypes.c_void_p, ctypes.c_void_p]
        for arg in args:
            if isinstance(arg, np.ndarray):
                kinds += [ctypes.c_int64] * (5 + 2 * arg.ndim)
            elif isinstance(arg, (bool, np.bool_)):
                kinds.append(ctypes.c_bool)
            else:
                kinds.append(ctypes.c_double if isinstance(arg, float) else ctypes.c_int64)
        self.content = b""
        return _CALL(ctypes.c_int32, *kinds)(engine.get_function_address(self.symbol))

    def __call__(self, args: tuple[Any, ...]) -> Any:
        """Call it with arguments of the kinds that it was compiled for."""
        if self._call is None:
            with _linking:
                self._call = self._call or self._link(args)
        flat: list[Any] = []
        for arg in args:
            if isinstance(arg, np.ndarray):
                flat += (0, 0, arg.size, arg.itemsize, arg.ctypes.data, *arg.shape, *arg.strides)
            else:
                flat.append(arg if isinstance(arg, (int, float)) else arg.item())
        result, problem = self._result(), ctypes.c_void_p()
        if self._call(ctypes.byref(result), ctypes.byref(problem), *flat):
            _raise(problem)
        if not self.returned:
            return None
        values = tuple(part.value(getattr(result, f"f{n}")) for n, part in enumerate(self.returned))
        return values if self.several else values[0]


def _raise(problem: ctypes.c_void_p) -> None:
    """Raise the exception that a kernel met, which only numba can read."""
    from numba.core.serialize import _numba_unpickle

    class Problem(ctypes.Structure):
        _fields_ = (("pickled", ctypes.c_void_p), ("size", ctypes.c_int32), ("digest", ctypes.c_void_p))

    found = Problem.from_address(problem.value or 0)
    digest = ctypes.string_at(found.digest, 20)
    unpickle = cast("Any", _numba_unpickle)  # it is not typed
    kind, args, _ = unpickle(found.pickled, ctypes.string_at(found.pickled, found.size), digest)
    raise kind(*args)


@functools.cache
def _library() -> Any:
    return ctypes.CDLL(None)


def links(name: str) -> bool:
    """Whether code that needs a function finds it in any process, with numba or without."""
    return name in PROVIDED or hasattr(_library(), name)


@functools.cache
def _machine() -> tuple[str, str]:
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


@functools.cache
def _numba() -> str:
    """Version of numba, by the file that says it: importing numba is what is to be avoided."""
    found = find_spec("numba")
    return Path(found.origin).with_name("_version.py").read_text(encoding="utf-8") if found and found.origin else ""


@functools.cache
def _engine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    machine = target.create_target_machine(opt=0, jit=True, reloc="static", codemodel="jitdefault")
    name = f"memory-{_digest(_MEMORY.encode())}"
    content = _kept(name)
    if content is None:
        content = _keep(name, machine.emit_object(llvm.parse_assembly(_MEMORY)))
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(content))
    engine.finalize_object()
    return engine


# -- on disk


def folder() -> Path:
    """Folder of machine code, by the XDG base directory specification, one per version of tracetool.

    Raises
    ------
    RuntimeError
        If the user has no home.
    """
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():  # which the specification has ignored
        base = Path.home() / ".cache"
    return base / "tracetool" / f"kernels-{__version__}"


@functools.cache
def _sources(file: str) -> bytes:
    """Digest of a kernel's file and of those that it imports kernels and constants from, at any distance."""
    digests, todo = {}, [Path(file)]
    while todo:
        path = todo.pop()
        if path not in digests and path.is_file():
            text = path.read_text(encoding="utf-8")
            digests[path] = f"{path.name} {hashlib.sha256(text.encode()).hexdigest()}"
            for several, one in _IMPORTS.findall(text):
                todo += [Path(__file__).with_name(f"{name}.py") for name in re.findall(r"\w+", several) or [one]]
    return "\n".join(sorted(digests.values())).encode()


def _digest(made_of: bytes) -> str:
    """What tells code apart: what it was made of, for which machine, by what."""
    about = (*_machine(), sys.platform, sys.implementation.cache_tag, _numba(), llvmlite.__version__)
    return hashlib.sha256(made_of + json.dumps(about).encode()).hexdigest()[:24]


def _name(function: Callable[..., Any], kinds: str) -> str:
    """Name of the file with the code of a kernel for some kinds of arguments."""
    made = cast("FunctionType", function)
    file = made.__code__.co_filename
    return f"{Path(file).stem}.{made.__name__}-{_digest(_sources(file) + kinds.encode())}"


def _own(path: Path) -> bytes:
    """Content of a file that nobody but this user or root can have written: it is going to be run.

    Raises
    ------
    PermissionError
        If it is another user's, or others may write to it.
    """
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        if status.st_uid not in {os.geteuid(), 0} or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise PermissionError(path)
        return file.read()


def _kept(name: str) -> bytes | None:
    """Content of a file of the folder; None where there is none that is whole."""
    try:
        digest, content = _own(folder() / name).split(b"\n", 1)
    except (OSError, RuntimeError, ValueError):
        return None
    return content if digest == hashlib.sha256(content).hexdigest().encode() else None


def _keep(name: str, content: bytes) -> bytes:
    """Keep content in a file of the folder, if that can be written to."""
    with contextlib.suppress(OSError, RuntimeError), contextlib.ExitStack() as cleanup:
        path = folder() / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:  # for this user alone
            part = Path(file.name)
            cleanup.callback(part.unlink, missing_ok=True)
            file.write(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
        part.replace(path)
    return content


def load(function: Callable[..., Any], kinds: str) -> Code | None:
    """Load the code of a kernel for some kinds of arguments; None where there is none."""
    try:
        kept = _kept(_name(function, kinds))
        if kept is None:
            return None
        head, content = kept.split(b"\n", 1)
        about = json.loads(head)
        return Code(about["symbol"], [Returned(*part) for part in about["returned"]], about["several"], content)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def save(function: Callable[..., Any], kinds: str, code: Code) -> Code:
    """Keep the code of a kernel, if the folder can be written to."""
    about = {"symbol": code.symbol, "returned": code.returned, "several": code.several}
    with contextlib.suppress(OSError):
        _keep(_name(function, kinds), json.dumps(about).encode() + b"\n" + code.content)
    return code
