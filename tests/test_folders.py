"""Folders of pictures: what is read is what the files hold; whatever is wrong with them is said in
one line."""

import io
import os
import shutil
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from visprompt.__main__ import main
from visprompt.data import resizing
from visprompt.data.folders import LISTS
from visprompt.data.tasks import check_task, load_task
from visprompt.errors import BadInput


@pytest.fixture
def folder(tmp_path):
    """A task folder with six tiny pictures; left half dark, right half light."""
    (tmp_path / "toy" / "images").mkdir(parents=True)
    picture = np.zeros((10, 20, 3), np.uint8)
    picture[:, 10:] = 200
    for i in range(6):
        Image.fromarray(picture + i).save(tmp_path / "toy" / "images" / f"a {i}.png")
    for k, file in enumerate(LISTS.values()):
        (tmp_path / "toy" / file).write_text(
            f"images/a {2 * k}.png 0\nimages/a {2 * k + 1}.png 1\n"
        )
    (tmp_path / "toy" / "classes.txt").write_text("cat\ndog\n")
    return tmp_path


def test_folder_task(folder):
    task = load_task("toy", folder, image_size=8)
    assert task.class_names == ("cat", "dog") and task.resize == "direct" and task.size == 8
    assert task.train[0].shape == (2, 3, 8, 8) and task.test[1].tolist() == [0, 1]
    assert (
        task.val[0][1, :, 4, 0].tolist() == [3] * 3
        and task.val[0][1, :, 4, 7].tolist() == [203] * 3
    )
    assert load_task("toy", folder).size == 224
    cropped = load_task("toy", folder, image_size=8, resize="crop")
    assert cropped.train[0].shape == (2, 3, 8, 8) and not torch.equal(
        cropped.train[0], task.train[0]
    )
    # still both halves
    assert cropped.train[0][0, 0, 4, 0] < 20 < 180 < cropped.train[0][0, 0, 4, 7]
    (folder / "toy" / "classes.txt").unlink()
    assert load_task("toy", folder, image_size=8).class_names == ("0", "1")


def test_a_picture_is_resized_by_the_kernel_that_is_asked_for(folder):
    with Image.open(folder / "toy/images/a 0.png") as picture:
        direct = np.asarray(picture.resize((8, 8), Image.BICUBIC))
        centre = np.asarray(picture.resize((20, 10), Image.BICUBIC).crop((6, 1, 14, 9)))
    for resize, wanted in {"direct-bicubic": direct, "crop-bicubic": centre}.items():
        found = load_task("toy", folder, image_size=8, resize=resize)
        assert np.array_equal(found.train[0][0].permute(1, 2, 0), wanted) and found.resize == resize
        plain = load_task("toy", folder, image_size=8, resize=resize.removesuffix("-bicubic"))
        # which keeps 20 x 10 as they are
        assert torch.equal(plain.train[0], found.train[0]) == (resize == "crop-bicubic")


def test_released_codes_rules_are_a_centred_square_and_no_antialiasing(folder):
    with Image.open(folder / "toy/images/a 0.png") as picture:
        short = picture.resize((16, 8), Image.BICUBIC).crop((4, 0, 12, 8))
        pixels = torch.from_numpy(np.array(picture)).permute(2, 0, 1)[None].float()
    nearest = torch.nn.functional.interpolate(pixels, (8, 8), mode="bilinear")[0]
    wanted = {
        resizing.CENTRE: torch.from_numpy(np.array(short)).permute(2, 0, 1),
        resizing.ALIASED: nearest.round().to(torch.uint8),
    }
    for rule, image in wanted.items():
        task = resizing.load_resized("toy", folder, image_size=8, resize=rule)
        assert torch.equal(task.train[0][0], image) and task.resize == rule
        other = load_task("toy", folder, image_size=8, resize="direct")
        assert not torch.equal(other.train[0], task.train[0])
        check_task(task)
        drawn = resizing.load_resized("position", image_size=16, resize=rule)
        assert drawn.size == 16 and drawn.resize == rule
    assert resizing.load_resized("toy", folder, image_size=8).resize == "direct"


