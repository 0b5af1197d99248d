"""What the process of a study's cell is told and says, besides the messages of any engine process.

parent                                   child
                                  <-     `facts` (engine/messages.py)
                                  <-     `ready`: the warm-up is over
`ours` or `bare`, or `stop`       ->
                                  <-     `progress`, about once a second, in a run by `ours`
                                  <-     `measured`: what that run came to; then the next command
"""

from typing import Final, Literal

from fitladder.engine.messages import STOP, Event
from fitladder.frozen import Count, Size
from fitladder.study.plan import Kind

__all__ = ["CELL_COMMANDS", "MeasuredRun", "Ready"]

CELL_COMMANDS: Final = ("ours", "bare", STOP)


class Ready(Event):
    """Every kernel and graph that the workload needs has been run once."""

    event: Literal["ready"] = "ready"


class MeasuredRun(Event):
    """One run of the whole workload. `counters` are differences over the run, `warnings` its own."""

    event: Literal["measured"] = "measured"
    kind: Kind
    generation_us: Count
    sampled_tokens: Count
    counters: dict[str, Size]
    warnings: tuple[str, ...]
