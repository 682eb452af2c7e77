# share/burtorch/gdb/burtorch_gdb.py — pretty printers of Value, View and Tape for GDB
# SPDX-License-Identifier: MIT
"""Shows what a Value holds instead of a pointer and an index.

(gdb) source PREFIX/share/burtorch/gdb/burtorch_gdb.py
(gdb) print g
$1 = Value(612.5, grad 1, BinaryDiv, node 8, "g")
(gdb) print tape
$2 = Tape(9 nodes, 7 operations) = {[0] = -41 (grad -35) leaf "a", …}

A line in ~/.gdbinit loads it always. burtorch/viz/debug.hpp adds functions to call at a breakpoint.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gdb
import gdb.printing

CODES_PER_OPERATION = 4  # codeOf() in op/table.hpp
VISITED = 0x8000  # Record::visited in tape/tape.hpp
FEW = 200  # how many elements are looked at where GDB would print no more anyway


def field(value: Any, name: str) -> Any:
    """Return a member, or None where a compile-time switch has removed it."""
    try:
        return value[name]
    except gdb.error:
        return None


class Tape:
    """What the arrays of a burtorch::Tape say."""

    def __init__(self, tape: Any) -> None:
        self.tape = tape
        cursor = tape["cursor_"]
        both = field(cursor, "nodesAndRecords_")  # a tape for several threads
        if both is None:
            self.nodes = int(cursor["nodes_"]["used"])
            self.records = int(cursor["records_"]["used"])
        else:
            word = int(both["_M_i"])
            self.nodes, self.records = word >> 32, word & 0xFFFFFFFF

    def number(self, column: str, index: int) -> Any:
        return self.tape[column][index]

    def record_of(self, node: int) -> Any | None:
        """Return the record that made a node; None for a leaf. They stand in order: bisect."""
        low, high = 0, self.records
        while low < high:
            middle = (low + high) // 2
            if int(self.tape["records_"][middle]["result"]) < node:
                low = middle + 1
            else:
                high = middle
        if low == self.records:
            return None
        record = self.tape["records_"][low]
        results = int(record["b"]) if self.operation(record) == "Block" else 1
        return record if node > int(record["result"]) - results else None

    def operation(self, record: Any) -> str:
        code = (int(record["word"]) & (VISITED - 1)) // CODES_PER_OPERATION + 1
        scope = str(self.tape.type.strip_typedefs()).split("::Tape<")[0]
        name = str(gdb.Value(code).cast(gdb.lookup_type(f"{scope}::Op")))
        return name.rsplit("::e", 1)[-1]

    def operation_of(self, node: int) -> str:
        record = self.record_of(node)
        if record is None:
            return "leaf"
        name = self.operation(record)
        return self.block_name(record) if name == "Block" else name

    def block_name(self, record: Any) -> str:
        """Return the name in the methods, to which the block's description starts with a pointer."""
        start = self.tape["operands_"] + int(record["a"])
        pointer = gdb.lookup_type("char").pointer()
        name = start.cast(pointer.pointer().pointer()).dereference().dereference()
        return str(name.string())

    def label_of(self, node: int) -> str:
        labels = field(self.tape["labels_"], "labels_")
        if labels is None:
            return ""
        at, end = labels["_M_impl"]["_M_start"], labels["_M_impl"]["_M_finish"]
        while at != end:
            if int(at["first"]) == node:
                text = at["second"]
                return str(text["_M_dataplus"]["_M_p"].string("utf-8", "replace"))
            at += 1
        return ""


def tape_of(handle: Any) -> Tape | None:
    """Return the tape that a handle points to; None for an empty one."""
    pointer = handle["tape_"]
    if int(pointer) == 0 or bool(pointer.dereference()["isNowhere_"]):
        return None
    return Tape(pointer.dereference())


class ValuePrinter:
    """burtorch::Value"""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.index = int(value["index_"])
        self.tape = tape_of(value)

    def is_stale(self) -> bool:
        assert self.tape is not None
        if self.index >= self.tape.nodes:
            return True
        birth = field(self.value, "birth_")
        return birth is not None and birth != self.tape.number("births_", self.index)

    def to_string(self) -> str:
        if self.tape is None:
            return "Value()"
        if self.is_stale():
            return f"Value(stale, node {self.index})"
        data = self.tape.number("values_", self.index)
        grad = self.tape.number("grads_", self.index)
        label = self.tape.label_of(self.index)
        named = f', "{label}"' if label else ""
        return (
            f"Value({data}, grad {grad}, {self.tape.operation_of(self.index)}, "
            f"node {self.index}{named})"
        )


class ViewPrinter:
    """burtorch::View"""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.first = int(value["index_"])
        self.rows, self.cols = int(value["rows_"]), int(value["cols_"])
        self.tape = tape_of(value)

    def is_stale(self) -> bool:
        assert self.tape is not None
        end = self.first + self.rows * self.cols
        if end > self.tape.nodes:
            return True
        birth = field(self.value, "birth_")
        return end != self.first and birth not in (None, self.tape.number("births_", end - 1))

    def to_string(self) -> str:
        if self.tape is None:
            return "View()"
        state = "stale" if self.is_stale() else self.tape.operation_of(self.first)
        return f"View({self.rows}×{self.cols}, {state}, from node {self.first})"

    def children(self) -> Iterator[tuple[str, str]]:
        if self.tape is None or self.is_stale():
            return
        for i in range(min(self.rows * self.cols, FEW)):
            data = self.tape.number("values_", self.first + i)
            yield f"[{i}]", f"{data} (grad {self.tape.number('grads_', self.first + i)})"


class TapePrinter:
    """burtorch::Tape"""

    def __init__(self, value: Any) -> None:
        self.tape = Tape(value)

    def to_string(self) -> str:
        return f"Tape({self.tape.nodes} nodes, {self.tape.records} operations)"

    def children(self) -> Iterator[tuple[str, str]]:
        for i in range(min(self.tape.nodes, FEW)):
            data, grad = self.tape.number("values_", i), self.tape.number("grads_", i)
            label = self.tape.label_of(i)
            named = f' "{label}"' if label else ""
            yield f"[{i}]", f"{data} (grad {grad}) {self.tape.operation_of(i)}{named}"


# Name of the class template, printer. A new handle gets a line here.
PRINTERS = {"Value": ValuePrinter, "View": ViewPrinter, "Tape": TapePrinter}


def make_printers() -> gdb.printing.RegexpCollectionPrettyPrinter:
    printers = gdb.printing.RegexpCollectionPrettyPrinter("burtorch")
    for name, printer in PRINTERS.items():
        printers.add_printer(name, rf"^burtorch::(layout_\w+::)?{name}<.*>$", printer)
    return printers


gdb.printing.register_pretty_printer(None, make_printers(), replace=True)
