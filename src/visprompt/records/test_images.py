"""Which test images a run classified correctly, as one bit each."""

import base64
import binascii

import numpy as np

NAME = "right"  # of the value in a record


def packed(right: np.ndarray) -> dict:
    """Bits (N,) bool as JSON values, eight to a byte."""
    return {"images": len(right), "bits": base64.b64encode(np.packbits(right).tobytes()).decode()}


def unpacked(values: dict) -> np.ndarray | None:
    """The bits (N,) bool of a record's values; None if it has none.

    Raises:
        ValueError: they are damaged, or do not give the record's accuracy.
    """
    text = values.get(NAME)
    if text is None:
        return None
    try:
        whole = np.frombuffer(base64.b64decode(text["bits"], validate=True), np.uint8)
        right = np.unpackbits(whole, count=text["images"]).astype(bool)
    except (TypeError, KeyError, binascii.Error) as error:
        raise ValueError(f"its bits of test images are {error}") from None
    accuracy = round(100 * float(right.mean()), 4)
    if len(whole) != -(-len(right) // 8) or accuracy != values["test"]:
        raise ValueError(f"its bits of test images give {accuracy} %, and it says {values['test']}")
    return right