@pytest.mark.refused
@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        (
            "train800.txt",
            "images/a 0.png 0\nimages/none.png 1\n",
            "train800.txt, line 2: image .*none.png",
        ),
        ("val200.txt", "images/a 0.png 2\n", "val200.txt, line 1: label 2 is none of 2 classes"),
        ("val200.txt", "images/a 0.png -1\n", "line 1: label -1 is none of"),
        (
            "test.txt",
            "\nimages/a 0.png one\n",
            "test.txt, line 2: 'images/a 0.png one' is not 'rel",
        ),
        ("test.txt", "7\n", r"test.txt, line 1: '7' is not"),
        ("test.txt", "\n", r"test.txt lists no image"),
        ("images/a 3.png", "no picture", "val200.txt, line 2: image .*a 3.png cannot be read"),
    ],
)
def test_bad_folders_say_where(folder, file, content, says):
    (folder / "toy" / file).write_text(content)
    with pytest.raises(BadInput, match=says) as caught:
        load_task("toy", folder, image_size=8)
    assert "\n" not in str(caught.value)


def test_truncated_image_is_named(folder):
    path = folder / "toy" / "images" / "a 5.png"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(BadInput, match=r"test.txt, line 2: image .*a 5.png cannot be read"):
        load_task("toy", folder, image_size=8)


def test_missing_list_folder_and_wrong_names(folder):
    with pytest.raises(BadInput, match="Did you mean 'toy'"):
        load_task("tou", folder)
    with pytest.raises(BadInput, match="nowhere is not a folder"):
        load_task("toy", folder / "nowhere")
    with pytest.raises(BadInput, match="Did you mean 'digits'"):
        load_task("digit")
    with pytest.raises(BadInput, match="Did you mean 'crop'"):
        load_task("toy", folder, resize="cropped")
    with pytest.raises(BadInput, match="at least 1 pixel"):
        load_task("toy", folder, image_size=0)
    (folder / "toy" / "test.txt").unlink()
    with pytest.raises(BadInput, match="test.txt is missing"):
        load_task("toy", folder)


# Pictures that are read: (mode or name, file's bytes) -> the bytes that a task has of them.

DEEP = [
    0,
    128,
    129,
    257,
    258,
    4095,
    5000,
    20000,
    32767,
    32768,
    40000,
    50000,
    60000,
    65000,
    65406,
    65535,
]
DEEP = np.array(DEEP).reshape(4, 4)
EIGHT = np.round(DEEP / 257).astype(np.uint8)  # 65535 is 255 x 257


def encoded(image, format, **more) -> bytes:
    """An image file of a format."""
    file = io.BytesIO()
    image.save(file, format, **more)
    return file.getvalue()


def tiff(values, bits: int, photometric=1, sample=1, order="<") -> bytes:
    """A grey TIFF (4 x 4) from packed values; sample 1, 2, 3: whole, signed, float."""
    data = values if isinstance(values, bytes) else np.ascontiguousarray(values).tobytes()
    tags = {
        256: 4,
        257: 4,
        258: bits,
        259: 1,
        262: photometric,
        273: 8,
        277: 1,
        278: 4,
        279: len(data),
        339: sample,
    }
    start = struct.pack(order + "2sHI", b"II" if order == "<" else b"MM", 42, 8 + len(data))
    entries = b"".join(struct.pack(order + "HHII", tag, 4, 1, value) for tag, value in tags.items())
    return start + data + struct.pack(order + "H", len(tags)) + entries + bytes(4)


def one_picture(root: Path, content: bytes, name="images/a 0.png"):
    """What the task of a folder has of a 4 x 4 picture (4, 4, 3)."""
    (root / "toy" / name).write_bytes(content)
    return load_task("toy", root, image_size=4).train[0][0].numpy().transpose(1, 2, 0)


DEEP_FILES = {
    "PNG": encoded(Image.fromarray(DEEP.astype(np.uint16)), "PNG"),
    "TIFF": tiff(DEEP.astype("<u2"), 16),
    "TIFF of the other byte order": tiff(DEEP.astype(">u2"), 16, order=">"),
    "TIFF by Pillow": encoded(Image.fromarray(DEEP.astype(np.uint16)), "TIFF"),
    "PGM": b"P5 4 4 65535 " + DEEP.astype(">u2").tobytes(),
    "JPEG 2000": encoded(Image.fromarray(DEEP.astype(np.uint16)), "JPEG2000"),
}


@pytest.mark.parametrize("kind", DEEP_FILES)
def test_sixteen_bits_become_eight(folder, kind):
    """65535 is white, 0 is black, and what lies between is in proportion, rounded."""
    read = one_picture(folder, DEEP_FILES[kind])
    assert np.array_equal(read, EIGHT[..., None].repeat(3, -1))


RAMP = (np.arange(16).reshape(4, 4) * 17).astype(np.uint8)
COLOURS = np.stack([RAMP, RAMP.T, 255 - RAMP], -1)


