"""Model files damaged on purpose: the parts of a file, and ways to change them.

A file whose checksums are updated after a change gets past them, to the checks that follow.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from latentmetric.persistence.model_file import CHECKSUM_KEY, DOCUMENT_KEY

HOSTILE = [
    None, True, False, 0, -1, 1, 3, 2**31, 2**40, 2**63, 10**400, -0.0, 0.5, -1e300, 1e308, 5e-324,
    "", "x", "nan", "../../etc/passwd", "\ud800", "a\x00", "é" * 1000, "__import__('os')", [], {},
    [[]], [1, 2], {"a": 1}, {"by_class": [[1, 2]]}, {"by_class": 3}, [None] * 1000,
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
    arrays: dict[str, dict[str, Any]]
    """The header's entry for each array."""
    data: bytearray

    @classmethod
    def of(cls, content: bytes) -> Opened:
        length = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + length])
        document = json.loads(header.pop("__metadata__")[DOCUMENT_KEY])
        return cls(document, header, bytearray(content[8 + length :]))

    def array(self, name: str) -> np.ndarray:
        """A view of an array's bytes; writing to it changes the file."""
        entry = self.arrays[name]
        start, stop = entry["data_offsets"]
        dtype = {"F32": "<f4", "F64": "<f8", "I64": "<i8"}[entry["dtype"]]
        return np.frombuffer(memoryview(self.data)[start:stop], dtype)

    def update_checksums(self) -> None:
        """Update the checksums of the arrays, if the document has any."""
        if isinstance(self.document.get("checksums"), dict):
            for name, entry in self.arrays.items():
                start, stop = entry["data_offsets"]
                self.document["checksums"][name] = zlib.crc32(self.data[start:stop])

    def closed(self, document: str | None = None, metadata: dict[str, Any] | None = None) -> bytes:
        """The content of the file, optionally with another document or other metadata."""
        text = json.dumps(self.document) if document is None else document
        if metadata is None:
            checksum = zlib.crc32(text.encode(errors="surrogatepass"))
            metadata = {DOCUMENT_KEY: text, CHECKSUM_KEY: f"{checksum:08x}"}
        header = json.dumps({"__metadata__": metadata} | self.arrays).encode()
        return with_header(header, bytes(self.data))


def with_header(header: bytes, data: bytes) -> bytes:
    return len(header).to_bytes(8, "little") + header + data


def flip_bits(content: bytes, generator: np.random.Generator) -> bytes:
    changed = bytearray(content)
    for _ in range(generator.integers(1, 9)):
        changed[generator.integers(len(changed))] ^= 1 << int(generator.integers(8))
    return bytes(changed)


def flip_header_bits(content: bytes, generator: np.random.Generator) -> bytes:
    n_header = 8 + int.from_bytes(content[:8], "little")
    return flip_bits(content[:n_header], generator) + content[n_header:]


def truncate(content: bytes, generator: np.random.Generator) -> bytes:
    return content[: generator.integers(len(content))]


def append(content: bytes, generator: np.random.Generator) -> bytes:
    return content + generator.bytes(int(generator.integers(1, 100)))


def change_length(content: bytes, generator: np.random.Generator) -> bytes:
    near = int.from_bytes(content[:8], "little") + int(generator.integers(-64, 64))
    lengths = [near, 0, 1, 2**20, 2**40, 2**63, 2**64 - 1, len(content), len(content) - 8]
    length = lengths[generator.integers(len(lengths))]
    return length.to_bytes(8, "little") + content[8:]


def change_places(content: bytes, generator: np.random.Generator) -> bytes:
    """Change shapes, offsets and dtypes to too large, too small, or those of another array."""
    opened = Opened.of(content)
    names = list(opened.arrays)
    for _ in range(generator.integers(1, 4)):
        one, other = (opened.arrays[names[generator.integers(len(names))]] for _ in range(2))
        field = ("dtype", "shape", "data_offsets")[generator.integers(3)]
        if generator.random() < 0.4:
            one[field], other[field] = other[field], one[field]
        elif field == "dtype":
            one[field] = ("F32", "F64", "I64", "BF16", "O", 3)[generator.integers(6)]
        else:
            values = [0, 1, -1, 2**31, 2**40, 2**62, 2**64, 1.5, "8", None]
            one[field][generator.integers(len(one[field]))] = values[generator.integers(10)]
    return opened.closed()


