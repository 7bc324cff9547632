from pathlib import Path

import pytest
from packages import corpus as fetched


@pytest.fixture(scope="session")
def corpus() -> Path:
    return fetched()