def palette(**more):
    image = Image.fromarray(np.arange(16, dtype=np.uint8).reshape(4, 4)).convert("L")
    image.putpalette(COLOURS.reshape(-1).tolist())
    return encoded(image, "PNG", **more)


def turned():
    """A picture whose EXIF says that it lies on its side."""
    exif = Image.Exif()
    exif[0x0112] = 6
    return encoded(Image.fromarray(COLOURS), "PNG", exif=exif)


def deep_colours() -> bytes:
    """A PNG of 16 bits a channel, which Pillow cannot write."""
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in COLOURS.astype(int) * 257)
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", 4, 4, 16, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )


READ = {
    "RGB": (encoded(Image.fromarray(COLOURS), "PNG"), COLOURS),
    "RGB of 16 bits": (deep_colours(), COLOURS),
    "PPM of 16 bits": (b"P6 4 4 65535 " + (COLOURS * 257.0).astype(">u2").tobytes(), COLOURS),
    "grey": (encoded(Image.fromarray(RAMP), "PNG"), RAMP),
    "one bit": (encoded(Image.fromarray(RAMP > 99), "PNG"), (RAMP > 99) * np.uint8(255)),
    "palette": (palette(), COLOURS),
    "palette with a transparent colour": (palette(transparency=3), COLOURS),
    "alpha is dropped": (encoded(Image.fromarray(np.dstack([COLOURS, RAMP])), "PNG"), COLOURS),
    "grey with alpha": (encoded(Image.fromarray(np.dstack([RAMP, RAMP.T]), "LA"), "PNG"), RAMP),
    "CMYK without black": (
        encoded(Image.fromarray(np.dstack([255 - COLOURS, RAMP * 0]), "CMYK"), "TIFF"),
        COLOURS,
    ),
    "black is none in TIFF": (tiff(255 - RAMP, 8, photometric=0), RAMP),
    "EXIF does not turn it": (turned(), COLOURS),
    "first frame": (
        encoded(
            Image.fromarray(RAMP), "GIF", save_all=True, append_images=[Image.new("L", (4, 4))]
        ),
        RAMP,
    ),
}


@pytest.mark.parametrize("kind", READ)
def test_other_pictures_are_read_as_they_are(folder, kind):
    content, expected = READ[kind]
    expected = expected if expected.ndim == 3 else expected[..., None].repeat(3, -1)
    assert np.array_equal(one_picture(folder, content), expected)


# What is written in another way than usual and has one meaning all the same.


@pytest.mark.parametrize(
    "content",
    [
        b"images/a 0.png 0\nimages/a 1.png 1",
        b"\xef\xbb\xbfimages/a 0.png 0\nimages/a 1.png 1\n",
        b"images/a 0.png 0\r\nimages/a 1.png 1\r\n",
        b"images/a 0.png 0\rimages/a 1.png 1\r",
        b"\n  images/a 0.png\t0 \n\n./images//a 1.png   1\n\n",
    ],
    ids=["no last newline", "byte order mark", "CRLF", "CR", "tabs, blanks and empty lines"],
)
def test_lists_of_other_editors_are_read(folder, content):
    expected = load_task("toy", folder, image_size=4).fingerprint
    (folder / "toy" / "train800.txt").write_bytes(content)
    assert load_task("toy", folder, image_size=4).fingerprint == expected


def test_names_are_read_with_all_letters(folder):
    name = "images/\u00e9\u2028\u85e4.png"
    (folder / "toy" / "images" / "a 0.png").rename(folder / "toy" / name)
    (folder / "toy" / "train800.txt").write_text(f"{name} 0\nimages/a 1.png 1\n", encoding="utf-8")
    (folder / "toy" / "classes.txt").write_bytes("\ufeffch\u00e8vre\r\n\u732b\r\n\r\n".encode())
    assert load_task("toy", folder, image_size=4).class_names == ("ch\u00e8vre", "\u732b")


def test_links_to_elsewhere_are_the_users_own(folder, tmp_path_factory):
    """Lists stay inside the folder by name; what a name stands for is up to whoever made the
    link."""
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "images"
    expected = load_task("toy", folder, image_size=4).fingerprint
    (folder / "toy" / "images").rename(elsewhere)
    (folder / "toy" / "images").symlink_to(elsewhere)
    assert load_task("toy", folder, image_size=4).fingerprint == expected


