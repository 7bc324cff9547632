"""How work ends that nobody waits for any more."""


class Interrupted(BaseException):
    """Somebody said stop. What was worked out so far is kept; asking again goes on with the rest. Not an Exception: it is no fault of
    the code that it passes through, and whoever answers for faults there lets it through."""
