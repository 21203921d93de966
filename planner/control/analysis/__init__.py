"""From what was seen to what it means: readings, demand against capacity, and whether a variant may be decided on."""

from planner.control.analysis.ahead import Ahead
from planner.control.analysis.growing import foretold, grown
from planner.control.analysis.identity import VariantRef, ref_of
from planner.control.analysis.judging import Analyzed, Move, Service, Voices, analyze
from planner.control.analysis.memory import AnalysisMemory
from planner.control.analysis.ruling import RoleRules, RuleBook
from planner.control.analysis.seeing import ServiceSeen, VariantSeen

__all__ = [
    "Ahead",
    "AnalysisMemory",
    "Analyzed",
    "Move",
    "RoleRules",
    "RuleBook",
    "Service",
    "ServiceSeen",
    "VariantRef",
    "VariantSeen",
    "Voices",
    "analyze",
    "foretold",
    "grown",
    "ref_of",
]
