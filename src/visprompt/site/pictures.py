"""Pictures on pages, with as many bytes as they need: a palette of 256 colours in the place of four bytes a pixel."""

import base64
import functools
import io
import re

from PIL import Image

PICTURE = re.compile(r"data:image/png;base64,((?:[A-Za-z0-9+/=]|\\n)+)")  # in JSON a line ends in \n, and an attribute in \"


def smaller(text: str) -> str:
    """A text with every PNG in it written with a palette, where that is smaller."""
    return PICTURE.sub(lambda match: "data:image/png;base64," + recoded(match[1].replace("\\n", "")), text)


@functools.lru_cache(maxsize=None)
def recoded(data: str) -> str:
    """A PNG in base 64 with a palette; as it was where it has one, or would be larger."""
    with Image.open(io.BytesIO(base64.b64decode(data))) as picture:
        if picture.mode not in ("RGB", "RGBA"):
            return data
        flat = Image.new("RGB", picture.size, "white")
        flat.paste(picture, mask=picture.getchannel("A") if picture.mode == "RGBA" else None)
    buffer = io.BytesIO()
    flat.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(buffer, "PNG", optimize=True)
    new = base64.b64encode(buffer.getvalue()).decode()
    return new if len(new) < len(data) else data