def test_whole_numbers_of_numpy_are_sizes_too(folder):
    task = load_task("toy", str(folder), np.int64(1), image_size=np.int32(4))
    assert task.train[0].shape == (1, 3, 4, 4) and len(task.test[1]) == 2


# Everything else is refused, in one line.


def write(file, content):
    """Another content, text or bytes, of one file of the task's folder."""
    return lambda root: (root / "toy" / file).write_bytes(
        content if isinstance(content, bytes) else content.encode()
    )


def put(make, *names):
    """Something else in place of a file of the task's folder."""

    def change(root):
        for path in (root / "toy" / name for name in names):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
            make(path)

    return change


def circle(path):
    """A link to itself."""
    path.symlink_to(path)


def nowhere(path):
    """A link to nothing."""
    path.symlink_to("none")


def declared(wide, high) -> bytes:
    """The head of a PNG that says it is so large."""
    head = b"IHDR" + struct.pack(">IIBBBBB", wide, high, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + struct.pack(">I", 13)
        + head
        + struct.pack(">I", zlib.crc32(head))
        + b"\0\0\4\0IDAT"
    )


def numbered(*labels):
    """Lists without classes.txt: the training list has these labels."""

    def change(root):
        (root / "toy" / "classes.txt").unlink()
        write(
            "train800.txt", "".join(f"images/a {i}.png {label}\n" for i, label in enumerate(labels))
        )(root)

    return change


NOISE = np.random.default_rng(0).integers(0, 256, (40, 40, 3)).astype(np.uint8)
OK = "images/a 0.png 0\n"
DEEPER = r"train800.txt, line 1: image .*a 0.png .*mode.*; convert it to 8 bits"
BROKEN = r"train800.txt, line 1: image .*a 0.png cannot be read \("
LARGE = r"line 1: image .*a 0.png .*pixels.*; make it smaller"
LISTED = "is not 'relative/path label'"
LEAVES = r"train800.txt, line 2: .* leaves the folder"
NOT_UTF8 = r"train800.txt, line {}: .*save .* as UTF-8"
NAME = "a task's name is the name of a folder"

BAD_LISTS = {
    "empty": ("", "train800.txt lists no image"),
    "blank": (" \n\t\n\r\n", "train800.txt lists no image"),
    "no label": (OK + "images/a 1.png\n", f"train800.txt, line 2: 'images/a 1.png' {LISTED}"),
    "no path": (OK + "1\n", f"line 2: '1' {LISTED}"),
    "a word": (OK + "images/a 1.png dog\n", f"line 2: .* {LISTED}"),
    "a fraction": (OK + "images/a 1.png 1.0\n", LISTED),
    "an exponent": (OK + "images/a 1.png 1e9\n", LISTED),
    "an underscore": (OK + "images/a 1.png 0_1\n", LISTED),
    "a plus": (OK + "images/a 1.png +1\n", LISTED),
    "not a number": (OK + "images/a 1.png nan\n", LISTED),
    "other digits": (OK + "images/a 1.png \u0661\n", LISTED),
    "commas": (OK + "images/a 1.png,1\n", LISTED),
    "label first": (OK + "1 images/a 1.png\n", LISTED),
    "endless number": (OK + f"images/a 1.png {'9' * 5000}\n", LISTED),
    "endless line": (OK + "x" * 100_000, LISTED),
    "JSON": ('{"images/a 0.png": 0}', LISTED),
    "negative": (OK + "images/a 1.png -1\n", "train800.txt, line 2: label -1 is none of 2 classes"),
    "too high": (OK + "images/a 1.png 2\n", "train800.txt, line 2: label 2 is none of 2 classes"),
    "much too high": (OK + "images/a 1.png 1000000000\n", "label 1000000000 is none of 2 classes"),
    "missing image": (OK + "images/none.png 1\n", "line 2: image .*none.png does not exist"),
    "a file as folder": (OK + "images/a 1.png/x.png 1\n", "line 2: image .* does not exist"),
    "a folder": (OK + "images 1\n", "line 2: image .*images is not a regular file"),
    "absolute": (OK + "/etc/passwd 1\n", LEAVES),
    "two slashes": (OK + "//etc/passwd 1\n", LEAVES),
    "parent": (OK + "../toy/images/a 1.png 1\n", LEAVES),
    "hidden parent": (OK + "images/../../toy/images/a 1.png 1\n", LEAVES),
    "parent that comes back": (OK + "images/../images/a 1.png 1\n", LEAVES),
    "over-long path": (
        OK + "x" * 5000 + ".png 1\n",
        r"line 2: image .*xxx\.\.\.xxx.* \(File name too long\)",
    ),
    "many folders": (OK + "x/" * 3000 + "a.png 1\n", r"line 2: image .*\(File name too long\)"),
    "NUL": (OK + "images/a\0 1.png 1\n", NOT_UTF8.format(2)),
    "Latin-1": ((OK + "images/caf\u00e9.png 1\n").encode("latin-1"), NOT_UTF8.format(2)),
    "UTF-16": (OK.encode("utf-16"), NOT_UTF8.format(1)),
    "UTF-16 without mark": (OK.encode("utf-16-le"), NOT_UTF8.format(1)),
    "UTF-32": (OK.encode("utf-32"), NOT_UTF8.format(1)),
    "a picture": (encoded(Image.fromarray(COLOURS), "PNG"), NOT_UTF8.format(1)),
    "control characters": (OK + "images/\x1b[2J\x07 1\n", r"image .*\\x1b\[2J\\x07 does not exist"),
    "listed twice": (
        OK + OK,
        r"train800.txt, line 2: 'images/a 0.png' is listed in .*train800.txt, line 1, too",
    ),
    "twice, other label": (
        OK + "images/a 0.png 1\n",
        "line 2: 'images/a 0.png' is listed in .* line 1, too",
    ),
    "twice, other spelling": (
        OK + "./images//a 0.png 0\n",
        "line 2: .* is listed in .* line 1, too",
    ),
    "also in val": (
        OK + "images/a 2.png 0\n",
        r"val200.txt, line 1: .* is listed in .*train800.txt, line 2, too",
    ),
    "also in test": (
        OK + "images/a 5.png 1\n",
        r"test.txt, line 2: .* is listed in .*train800.txt, line 2, too",
    ),
}

