"""What handlers inherit from."""


class ExcInfoOnLogLevelFormatMixin:
    """Records arrive with their text whole, so there is nothing to add to it."""
