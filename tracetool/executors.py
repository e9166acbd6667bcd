"""Who does the work: this process, processes of this machine, or a cluster, all by way of `concurrent.futures`.

Work comes in units that can be pickled, and repeated: one that was cut off leaves nothing that its repetition minds.
"""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import threading
import time
from concurrent.futures import BrokenExecutor, Executor, Future
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from tracetool.errors import TracetoolError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Task = TypeVar("Task")
Result = TypeVar("Result")
#: Units that may be under way at a time: enough for a cluster, few enough to be held in memory.
WINDOW = 256
CONNECT_S = 10
_END_S = 1.0  # what a process that was told to end has for it, at most
_SHARE = 4  # whoever takes the results may be busy for one part in this many and one


class WorkerError(TracetoolError):
    """The workers of an executor are gone, or cannot be reached."""


def cores() -> int:
    """Cores that this process may use: all, or those that it was bound to (``taskset``, a container's cpuset)."""
    bound = getattr(os, "sched_getaffinity", None)  # Linux has it
    return len(bound(0)) if bound else os.cpu_count() or 1


class Serial(Executor):
    """Does the work in the calling thread, as it is submitted."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Do it now."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - whoever asks for the result gets it
            future.set_exception(error)
        return future


def spread(
    executor: Executor, work: Callable[[Task], Result], tasks: Iterable[Task]
) -> Iterator[list[tuple[Task, Result]]]:
    """Do some work on many tasks; yield those that are done, in groups, as they are done.

    Tasks are taken as they can be submitted. Where it takes long to deal with a group, the next one is larger.

    Parameters
    ----------
    executor
        Does the work.
    work
        A function that can be pickled, as its tasks and results can.
    tasks
        What to work on.

    Raises
    ------
    WorkerError
        If the executor has lost its workers; what was done is yielded before this, as before any error of the work.

    Examples
    --------
    >>> [done for group in spread(Serial(), abs, [-1, 2]) for done in group]
    [(-1, 1), (2, 2)]
    """
    under_way: dict[Future[Result], Task] = {}
    finished: SimpleQueue[Future[Result]] = SimpleQueue()  # `wait` leaves futures locked where it is interrupted
    done: list[tuple[Task, Result]] = []
    failed: list[Exception] = []
    quiet_until = 0.0

    def gather(timeout: float | None) -> None:
        if not under_way:
            time.sleep(timeout or 0)
        with contextlib.suppress(Empty):
            while under_way:
                future = finished.get(timeout=timeout)
                timeout = 0
                task = under_way.pop(future)
                try:
                    done.append((task, _result(future)))
                except Exception as error:  # noqa: BLE001 - raised when what was done is handed over
                    failed.append(error)

    waiting = iter(tasks)
    more = True
    try:
        while (more or under_way or done) and not failed:
            if more and len(under_way) + len(done) < WINDOW:
                for task in waiting:
                    future = _submitted(executor, work, task)
                    under_way[future] = task
                    future.add_done_callback(finished.put)
                    break
                else:
                    more = False
                gather(0)
            else:
                gather(max(0.0, quiet_until - time.monotonic()) if done else None)
            if done and (time.monotonic() >= quiet_until or not (more or under_way)):
                began = time.monotonic()
                yield done
                done = []
                ended = time.monotonic()
                quiet_until = ended + _SHARE * (ended - began)
        if failed:
            if done:
                yield done
            raise failed[0]  # noqa: TRY301 - what was submitted is cancelled below, whoever raised it
    except BaseException as error:
        if hasattr(executor, "kill"):
            if not isinstance(error, (Exception, GeneratorExit)):  # an interruption
                executor.kill()  # at once: whoever gave out the work removes what is left of it
        # A process pool that has lost its workers trips over what is cancelled meanwhile, in a thread of its own.
        elif not isinstance(error, WorkerError):
            for future in under_way:
                future.cancel()
        raise


def _submitted(executor: Executor, work: Callable[[Task], Result], task: Task) -> Future[Result]:
    """Submit a task; an executor that has lost its workers refuses, which is a result too."""
    try:
        return executor.submit(work, task)
    except BrokenExecutor as error:
        refused: Future[Result] = Future()
        refused.set_exception(error)
        return refused


def _result(future: Future[Result]) -> Result:
    try:
        return future.result()
    except BrokenExecutor:
        raise WorkerError(
            "a worker process ended unexpectedly (killed, or out of memory): what was finished is kept, run it again"
        ) from None
    except Exception as error:
        if isinstance(error, RuntimeError) and isinstance(error.__cause__, (ImportError, AttributeError)):
            raise WorkerError(
                f"the workers have another version of tracetool, or none ({error.__cause__}): install this one there"
            ) from None
        if type(error).__module__.startswith("distributed"):
            raise WorkerError(f"the cluster failed: {' '.join(str(error).split())}: run it again") from None
        raise


@contextlib.contextmanager
def processes(jobs: int) -> Iterator[Executor]:
    """Processes of this machine, started as they are needed, ended when the context is left.

    Their temporary files are in a folder that is removed then: one that was ended removes none.

    Parameters
    ----------
    jobs
        How many.
    """
    with tempfile.TemporaryDirectory(prefix="tracetool-", ignore_cleanup_errors=True) as folder:
        pool = _pool(jobs, folder)
        try:
            yield pool
        except BaseException:
            pool.kill()
            raise
        pool.shutdown()


def _pool(jobs: int, folder: str) -> Any:
    """Pool of processes started afresh (Polars must not be forked), which can be killed."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    others = set(multiprocessing.active_children())

    class Pool(ProcessPoolExecutor):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            # This starts processes, which inherit the mask: an interrupt finds them before they could ignore it.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                return super().submit(fn, *args, **kwargs)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)

        def kill(self) -> None:
            # Not those that the pool knows of: it may have been interrupted just after it started one.
            started = set(multiprocessing.active_children()) - others
            manager: Any = self._executor_manager_thread
            self.shutdown(wait=False, cancel_futures=True)
            for process in started:
                process.terminate()
            for process in started:
                process.join(_END_S)
            if manager is not None:  # Python's end, if it comes while this thread ends, trips over what it has closed
                manager.join(_END_S)

    return Pool(jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_start_worker, initargs=(folder,))


def _start_worker(folder: str) -> None:
    """Leave the interrupt key to the parent, and end when it has gone; temporary files go into a folder of its."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tempfile.tempdir = folder
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    from multiprocessing import connection, parent_process

    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


@contextlib.contextmanager
def cluster(address: str) -> Iterator[Executor]:
    """Workers of a Dask cluster, which the user has started.

    Parameters
    ----------
    address
        Of its scheduler, such as ``tcp://10.0.0.1:8786``.

    Raises
    ------
    UsageError
        If Dask is not installed, or the address makes no sense.
    WorkerError
        If the scheduler cannot be reached.
    """
    try:
        from distributed import Client
        from distributed.comm.addressing import get_address_host_port
    except ImportError:
        raise UsageError("--scheduler needs Dask: pip install 'tracetool[dask]'") from None
    try:
        get_address_host_port(address)  # a client would try for long, and end with a traceback
    except ValueError as error:
        example = "write it as tcp://10.0.0.1:8786"
        raise UsageError(f"--scheduler {address!r}: {' '.join(str(error).split())}: {example}") from None
    try:
        client: Any = Client(address, timeout=CONNECT_S, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        detail = " ".join(str(error).split())
        raise WorkerError(f"{address}: no Dask scheduler can be reached there: {detail}") from None
    with client:
        yield client.get_executor(pure=False)
