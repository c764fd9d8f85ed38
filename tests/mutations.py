"""Model files damaged on purpose: the parts of a file, and ways to change them.

A file whose checksum is updated after a change gets past it, to the checks that follow.
"""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import safetensors.numpy

from latentmetric.persistence.model_file import DOCUMENT_KEY, _checksum

HOSTILE = [
    None, True, 0, -1, 1, 3, 2**31, 2**40, 2**63, 10**400, 0.5, -1e300, 1e308, 5e-324, float("nan"),
    "", "x", "../../etc/passwd", "\ud800", "a\x00", "é" * 1000, "__import__('os')", "passthrough",
    [], {}, [[]], [1, 2], {"a": 1}, [None] * 1000, {"$pairs": [[1, 2]]}, {"$pairs": 3},
    {"$array": "centre"}, {"$array": "centre", "transposed": 1}, {"$tuple": [1, 2]},
    {"$values": ["a", "b"], "dtype": "str"}, {"$values": [1], "dtype": "O"}, {"slice": [0, 9**9]},
    {"$type": "float32"}, {"$type": "os"}, {"$code": "1"},
]  # fmt: skip

HOSTILE_NUMBERS = [np.nan, np.inf, -np.inf, 1e308, -1e308, 1e38, 5e-324, 0.0, -1.0]

CODE_EVENTS = {
    "exec", "compile", "import", "code.__new__", "marshal.loads", "pickle.find_class", "os.system",
    "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "ctypes.dlopen", "socket.connect",
}  # fmt: skip
"""Python audit events that would mean that a file's content was executed."""


@dataclass
class Opened:
    """A model file in parts."""

    document: dict[str, Any]
    arrays: dict[str, np.ndarray]

    @classmethod
    def of(cls, content: bytes) -> Opened:
        length = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + length])
        document = json.loads(header["__metadata__"][DOCUMENT_KEY])
        arrays = safetensors.numpy.load(content)
        return cls(document, {name: array.copy() for name, array in arrays.items()})

    def closed(self, text: str | None = None) -> bytes:
        """The content of the file, with a new checksum or another document."""
        document = {name: value for name, value in self.document.items() if name != "crc32"}
        text = text or json.dumps(document | {"crc32": _checksum(document, self.arrays)})
        return safetensors.numpy.save(self.arrays, {DOCUMENT_KEY: text})

    def one_of(self, generator: np.random.Generator) -> str:
        return list(self.arrays)[generator.integers(len(self.arrays))]


def flip_bits(content: bytes, generator: np.random.Generator) -> bytes:
    changed = bytearray(content)
    for _ in range(generator.integers(1, 9)):
        changed[generator.integers(len(changed))] ^= 1 << int(generator.integers(8))
    return bytes(changed)


def truncate(content: bytes, generator: np.random.Generator) -> bytes:
    return content[: generator.integers(len(content))]


def append(content: bytes, generator: np.random.Generator) -> bytes:
    return content + generator.bytes(int(generator.integers(1, 100)))


def change_length(content: bytes, generator: np.random.Generator) -> bytes:
    near = int.from_bytes(content[:8], "little") + int(generator.integers(-64, 64))
    lengths = [near, 0, 1, 2**20, 2**40, 2**63, 2**64 - 1, len(content), len(content) - 8]
    return lengths[generator.integers(len(lengths))].to_bytes(8, "little") + content[8:]


def change_header(content: bytes, generator: np.random.Generator) -> bytes:
    """Change shapes, offsets and dtypes to too large, too small, or those of another array."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    names = [name for name in header if name != "__metadata__"]
    one, other = (header[names[generator.integers(len(names))]] for _ in range(2))
    field = ("dtype", "shape", "data_offsets")[generator.integers(3)]
    if generator.random() < 0.4:
        one[field], other[field] = other[field], one[field]
    elif field == "dtype":
        one[field] = ("F32", "F64", "I64", "BF16", "F8_E4M3", "BOOL", "O", 3)[generator.integers(8)]
    elif one[field]:
        values = [0, 1, -1, 2**31, 2**40, 2**62, 2**64, 1.5, "8", None]
        one[field][generator.integers(len(one[field]))] = values[generator.integers(10)]
    encoded = json.dumps(header).encode()
    return len(encoded).to_bytes(8, "little") + encoded + content[8 + length :]


def change_document(content: bytes, generator: np.random.Generator) -> bytes:
    """Replace or remove values of the document."""
    opened = Opened.of(content)
    for _ in range(generator.integers(1, 3)):
        holder: Any = opened.document
        while True:
            keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            key = keys[generator.integers(len(keys))]
            is_leaf = not isinstance(holder[key], dict | list) or not holder[key]
            if is_leaf or generator.random() < 0.15:
                break
            holder = holder[key]
        if generator.random() < 0.2 and len(holder) > 1:
            del holder[key]
        else:
            holder[key] = deepcopy(HOSTILE[generator.integers(len(HOSTILE))])
    return opened.closed()


def nest_deeply(content: bytes, generator: np.random.Generator) -> bytes:
    depth = int(10 ** generator.uniform(1, 5.3))
    opening, closing = (("[", "]"), ('{"a":', "}"))[generator.integers(2)]
    nested = opening * depth + "1" + closing * depth
    opened = Opened.of(content)
    return opened.closed(f'{json.dumps(opened.document)[:-1]}, "more": {nested}}}')


def fill_document(content: bytes, generator: np.random.Generator) -> bytes:
    """Add text that is parsed into as many or as large objects as a document can hold."""
    bits = ["0", "[]", "{}", '{"a":0}', '"ab"', '"' + "x" * 1000 + '"', "1.5", "1" * 99]
    bit = bits[generator.integers(len(bits))]
    many = int(10 ** generator.uniform(3, 7)) // (len(bit) + 1)
    opened = Opened.of(content)
    key = ("more", "steps", "model")[generator.integers(3)]
    opened.document.pop(key, None)
    filling = "[" + ",".join([bit] * (many + 1)) + "]"
    return opened.closed(f'{json.dumps(opened.document)[:-1]}, "{key}": {filling}}}')


def change_numbers(content: bytes, generator: np.random.Generator) -> bytes:
    """Write extreme numbers to arrays."""
    opened = Opened.of(content)
    for _ in range(generator.integers(1, 4)):
        array = opened.arrays[opened.one_of(generator)].reshape(-1)
        if not len(array):
            continue
        at = generator.integers(len(array), size=generator.integers(1, 4))
        if array.dtype.kind == "i":
            array[at] = [-1, 100, -128, 127, 0, 1][generator.integers(6)]
        elif array.dtype.kind == "u":
            array[at] = generator.integers(256)
        else:
            with np.errstate(all="ignore"):
                array[at] = HOSTILE_NUMBERS[generator.integers(len(HOSTILE_NUMBERS))]
    return opened.closed()


OLD_CHECKSUMS = [flip_bits, truncate, append, change_length, change_header]
"""Changes that keep the old checksum: a file that still loads gives the same results."""

NEW_CHECKSUMS = [change_document, nest_deeply, fill_document, change_numbers]
