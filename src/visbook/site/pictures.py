"""Pictures on pages, with as many bytes as they need: 256 colours in the place of four bytes a
pixel, as WebP."""

import base64
import functools
import io
import re

from PIL import Image

# in JSON a line ends in \n, and an attribute in \"
PICTURE = re.compile(r"data:image/png;base64,((?:[A-Za-z0-9+/=]|\\n)+)")


def smaller(text: str) -> str:
    """A text with every PNG in it written with a palette as WebP, where that is smaller."""
    return PICTURE.sub(lambda match: recoded(match[1].replace("\\n", "")), text)


@functools.lru_cache(maxsize=None)
def recoded(data: str) -> str:
    """The address of a PNG in base 64, as WebP with 256 colours; as it was where it has a palette,
    or would be larger."""
    old = f"data:image/png;base64,{data}"
    with Image.open(io.BytesIO(base64.b64decode(data))) as picture:
        if picture.mode not in ("RGB", "RGBA"):
            return old
        flat = Image.new("RGB", picture.size, "white")
        flat.paste(picture, mask=picture.getchannel("A") if picture.mode == "RGBA" else None)
    buffer = io.BytesIO()
    few = flat.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).convert(
        "RGB"
    )
    few.save(buffer, "WEBP", lossless=True)
    new = "data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode()
    return new if len(new) < len(old) else old
