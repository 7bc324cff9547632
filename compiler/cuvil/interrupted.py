"""How work ends that nobody waits for any more."""


class Interrupted(Exception):
    """Somebody said stop. What was worked out so far is kept; asking again goes on with the rest."""
