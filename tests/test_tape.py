# tests/test_tape.py — burtorch.Tape: marks, scopes, views, compaction, threads
# SPDX-License-Identifier: MIT
from __future__ import annotations

import asyncio
import contextvars
import copy
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import burtorch as bt
import numpy as np
import pytest


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_tape_of_each_dtype(dtype: str) -> None:
    tape = bt.Tape(dtype, capacity=100)
    with tape as entered:
        assert entered is tape
        assert bt.current_tape() is tape
        x = bt.Value(0.1)
        y = x * x + 1
        y.backward()
    assert bt.current_tape() is not tape
    assert tape.values.dtype == np.dtype(dtype)
    assert tape.grads[x.index] == pytest.approx(0.2)
    assert x.data == np.dtype(dtype).type(0.1)
    assert (len(tape), tape.dtype, repr(tape)) == (3, dtype, f"Tape(dtype='{dtype}', 3 nodes)")
    assert tape.nbytes > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dtype": "float63"}, "unknown dtype 'float63'; there are float64, float32"),
        ({"capacity": -1}, "can't be negative"),
    ],
)
def test_wrong_arguments(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bt.Tape(**arguments)  # type: ignore[arg-type]


def test_a_rewound_value_raises_and_never_reads_another() -> None:
    with bt.Tape() as tape:
        x = bt.Value(3.0)
        mark = tape.mark()
        y = x * 2
        tape.rewind(mark)
        successor = x * 5  # takes y's place
        assert successor.index == 1
        for use in (lambda: y.data, lambda: y + 1, lambda: y.backward(), lambda: y.index):
            with pytest.raises(bt.StaleHandleError, match="rewound"):
                use()
        assert repr(y) == "<stale Value: its node was rewound>"
        assert successor.data == 15.0
        other = bt.Tape()
        with pytest.raises(ValueError, match="another tape"):
            other.rewind(mark)


def test_scopes_nest_and_forget() -> None:
    tape = bt.Tape()
    with tape:
        x = bt.Value(3.0)
        with tape.scope() as inside:
            assert inside is tape
            y = x * 2
            with tape.scope():
                z = y * 2
            with pytest.raises(bt.StaleHandleError):
                _ = z.data
            y.backward()
        assert len(tape) == 1
    assert x.grad == 2.0


def test_a_scope_may_be_entered_inside_of_itself() -> None:
    with bt.Tape() as tape:
        scope = tape.scope()
        x = bt.Value(3.0)
        with scope:
            y = x * 2
            with scope:
                z = y * 2
            assert (len(tape), y.data) == (2, 6.0)
            with pytest.raises(bt.StaleHandleError):
                _ = z.data
        assert len(tape) == 1
        for never_entered in (scope, tape.scope()):
            with pytest.raises(RuntimeError, match="this scope was not entered"):
                never_entered.__exit__(None, None, None)
        assert bt.current_tape() is tape


def test_views_are_no_copies_and_stay_safe() -> None:
    tape = bt.Tape()
    with tape:
        x = bt.Value(3.0)
        view = tape.values
        view[x.index] = 4.0
        assert x.data == 4.0
        keep = [
            bt.Value(float(i)) for i in range(100000)
        ]  # the tape grows out of the view's memory
        assert view.tolist() == [4.0]
        view[0] = -1.0
        assert tape.values[0] == 4.0
        fresh = tape.values
        del keep
        tape.collect()
        assert len(tape) == 1
        assert len(fresh) == 100001
    del tape, x
    gc.collect()
    assert fresh[0] == 4.0


def test_collect_keeps_what_live_values_reach() -> None:
    with bt.Tape() as tape:
        x, unused = bt.Value(2.0, name="x"), bt.Value(5.0)
        y = x * x + 3
        del unused
        for _ in range(10):
            x * 7
        tape.collect()
        assert len(tape) == 3
        y.backward()
        assert (x.grad, x.name, y.args[1]) == (4.0, "x", 3.0)


def test_a_loop_that_only_rebinds_names_runs_in_constant_memory() -> None:
    with bt.Tape() as tape:
        w = bt.Value(0.0)
        sizes = []
        for step in range(3000):
            loss = (w * 2 - 1) ** 2
            tape.zero_grad()
            loss.backward()
            w = bt.Value(w.data - 0.05 * w.grad)
            if step % 500 == 0:
                sizes.append(tape.nbytes)
    assert w.data == pytest.approx(0.5)
    assert len(set(sizes[1:])) == 1
    assert len(tape) < 2000


def test_zero_grad_and_accumulation() -> None:
    with bt.Tape() as tape:
        x = bt.Value(3.0)
        y = x * x
        y.backward()
        y.backward()
        assert x.grad == 12.0
        bt.zero_grad()
        assert x.grad == 0.0
        assert tape.grads.tolist() == [0.0, 0.0]


def test_scratch_storage() -> None:
    with bt.Tape():
        x, other = bt.Value(3.0), bt.Value(4.0)
        unused = other * other
        y = x * x * x
        scratch = bt.Scratch(10)
        bt.backward_with_scratch_storage(y, scratch)
        assert (x.grad, unused.grad) == (27.0, 0.0)
        assert scratch.leaves == [x.index]
        assert len(scratch.order) == 2
        bt.backward_with_scratch_storage(y, scratch, reuse=True)
        assert x.grad == 54.0
        with pytest.raises(bt.CapacityError, match="room for 0 indices"):
            bt.backward_with_scratch_storage(y, bt.Scratch(0))
        with pytest.raises(TypeError, match="needs a Value, not int"):
            bt.backward_with_scratch_storage(3, scratch)  # type: ignore[arg-type]


def test_threads_have_tapes_of_their_own() -> None:
    failures: list[str] = []

    def work(seed: int) -> None:
        x = bt.Value(float(seed))
        for _ in range(2000):
            y = x * x + seed
            y.backward()
            if x.grad != 2.0 * seed or y.data != seed * seed + seed:
                failures.append(f"{seed}: {x.grad}, {y.data}")
            x.grad = 0

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_long_sweep_is_right() -> None:
    with bt.Tape():
        x = bt.Value(1.0)
        y = x
        for _ in range(200000):  # more than a sweep does without giving up the lock
            y = y + 1
        y.backward()
        assert (x.grad, y.data) == (1.0, 200001.0)


@pytest.mark.skipif(os.name == "nt", reason="there a process can't send itself Ctrl-C")
def test_a_long_sweep_gives_up_the_lock_and_heeds_interrupts() -> None:
    with bt.Tape() as tape:
        x = bt.Value(1.0)
        y = x
        for _ in range(1_000_000):
            y = y + 1
        refused: list[str] = []
        ready = threading.Event()

        def disturb() -> None:
            ready.wait()
            for _ in range(50):  # until it meets the sweep, which needs the lock to be free
                try:
                    tape.zero_grad()
                except bt.Error as error:
                    refused.append(str(error))
                    os.kill(os.getpid(), signal.SIGINT)
                    return

        stopped = False
        for _ in range(50):
            ready.clear()
            thread = threading.Thread(target=disturb)
            thread.start()
            try:
                ready.set()
                y.backward()
                thread.join()
            except KeyboardInterrupt:
                stopped = y.grad == 1.0 and x.grad == 0.0  # begun, not finished
            thread.join()
            tape.zero_grad()
            if stopped:
                break
        assert stopped
        assert refused[0] == "this tape is in use by a long call of another thread"
        y.backward()  # nothing is left behind
        assert x.grad == 1.0


def test_other_long_calls_give_up_the_lock_too() -> None:
    with bt.Tape() as tape:
        leaves = [bt.Value(1.0) for _ in range(400_000)]
        y = leaves[0]
        for x in leaves:
            y = y + x
        scratch = bt.Scratch(len(tape))
        calls = {
            "scratch": lambda: bt.backward_with_scratch_storage(y, scratch),
            "sum": lambda: bt.reduce_sum(leaves),
            "both": lambda: bt.reduce_mean_and_mean_squares(leaves),
            "product": lambda: bt.inner_product(leaves, leaves[::-1]),
        }

        def disturb(done: threading.Event, refused: list[str]) -> None:
            while not done.is_set():
                try:
                    tape.zero_grad()
                except bt.Error as error:
                    refused.append(f"{error}; {leaves[-1].data}")
                    return

        for name, call in calls.items():
            refused: list[str] = []
            done = threading.Event()
            thread = threading.Thread(target=disturb, args=(done, refused))
            thread.start()
            for _ in range(200):
                result = call()  # type: ignore[no-untyped-call]
                if refused:
                    break
            done.set()
            thread.join()
            told = "this tape is in use by a long call of another thread; 1.0"
            assert refused == [told], name
            if name in {"sum", "product"}:
                assert result.data == len(leaves)  # type: ignore[union-attr]
        tape.zero_grad()
        bt.backward_with_scratch_storage(y, scratch)
        assert (leaves[0].grad, leaves[-1].grad) == (2.0, 1.0)


LONG_CALLS = {
    "backward": """
y = bt.Value(1.0)
for _ in range(1_000_000): y = y + 1
call = y.backward
""",
    "loss_and_grad": """
import numpy as np
model = bt.nn.GPT()
x = np.zeros((64, 8), dtype=int)
call = lambda: model.loss_and_grad(x, x)
""",
    "scratch": """
y = bt.Value(1.0)
for _ in range(1_000_000): y = y + 1
scratch = bt.Scratch(1_000_001)
call = lambda: bt.backward_with_scratch_storage(y, scratch)
""",
}


@pytest.mark.parametrize("name", LONG_CALLS)
def test_a_program_may_end_while_a_daemon_thread_is_in_a_long_call(name: str) -> None:
    program = f"""
import threading, time
import burtorch as bt
{LONG_CALLS[name]}
begun = threading.Event()
def work():
    while True:
        begun.set()
        call()
threading.Thread(target=work, daemon=True).start()
begun.wait()
time.sleep(0.002)
"""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")


# ---- the current tape of a context ----------------------------------------------------------------


def test_tasks_of_asyncio_have_current_tapes_of_their_own() -> None:
    outside = bt.current_tape()

    async def work(k: int, turns: list[int]) -> float:
        with bt.Tape() as tape:
            x = bt.Value(float(k))
            y = x
            for _ in range(5):
                await asyncio.sleep(0)
                turns.append(k)
                assert bt.current_tape() is tape
                y = y * bt.Value(2.0)
            with tape.scope():
                await asyncio.sleep(0)
                assert bt.current_tape() is tape
            y.backward()
            return x.grad  # type: ignore[no-any-return]

    async def all_of_them() -> list[float]:
        with bt.Tape() as around:
            turns: list[int] = []
            done = await asyncio.gather(*(work(k, turns) for k in (1, 2, 3)))
            assert turns[:6] == [1, 2, 3, 1, 2, 3]  # side by side indeed
            assert bt.current_tape() is around
            return done

    assert asyncio.run(all_of_them()) == [32.0, 32.0, 32.0]
    assert bt.current_tape() is outside


def test_a_task_keeps_the_tape_in_which_it_began() -> None:
    async def later(event: asyncio.Event) -> bt.Tape:
        await event.wait()
        return bt.current_tape()

    async def main() -> None:
        event = asyncio.Event()
        with bt.Tape() as tape:
            task = asyncio.create_task(later(event))
            await asyncio.sleep(0)
        event.set()
        assert await task is tape
        assert bt.current_tape() is not tape

    asyncio.run(main())


def test_generators_that_stop_inside_of_a_tape() -> None:
    outside = bt.current_tape()

    def values() -> Iterator[bt.Tape]:
        with bt.Tape() as tape:
            yield tape

    one, two = values(), values()
    first, second = next(one), next(two)
    assert bt.current_tape() is second
    assert list(one) == []  # leaves its tape, which is not the innermost
    assert bt.current_tape() is second
    assert list(two) == []
    assert bt.current_tape() is outside
    assert first is not second
    for tape in (first, bt.Tape()):
        with pytest.raises(RuntimeError, match="was not entered here, or was left already"):
            tape.__exit__(None, None, None)
    with first, second, first:
        assert bt.current_tape() is first
    assert bt.current_tape() is outside


def test_contexts_and_threads() -> None:
    tape = bt.Tape()

    def enter() -> bt.Tape:
        tape.__enter__()
        return bt.current_tape()

    outside = bt.current_tape()
    context = contextvars.copy_context()
    assert context.run(enter) is tape
    assert bt.current_tape() is outside
    assert context.run(bt.current_tape) is tape
    seen: list[bt.Tape] = []
    for run in (bt.current_tape, lambda: context.run(bt.current_tape), bt.current_tape):
        thread = threading.Thread(target=lambda run=run: seen.append(run()))
        thread.start()
        thread.join()
    assert seen[1] is tape
    assert len({id(t) for t in (*seen, outside)}) == 4  # each thread has its own
    assert bt.current_tape() is outside


def test_a_tape_that_only_a_context_knows_stays() -> None:
    context = contextvars.copy_context()
    context.run(lambda: bt.Tape("float32").__enter__())
    gc.collect()
    assert context.run(lambda: bt.Value(1.5).tape.dtype) == "float32"
    del context
    gc.collect()
    assert bt.Value(1.0).tape.dtype == "float64"


# ---- scopes after large graphs --------------------------------------------------------------------


def test_scopes_count_values_right_after_a_large_graph() -> None:
    """Beyond the tape's size no node counts any Value, whatever was there before."""
    with bt.Tape() as tape:
        x = bt.Value(1.0)
        with tape.scope():
            stale = [x * 2 for _ in range(50_000)]
        for size in (0, 10, 1000):
            with tape.scope():
                inner = [x * 2 for _ in range(size)]
            assert len(tape) == 1
        del stale, inner
        kept = [x * 3 for _ in range(2000)]
        assert len(tape) == 2001
        del kept[1000:]
        assert len(tape) == 1001
        del kept
        assert len(tape) == 1


# ---- another thread's sweep -----------------------------------------------------------------------


def test_gradients_and_marks_wait_for_another_threads_sweep() -> None:
    with bt.Tape() as tape:
        x = bt.Value(1.0)
        y = x
        for _ in range(400_000):
            y = y + x
        view = bt.vector([1.0, 2.0])
        uses = {
            "grad": lambda: y.grad,
            "view's grad": lambda: view.grad,
            "mark": tape.mark,
            "scope": tape.scope().__enter__,
            "copy": lambda: copy.deepcopy(y),
            "pickle": lambda: pickle.dumps(y),
        }

        def sweep(done: threading.Event) -> None:
            while not done.is_set():
                y.backward()

        for name, use in uses.items():
            done = threading.Event()
            thread = threading.Thread(target=sweep, args=(done,))
            thread.start()
            refused = ""
            for _ in range(100_000):
                try:
                    use()  # type: ignore[no-untyped-call]
                except bt.Error as error:
                    refused = str(error)
                    assert "Value(data=" in repr(y)
                    break
            done.set()
            thread.join()
            assert refused == "this tape is in use by a long call of another thread", name


def test_a_scope_forgets_the_views_that_outlive_it() -> None:
    """Whose nodes were rewound counts no more: what takes their place is dropped with its own view."""
    tape = bt.Tape("float64")
    with tape:
        before = len(tape)
        with tape.scope():
            stale = bt.vector(np.zeros(10_000))
            part = stale[100:200]
        fresh = bt.vector(np.ones(10_000))
        assert len(tape) == before + 10_000
        del fresh
        assert len(tape) == before
        del stale, part
        assert len(tape) == before
