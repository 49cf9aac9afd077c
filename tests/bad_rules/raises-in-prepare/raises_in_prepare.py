"""An exception where the parameters are prepared."""

from plain_rule import RULE as PLAIN


def prepare(params):
    return (1 // (params.min_games * 0),)


RULE = PLAIN._replace(name="raises-in-prepare", prepare=prepare)