BAD_PICTURES = {
    "float TIFF": (tiff((DEEP / 65535).astype("<f4"), 32, sample=3), DEEPER),
    "32-bit TIFF": (tiff(DEEP.astype("<u4"), 32), DEEPER),
    "signed 32-bit TIFF": (tiff(DEEP.astype("<i4"), 32, sample=2), DEEPER),
    "signed 16-bit TIFF": (tiff((DEEP // 2).astype("<i2"), 16, sample=2), DEEPER),
    "signed 8-bit TIFF": (tiff((RAMP // 2).astype("i1"), 8, sample=2), DEEPER),
    "12-bit TIFF": (tiff(bytes(24), 12), DEEPER),
    "16-bit TIFF, black is none": (tiff(DEEP.astype("<u2"), 16, photometric=0), DEEPER),
    "float PFM": (b"Pf 4 4 -1.0\n" + (DEEP / 65535).astype("<f4").tobytes(), DEEPER),
    "zero bytes": (b"", BROKEN),
    "text": (b"no picture", BROKEN),
    "a web page": (b"<!DOCTYPE html><html>404</html>", BROKEN),
    "zeros": (bytes(500), BROKEN),
    "PNG's first bytes": (READ["RGB"][0][:8], BROKEN),
    "PNG's head": (READ["RGB"][0][:33], BROKEN),
    "half a PNG": (encoded(Image.fromarray(NOISE), "PNG")[:2000], BROKEN),
    "half a JPEG": (encoded(Image.fromarray(NOISE), "JPEG")[:900], BROKEN),
    "half a GIF": (encoded(Image.fromarray(NOISE), "GIF")[:900], BROKEN),
    "half a BMP": (encoded(Image.fromarray(NOISE), "BMP")[:900], BROKEN),
    "half a TIFF": (encoded(Image.fromarray(NOISE), "TIFF")[:900], BROKEN),
    "half a WebP": (encoded(Image.fromarray(NOISE), "WEBP")[:900], BROKEN),
    "damaged PNG": (READ["RGB"][0].replace(b"IDAT", b"IDAT\0\0"), BROKEN),
    "PNG of no width": (declared(0, 4), BROKEN),
    "bomb, an error": (declared(30_000, 30_000), LARGE),
    "bomb, a warning": (declared(10_000, 10_000), LARGE),
}

BAD_CLASSES = {
    "empty": ("", "classes.txt names no class"),
    "blank": ("\n \n", "classes.txt names no class"),
    "too few": ("cat\n", "train800.txt, line 2: label 1 is none of 1 classes"),
    "a gap": ("cat\n\ndog\n", "classes.txt, line 2: .* name"),
    "a name twice": (
        "cat\ndog\ncat \n",
        "classes.txt, line 3: 'cat' names the class of line 1 too",
    ),
    "Latin-1": ("cat\nch\u00e8vre\n".encode("latin-1"), "classes.txt, line 2: .*save .* as UTF-8"),
    "UTF-16": ("cat\ndog\n".encode("utf-16"), "classes.txt, line 1: .*save .* as UTF-8"),
}

CHANGES = {
    "no train": (
        put(lambda path: None, "train800.txt"),
        "train800.txt is missing; write one 'relative/path label",
    ),
    "no val": (put(lambda path: None, "val200.txt"), "val200.txt is missing"),
    "no test": (put(lambda path: None, "test.txt"), "test.txt is missing"),
    "a folder as list": (put(Path.mkdir, "test.txt"), "test.txt is not a regular file"),
    "a folder as classes.txt": (
        put(Path.mkdir, "classes.txt"),
        "classes.txt is not a regular file",
    ),
    "a folder as picture": (
        put(Path.mkdir, "images/a 4.png"),
        "line 1: image .*a 4.png is not a regular file",
    ),
    "a link in a circle as list": (
        put(circle, "val200.txt"),
        "val200.txt cannot be read .*symbolic",
    ),
    "a link in a circle as picture": (put(circle, "images/a 3.png"), "line 2: image .*symbolic"),
    "a link to nothing as classes.txt": (put(nowhere, "classes.txt"), "classes.txt is missing"),
    "label 1e9": (
        numbered(0, 1_000_000_000),
        "line 2: label 1000000000 is too high for 6 images; .*classes.txt",
    ),
    "label 10^17": (numbered(0, 10**17), "line 2: label 1.* is too high for 6 images"),
    "label 6 of 6 images": (numbered(0, 6), "line 2: label 6 is too high for 6 images"),
    "label -1 without classes.txt": (numbered(0, -1), "line 2: label -1 is negative; .*0"),
}

ARGUMENTS = {
    "no pixel": (dict(image_size=0), "at least 1 pixel"),
    "less than none": (dict(image_size=-1), "at least 1 pixel"),
    "too many pixels": (dict(image_size=10**9), "image_size must be .* not 1000000000"),
    "text as size": (dict(image_size="24"), "image_size must be .* not '24'"),
    "half a pixel": (dict(image_size=2.5), "image_size must be .* not 2.5"),
    "a float as size": (dict(image_size=24.0), "image_size must be .* not 24.0"),
    "not a number as size": (dict(image_size=float("nan")), "image_size must be .* not nan"),
    "True as size": (dict(image_size=True), "image_size must be .* not True"),
    "a pair as size": (dict(image_size=(24, 24)), r"image_size must be .* not \(24, 24\)"),
    "lines as size": (dict(image_size=torch.eye(3)), "image_size must be .* not tensor"),
    "no image": (dict(train_size=0), "toy's 2 training images, not 0"),
    "less than no image": (dict(train_size=-1), "toy's 2 training images, not -1"),
    "too many images": (dict(train_size=3), "toy's 2 training images, not 3"),
    "text as number": (dict(train_size="5"), "train_size must be .* not '5'"),
    "True as number": (dict(train_size=True), "train_size must be .* not True"),
    "half an image": (dict(train_size=2.5), "train_size must be .* not 2.5"),
    "embedded, no image": (dict(name="count", train_size=0), "count's 800 training images, not 0"),
    "embedded, text": (dict(name="flowers", train_size="5"), "train_size must be .* not '5'"),
    "embedded, half": (dict(name="flowers", train_size=1000.5), "train_size must be .* not 1000.5"),
    "embedded, no pixel": (dict(name="count", image_size=0), "at least 1 pixel"),
    "embedded, text as size": (
        dict(name="count", image_size="32"),
        "image_size must be .* not '32'",
    ),
    "unknown rule": (dict(resize="x"), "unknown resize rule 'x'"),
    "number as rule": (dict(resize=3), "unknown resize rule"),
    "no rule": (dict(resize=None), "unknown resize rule"),
    "array as rule": (dict(resize=np.array(["crop", "direct"])), "unknown resize rule"),
    "number as name": (dict(name=3), f"{NAME}.* not 3"),
    "no name": (dict(name=None), f"{NAME}.* not None"),
    "list as name": (dict(name=["toy"]), rf"{NAME}.* not \['toy'\]"),
    "empty name": (dict(name=""), f"{NAME}.* not ''"),
    "the folder itself": (dict(name="."), f"{NAME}.* not '.'"),
    "the folder above": (dict(name=".."), f"{NAME}.* not '..'"),
    "beside the folder": (dict(name="../x"), f"{NAME}.* not '../x'"),
    "back into the folder": (dict(name="x/../toy"), f"{NAME}.* not 'x/../toy'"),
    "a path as name": (dict(name="toy/images"), f"{NAME}.* not 'toy/images'"),
    "a slash at the end": (dict(name="toy/"), f"{NAME}.* not 'toy/'"),
    "an absolute name": (dict(name="/etc"), f"{NAME}.* not '/etc'"),
    "NUL in the name": (dict(name="toy\0"), rf"{NAME}.* not 'toy\\x00'"),
    "a line end in the name": (dict(name="toy\n"), rf"{NAME}.* not 'toy\\n'"),
    "a name that is too long": (dict(name="x" * 5000), r"\(File name too long\)"),
    "a name that is not there": (dict(name="tou"), "unknown task .*Did you mean 'toy'"),
    "a list as task": (dict(name="list"), "unknown task"),
    "data_dir that is a file": (dict(data_dir="list"), "data_dir .*list is not a folder"),
    "embedded, data_dir that is a file": (
        dict(data_dir="list", name="count"),
        "data_dir .*list is not a folder",
    ),
    "data_dir in a file": (dict(data_dir="list/toy"), "data_dir .*list/toy is not a folder"),
    "data_dir that is not there": (dict(data_dir="nowhere"), "data_dir .*nowhere is not a folder"),
    "data_dir with a line end": (dict(data_dir="a\nb"), r"data_dir .*a\\nb is not a folder"),
    "data_dir with NUL": (dict(data_dir="a\0b"), r"data_dir .*a\\x00b cannot be read"),
    "data_dir that is too long": (dict(data_dir="x" * 5000), r"data_dir .*\(File name too long\)"),
    "empty data_dir": (dict(data_dir=b""), "data_dir must be a path, not b''"),
    "number as data_dir": (dict(data_dir=3), "data_dir must be a path, not 3"),
    "True as data_dir": (dict(data_dir=True), "data_dir must be a path, not True"),
    "list as data_dir": (dict(data_dir=["."]), "data_dir must be a path, not"),
}

CASES = {
    **{
        f"list: {name}": (write("train800.txt", content), {}, says)
        for name, (content, says) in BAD_LISTS.items()
    },
    **{
        f"picture: {name}": (write("images/a 0.png", file), {}, says)
        for name, (file, says) in BAD_PICTURES.items()
    },
    **{
        f"classes: {name}": (write("classes.txt", content), {}, says)
        for name, (content, says) in BAD_CLASSES.items()
    },
    **{f"files: {name}": (change, {}, says) for name, (change, says) in CHANGES.items()},
    **{
        f"argument: {name}": (lambda root: None, given, says)
        for name, (given, says) in ARGUMENTS.items()
    },
}


@pytest.mark.refused
@pytest.mark.parametrize("case", CASES)
def test_bad_data_gives_one_line(folder, case):
    change, given, says = CASES[case]
    (folder / "list").write_text(OK)
    change(folder)
    given = {"name": "toy", "image_size": 4, **given}
    data_dir = given.pop("data_dir", folder)
    given["data_dir"] = folder / data_dir if isinstance(data_dir, str) else data_dir
    with pytest.raises(BadInput, match=says) as caught:
        load_task(**given)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 1000


def test_damage_anywhere_is_read_or_one_line(folder):
    """Bytes changed, cut off or put in, in pictures of eight formats, lists and names."""
    rng, refused = np.random.default_rng(0), 0
    formats = ["PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM", "JPEG2000"]
    whole = [("images/a 0.png", encoded(Image.fromarray(NOISE), format)) for format in formats]
    whole += [
        (name, (folder / "toy" / name).read_bytes()) for name in ("train800.txt", "classes.txt")
    ]
    for number in range(200):
        name, content = whole[number % len(whole)]
        damaged, at = bytearray(content), int(rng.integers(len(content)) ** rng.uniform(0.3, 1))
        length = int(rng.integers(1, 9))
        damaged[at : at + int(rng.choice([0, length, len(content)]))] = rng.bytes(length)
        (folder / "toy" / name).write_bytes(damaged)
        try:
            load_task("toy", folder, image_size=4)
        except BadInput as error:
            refused += 1
            assert str(error).isprintable() and name in str(error)
        (folder / "toy" / name).write_bytes(content)
    assert 50 < refused < 200


def test_a_folder_named_like_an_embedded_task_is_refused(folder):
    (folder / "toy").rename(folder / "digits")
    with pytest.raises(BadInput, match="'digits' is an embedded task; rename the folder .*digits"):
        load_task("digits", folder)
    (folder / "digits").rename(folder / "numerals")
    assert load_task("numerals", folder, image_size=4).class_names == ("cat", "dog")
    assert load_task("digits", folder).fingerprint == load_task("digits").fingerprint


def test_an_empty_data_dir_is_not_the_folder_one_stands_in(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert load_task("toy", ".", image_size=4).classes == 2
    with pytest.raises(BadInput, match="data_dir must be a path, not ''"):
        load_task("toy", "", image_size=4)


def test_names_of_other_tasks_stay_on_the_line(folder):
    (folder / "a\nb").mkdir()
    with pytest.raises(BadInput, match="unknown task in .*toy") as caught:
        load_task("other", folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["train800.txt", "classes.txt", "a 4.png"])
def test_what_may_not_be_opened_is_named(folder, monkeypatch, name):
    """The tests may run as root, who may open everything."""
    really = Path.open

    def opened(path, *more, **settings):
        if path.name == name:
            raise PermissionError(13, "Permission denied", str(path))
        return really(path, *more, **settings)

    monkeypatch.setattr(Path, "open", opened)
    with pytest.raises(BadInput, match=rf"{name} cannot be read \(Permission denied\)") as caught:
        load_task("toy", folder, image_size=4)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["toy", "train800.txt", "images/a 0.png"])
def test_what_may_not_be_looked_at_is_named(folder, monkeypatch, name):
    really = os.stat

    def looked(path, *more, **settings):
        if str(path).endswith(name):
            raise PermissionError(13, "Permission denied", str(path))
        return really(path, *more, **settings)

    monkeypatch.setattr(os, "stat", looked)
    with pytest.raises(BadInput, match=rf"{name} cannot be read \(Permission denied\)"):
        load_task("toy", folder, image_size=4)


def test_a_data_dir_that_may_not_be_listed_is_named(folder, monkeypatch):
    def listed(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", listed)
    assert load_task("toy", folder, image_size=4).classes == 2
    with pytest.raises(BadInput, match=r"data_dir .* cannot be read \(Permission denied\)"):
        load_task("other", folder)


def test_a_strip_of_pixels_is_not_cropped(folder):
    """Its short side at 8/7 of the size would make the long one use up the memory."""
    write("images/a 0.png", encoded(Image.new("L", (30_000, 1)), "PNG"))(folder)
    assert load_task("toy", folder, image_size=224).size == 224
    with pytest.raises(
        BadInput, match="line 1: image .*a 0.png is 30000 x 1 pixels, too long .*'direct'"
    ):
        load_task("toy", folder, image_size=224, resize="crop")


def test_only_regular_files_are_read(folder):
    """Pipes and devices have no end. In another process, which is stopped where it waits for
    one."""
    for kind in ("train800.txt", "classes.txt", "images/a 4.png"):
        for name, make in (
            ("pipe", os.mkfifo),
            ("device", lambda path: path.symlink_to("/dev/zero")),
        ):
            task = folder / f"{name} {kind.replace('/', ' ')}"
            shutil.copytree(folder / "toy", task)
            (task / kind).unlink()
            make(task / kind)
    shutil.rmtree(folder / "toy")
    code = "import sys, pathlib, visprompt as vp\n"
    code += "for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):\n"
    code += "    try: vp.load_task(path.name, path.parent, image_size=4); print('read', path)\n"
    code += "    except vp.BadInput as error: print(error)\n"
    done = subprocess.run(
        [sys.executable, "-c", code, folder], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 6 and all("is not a regular file" in line for line in lines), lines


@pytest.mark.parametrize("case", ["list: Latin-1", "picture: float TIFF", "files: label 1e9"])
def test_bad_data_is_one_line_of_a_command_too(folder, stores, capsys, case):
    change, _, says = CASES[case]
    change(folder)
    assert main(["study", "benchmark", "--tasks", "toy", "--data-dir", str(folder)]) == 2
    error = capsys.readouterr().err
    # the bar draws on its own line
    said = [line for line in error.split("\n") if line and not line.startswith("\r")]
    assert len(said) == 1 and said[0].startswith("visprompt: ") and "Traceback" not in error
    with pytest.raises(BadInput, match=says):
        raise BadInput(error)
