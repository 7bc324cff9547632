"""A small convolutional classifier for 32 x 32 colour images: an nn.Module with its weights, compiled as a whole.

    python examples/convnet.py              compiled against eager PyTorch
"""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

import cuvil as cu

CLASSES = 10


class ConvNet(nn.Module):
    def __init__(self, classes: int = CLASSES, width: int = 16):
        super().__init__()
        self.stem = nn.Conv2d(3, width, kernel_size=3, padding=1)
        self.body = nn.Sequential(
            nn.Conv2d(width, 2 * width, kernel_size=3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.head = nn.Linear(2 * width * 8 * 8, classes)

    def forward(self, images: torch.FloatTensor) -> torch.Tensor:
        batch, channels, height, width = images.shape
        assert (channels, height, width) == (3, 32, 32)
        x = F.max_pool2d(F.relu(self.stem(images)), 2)
        x = self.body(x)
        return self.head(x.flatten(1))


def inputs(seed=0):
    """Arrays to call the model with."""
    images = np.random.default_rng(seed).standard_normal((4, 3, 32, 32))
    return {"ConvNet.forward": (images.astype(np.float32),)}


def main():
    torch.manual_seed(0)
    model = ConvNet().eval()
    images = torch.from_numpy(inputs()["ConvNet.forward"][0])
    compiled = cu.compile(model, input_shapes={"images": ("batch", 3, 32, 32)})
    with torch.inference_mode():
        print(f"ConvNet: max difference {(compiled(images) - model(images)).abs().max().item():.1e}")


if __name__ == "__main__":
    main()
