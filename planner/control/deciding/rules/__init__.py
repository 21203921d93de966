"""What every wish goes through, whoever made it; pure functions, each one rule, in this order.

======  =======================  ==========================================================================
place   rule                     in short
======  =======================  ==========================================================================
1       ``hold``                 no target, paused, no wish, no metrics: fixed at what it has
2       ``to_zero``              the whole service, where nobody used it for its retention time
3       ``never_by_accident``    the last replica of a role stays
4       ``within_bounds``        minimum and maximum
5       ``outside_dead_band``    changes too small to make
6       ``stabilized``           windows of wishes, up and down
7       ``safe_scale_in``        whole and fresh readings, enough replicas below saturation
8       ``after_replacement``    what goes waits for what comes
9       ``in_steps``             replicas of one cycle
10      ``granted``              accelerators and quotas, over all services
======  =======================  ==========================================================================

A rule that moves a count leaves its code, a sentence and the count behind. A later rule only ever holds back: no rule after
the fourth moves a count away from what there is.
"""

from planner.control.deciding.rules.bounds import within_bounds
from planner.control.deciding.rules.damping import in_steps, outside_dead_band, stabilized
from planner.control.deciding.rules.granting import granted
from planner.control.deciding.rules.holding import hold
from planner.control.deciding.rules.safety import after_replacement, safe_scale_in
from planner.control.deciding.rules.way import Code, Context, ServiceWays, Way
from planner.control.deciding.rules.zero import never_by_accident, to_zero

__all__ = [
    "Code",
    "Context",
    "ServiceWays",
    "Way",
    "after_replacement",
    "granted",
    "hold",
    "in_steps",
    "never_by_accident",
    "outside_dead_band",
    "safe_scale_in",
    "stabilized",
    "to_zero",
    "within_bounds",
]
