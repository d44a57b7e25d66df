"""Damage to files: bytes of any format, words of texts, and arrays, columns or headers of binary ones."""

import re
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

WORDS = ["nan", "inf", "-inf", "1e400", "1e30", "-7", "999999999999", "oops", "", "1,5", "0", "1.5", "--",
         "1e", "#", "99999999999999999999999", "NA", "\u00bd", '"', "\t", ";", "\x00", "true"]  # fmt: skip


@st.composite
def bytes_of(draw, content: bytes) -> bytes:
    """Bytes that are cut, flipped, removed, repeated, inserted, or of another file."""
    size = len(content)
    place = draw(st.integers(0, size - 1) | st.integers(0, min(size - 1, 600)))
    kind = draw(
        st.sampled_from(["cut", "flip", "flips", "remove", "repeat", "insert", "zero", "ones", "grow"])
    )
    length = draw(st.sampled_from([1, 2, 4, 8, 64]) | st.integers(1, 2000))
    if kind == "cut":
        return content[:place]
    if kind == "flip":
        return content[:place] + bytes([content[place] ^ draw(st.integers(1, 255))]) + content[place + 1 :]
    if kind == "flips":
        changed = bytearray(content)
        for _ in range(draw(st.integers(2, 20))):
            changed[draw(st.integers(0, size - 1))] = draw(st.integers(0, 255))
        return bytes(changed)
    if kind == "remove":
        return content[:place] + content[place + length :]
    if kind == "repeat":
        return content[: place + length] + content[place:]
    if kind == "insert":
        return content[:place] + draw(st.binary(min_size=1, max_size=20)) + content[place:]
    if kind == "grow":
        return content + draw(st.binary(min_size=1, max_size=20))
    filler = b"\0" if kind == "zero" else b"\xff"
    end = min(size, place + length)
    return content[:place] + filler * (end - place) + content[end:]


@st.composite
def text_of(draw, content: bytes) -> bytes:
    """A text of which a word or a line is replaced, removed, repeated or moved, or fields are."""
    lines = content.decode("latin-1").split("\n")
    k = draw(st.integers(0, len(lines) - 1) | st.integers(0, min(len(lines) - 1, 15)))
    kind = draw(
        st.sampled_from(
            ["word", "field", "more", "line", "twice", "swap", "empty", "stray", "head", "column"]
        )
    )
    words = re.split(r"([ ,:=]+)", lines[k])
    at = 2 * draw(st.integers(0, len(words) // 2))
    if kind == "word":
        words[at] = draw(st.sampled_from(WORDS))
        lines[k] = "".join(words)
    elif kind == "field":
        lines[k] = "".join(words[:at] + words[at + 2 :])
    elif kind == "more":
        lines[k] += (words[1] if len(words) > 1 else " ") + draw(st.sampled_from(WORDS))
    elif kind == "line":
        del lines[k]
    elif kind == "twice":
        lines.insert(k, lines[k])
    elif kind == "swap":
        other = draw(st.integers(0, len(lines) - 1))
        lines[k], lines[other] = lines[other], lines[k]
    elif kind == "empty":
        lines[k] = ""
    elif kind == "stray":
        lines.insert(k, draw(st.sampled_from(WORDS)))
    elif kind == "head":
        lines = lines[k:]
    else:
        lines = ["".join((w := re.split(r"([ ,]+)", line))[:at] + w[at + 2 :]) for line in lines]
    return "\n".join(lines).encode("utf-8")


@st.composite
def arrays_of(draw, path: Path, target: Path) -> None:
    """Write the arrays of a file of numpy with one of them changed."""
    if path.suffix == ".npz":
        with np.load(path) as stored:
            arrays = {name: stored[name] for name in stored.files}
    else:
        arrays = {"": np.load(path)}
    name = draw(st.sampled_from(sorted(arrays)))
    kind = draw(st.sampled_from(["value", "drop", "shape", "rows", "dtype", "empty", "axes", "huge", "name"]))
    array = arrays[name]
    if kind == "value" and array.size and array.dtype.kind in "fiu":
        values = (
            [np.nan, np.inf, 1e30, 1e300, -1.0, 0.0]
            if array.dtype.kind == "f"
            else [-1, 60, 10**9, 2**31 - 1]
        )
        array = array.copy()
        array.flat[draw(st.integers(0, array.size - 1))] = draw(st.sampled_from(values))
    elif kind == "rows" and array.ndim:
        array = array[: draw(st.integers(0, max(0, len(array) - 1)))]
    elif kind == "shape":
        array = array.reshape(-1)
    elif kind == "dtype" and array.dtype.kind in "fiub":
        array = array.astype(
            draw(st.sampled_from(["c16", "O", "S8", "U8", "?", "f2", "f4", "i1", "u8", "m8[s]", ">f8"]))
        )
    elif kind == "empty":
        array = array[..., :0] if array.ndim else array
    elif kind == "axes":
        array = array[None]
    elif kind == "huge" and array.dtype.kind in "fiu" and array.dtype.itemsize == 8:
        array = array * (2**40 if array.dtype.kind != "f" else 1e200)
    arrays[name] = array
    if kind == "drop":
        del arrays[name]
    if kind == "name":
        arrays[draw(st.sampled_from(["x", "points", "shape", "format", "trace", "edges"]))] = arrays.pop(name)
    with np.errstate(all="ignore"):
        if path.suffix == ".npz":
            np.savez(target, **arrays)
        else:
            np.save(target, next(iter(arrays.values()), np.empty(0)))
