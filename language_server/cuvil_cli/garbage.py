"""How often Python looks for garbage. Each search goes over all that is alive, millions of syntax nodes at times, and most of it stays."""
import gc


def collect_seldom() -> None:
    """In a command: what it loads stays."""
    gc.set_threshold(100_000, 20, 20)


def collect_at_bounds() -> None:
    """In a worker, which looks when it has taken much memory: check.MEMORY."""
    gc.set_threshold(2_000_000, 20, 20)
