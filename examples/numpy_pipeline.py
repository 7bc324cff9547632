"""What stands before and after a vision model, in NumPy: a picture becomes a batch, logits become answers.

    python examples/numpy_pipeline.py       compiled against NumPy
"""
import numpy as np
from numpy.typing import NDArray

import cuvil as cu

MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)


@cu.compile(input_shapes={"image": ("height", "width", 3)})
def preprocess(image: NDArray[np.uint8]):
    """A picture of bytes, channels last, to a normalised batch of one, channels first."""
    scaled = image.astype(np.float32) / np.float32(255)
    normalised = (scaled - np.array(MEAN, dtype=np.float32)) / np.array(STD, dtype=np.float32)
    return normalised.transpose(2, 0, 1)[np.newaxis]


@cu.compile(input_shapes={"logits": ("batch", "classes")})
def postprocess(logits: NDArray[np.float32]):
    """Probabilities, the likeliest class of each row, and how sure it is."""
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    probabilities = weights / weights.sum(axis=-1, keepdims=True)
    return probabilities, probabilities.argmax(axis=-1), probabilities.max(axis=-1)


@cu.compile(input_shapes={"boxes": ("n", 4), "sizes": (2,)})
def to_pixels(boxes: NDArray[np.float32], sizes: NDArray[np.float32]):
    """Boxes as (centre x, centre y, width, height) of the unit square, to corners in pixels inside the picture."""
    centres, extents = boxes[:, :2], boxes[:, 2:]
    corners = np.concatenate([centres - extents / 2, centres + extents / 2], axis=1)
    limits = np.concatenate([sizes, sizes])
    return np.clip(corners * limits, np.float32(0), limits)


def inputs(seed=0):
    """For each compiled function, arrays to call it with."""
    random = np.random.default_rng(seed)
    return {
        "preprocess": (random.integers(0, 256, (48, 64, 3), dtype=np.uint8),),
        "postprocess": ((random.standard_normal((8, 1000)) * 4).astype(np.float32),),
        "to_pixels": (random.random((50, 4), dtype=np.float32), np.array([640, 480], dtype=np.float32)),
    }


def main():
    for name, arrays in inputs().items():
        compiled = globals()[name]
        found, expected = compiled(*arrays), compiled.__wrapped__(*arrays)
        pairs = zip(found, expected) if isinstance(expected, tuple) else [(found, expected)]
        print(f"{name}: max difference {max(np.abs(f - e).max() for f, e in pairs):.1e}")


if __name__ == "__main__":
    main()