def change_names(content: bytes, generator: np.random.Generator) -> bytes:
    opened = Opened.of(content)
    names = list(opened.arrays)
    name = names[generator.integers(len(names))]
    others = ["../../outside", "/etc/passwd", "", "__metadata__2", "x" * 1000, "a\x00b", "latent"]
    entry = opened.arrays.pop(name)
    other = others[generator.integers(len(others))]
    opened.arrays[other] = entry
    opened.document["checksums"][other] = opened.document["checksums"].pop(name)
    return opened.closed()


def change_document(content: bytes, generator: np.random.Generator) -> bytes:
    """Replace or remove values of the document, and update its checksum."""
    opened = Opened.of(content)
    for _ in range(generator.integers(1, 3)):
        holder: Any = opened.document
        while True:
            keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            key = keys[generator.integers(len(keys))]
            if not isinstance(holder[key], dict | list) or not holder[key]:
                break
            if generator.random() < 0.25:
                break
            holder = holder[key]
        if generator.random() < 0.2:
            del holder[key]
            if not holder:
                break
        else:
            holder[key] = HOSTILE[generator.integers(len(HOSTILE))]
    return opened.closed()


def repeat_key(content: bytes, generator: np.random.Generator) -> bytes:
    """Repeat a key of the document or of the header."""
    opened = Opened.of(content)
    names = list(opened.document)
    name = names[generator.integers(len(names))]
    text = json.dumps(opened.document)
    value = json.dumps(HOSTILE[generator.integers(len(HOSTILE))])
    if generator.random() < 0.5:
        return opened.closed(document=f'{text[:-1]}, "{name}": {value}}}')
    length = int.from_bytes(content[:8], "little")
    header = content[8 : 8 + length].rstrip()[:-1]
    return with_header(header + b', "centre": ' + value.encode() + b"}", content[8 + length :])


def nest_deeply(content: bytes, generator: np.random.Generator) -> bytes:
    depth = int(10 ** generator.uniform(1, 5.3))
    opening, closing = (("[", "]"), ('{"a":', "}"))[generator.integers(2)]
    nested = opening * depth + "1" + closing * depth
    opened = Opened.of(content)
    if generator.random() < 0.5:
        return opened.closed(document=nested)
    text = json.dumps(opened.document)
    return opened.closed(document=text[:-1] + f', "more": {nested}}}')


def fill_header(content: bytes, generator: np.random.Generator) -> bytes:
    """Add text that is parsed into as many or as large objects as a header can hold."""
    opened = Opened.of(content)
    bits = [
        "0",
        "[]",
        "{}",
        '{"a":0}',
        '"ab"',
        '"\U0001f600"',
        '"' + "x" * 1000 + '"',
        "1.5",
        "1" * 99,
    ]
    bit = bits[generator.integers(len(bits))]
    many = int(10 ** generator.uniform(3, 7.3)) // (len(bit.encode()) + 1)
    filling = "[" + ",".join([bit] * (many + 1)) + "]"
    key = ("more", "history", "feature_names")[generator.integers(3)]
    opened.document.pop(key, None)
    return opened.closed(document=f'{json.dumps(opened.document)[:-1]}, "{key}": {filling}}}')


def change_numbers(content: bytes, generator: np.random.Generator) -> bytes:
    """Write extreme numbers to arrays, and update their checksums."""
    opened = Opened.of(content)
    names = list(opened.arrays)
    for _ in range(generator.integers(1, 4)):
        array = opened.array(names[generator.integers(len(names))])
        if not len(array):
            continue
        at = generator.integers(len(array), size=generator.integers(1, 4))
        if array.dtype.kind == "i":
            array[at] = [-1, 10**6, -(2**63), 2**63 - 1, 0, 1][generator.integers(6)]
        else:
            with np.errstate(over="ignore"):
                array[at] = HOSTILE_NUMBERS[generator.integers(len(HOSTILE_NUMBERS))]
    opened.update_checksums()
    return opened.closed()


def swap_arrays(content: bytes, generator: np.random.Generator) -> bytes:
    """Swap the names of two arrays, and update the checksums."""
    opened = Opened.of(content)
    names = list(opened.arrays)
    one, other = (names[generator.integers(len(names))] for _ in range(2))
    opened.arrays[one], opened.arrays[other] = opened.arrays[other], opened.arrays[one]
    opened.update_checksums()
    return opened.closed()


OLD_CHECKSUMS = [flip_bits, flip_header_bits, truncate, append, change_length, change_places]
"""Changes that keep the old checksums: a file that still loads gives the same results."""

NEW_CHECKSUMS = [
    change_names, change_document, repeat_key, nest_deeply, fill_header, change_numbers,
    swap_arrays,
]  # fmt: skip
