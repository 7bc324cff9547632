"""How often Python looks for garbage."""
import gc


def collect_seldom() -> None:
    """Each search goes over all that is alive, millions of syntax nodes at times, and what a command loads mostly stays."""
    gc.set_threshold(100_000, 20, 20)
