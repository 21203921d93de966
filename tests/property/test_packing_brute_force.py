"""`pack` against plain enumeration of every assignment of pods to nodes, on random small cases."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations, product

import pytest

from models.ids import CandidateId, NodeId
from models.problem import Candidate, Problem
from models.scenario import Incumbents
from models.solution import Placement
from planner.referee import Unplaced, pack
from planner.referee.bays import added_node, kept_replicas, seats_of
from tests.builders import a_candidate, a_node, a_pool, a_problem, an_incumbent

Free = dict[NodeId, int]


def fits(problem: Problem, counts: Mapping[CandidateId, int], added: int, moves: int) -> bool:
    """Whether some choice of seats to keep and some assignment of the other pods fits, with at most so many moves."""
    pool = problem.pools[0]
    free = {node.id: node.free_gpus if node.holds_pods else 0 for node in pool.nodes}
    open_nodes = {node.id: node.fabric_domain for node in pool.nodes if node.holds_pods and node.accepts_pods}
    for i in range(added):
        free[added_node(pool.id, i)] = pool.growth.gpus_per_node if pool.growth else 0
        open_nodes[added_node(pool.id, i)] = None
    for kept, left in keepings(problem, counts, moves, free):
        pods = [
            candidate
            for candidate in problem.candidates
            for _ in range((counts.get(candidate.id, 0) - kept[candidate.id]) * candidate.pods_per_replica)
        ]
        if assignable(pods, left, open_nodes):
            return True
    return False


def keepings(
    problem: Problem, counts: Mapping[CandidateId, int], moves: int, free: Free
) -> Iterator[tuple[Counter[CandidateId], Free]]:
    """Every choice of replicas that keep their seats: how many of each candidate, and the GPUs that are left."""
    choices = []
    for candidate in problem.candidates:
        seats = [
            incumbent.nodes
            for incumbent in problem.incumbents
            if incumbent.candidate == candidate.id and all(is_held(problem, node) for node in incumbent.nodes)
            for _ in range(incumbent.count)
        ]
        stay = min(len(seats), counts.get(candidate.id, 0))
        least = 0 if problem.incumbents_rule is Incumbents.MOVABLE else stay
        choices.append(
            [
                (candidate, stay, chosen)
                for n in range(least, stay + 1)
                for chosen in set(combinations(seats, n))
            ]
        )
    for choice in product(*choices):
        if sum(stay - len(chosen) for _, stay, chosen in choice) > moves:
            continue
        left = dict(free)
        for candidate, _, chosen in choice:
            for nodes in chosen:
                for node in nodes:
                    left[node] -= candidate.gpus_per_pod
        if min(left.values(), default=0) >= 0:
            yield Counter({candidate.id: len(chosen) for candidate, _, chosen in choice}), left


def is_held(problem: Problem, node: str) -> bool:
    return any(one.id == node and one.holds_pods for one in problem.pools[0].nodes)


def assignable(pods: list[Candidate], free: Free, open_nodes: Mapping[NodeId, str | None]) -> bool:
    if not pods:
        return True
    pod, rest = pods[0], pods[1:]
    for node, domain in open_nodes.items():
        added = "+" in node
        allowed = pod.fabric_domain is None or (
            pod.pods_per_replica == 1 if added else domain == pod.fabric_domain
        )
        if (
            allowed
            and free[node] >= pod.gpus_per_pod
            and assignable(rest, free | {node: free[node] - pod.gpus_per_pod}, open_nodes)
        ):
            return True
    return False


def a_case(rng: random.Random) -> tuple[Problem, dict[CandidateId, int], int]:
    """A pool of one to four nodes, one to three candidates, some of their replicas seated."""
    sizes = rng.choice([(1, 2, 4), (2, 4), (2, 3), (3, 5), (1, 3, 4), (2, 3, 5)])
    nodes = [
        a_node(
            f"n{i}",
            gpus := rng.randint(3, 8),
            free_gpus=gpus - rng.choice([0, 0, 1, 2]),
            accepts_pods=rng.random() > 0.15,
            holds_pods=rng.random() > 0.07,
            fabric_domain=rng.choice([None, "d0", "d1"]),
        )
        for i in range(rng.randint(1, 4))
    ]
    candidates = []
    for i in range(rng.randint(1, 3)):
        pods = rng.choice([1, 1, 1, 2])
        domain = rng.choice([None, "d0", "d1"]) if pods == 2 or rng.random() < 0.1 else None
        candidates.append(
            a_candidate(variant=f"v{i}", domain=domain, pods_per_replica=pods, gpus_per_pod=rng.choice(sizes))
        )
    seated, counts = [], dict[CandidateId, int]()
    left = {node.id: node.free_gpus for node in nodes}
    for candidate in candidates:
        own = 0
        for _ in range(rng.choice([0, 0, 1, 2, 3])):
            places = [
                node.id for node in nodes if candidate.fabric_domain in (None, node.fabric_domain)
            ]  # where a replica of it may have come to sit
            chosen = [rng.choice(places) for _ in range(candidate.pods_per_replica)] if places else []
            need = Counter(chosen)
            if chosen and all(left[node] >= n * candidate.gpus_per_pod for node, n in need.items()):
                for node in chosen:
                    left[node] -= candidate.gpus_per_pod
                seated.append(an_incumbent(candidate, *chosen))
                own += 1
        counts[candidate.id] = rng.randint(max(0, own - 2), own + rng.choice([0, 1, 2]))
    growth = rng.choice([None, {"gpus_per_node": rng.randint(3, 6)}])
    problem = a_problem(
        candidates=candidates,
        pools=[a_pool(nodes=nodes, growth=growth)],
        incumbents=tuple(seated),
        incumbents_rule=rng.choice(list(Incumbents)),
    )
    return problem, counts, rng.choice([0, 0, 1]) if growth else 0


def moves_in(problem: Problem, counts: Mapping[CandidateId, int], placements: tuple[Placement, ...]) -> int:
    moves = 0
    for candidate, seats in seats_of(problem).items():
        kept = kept_replicas(seats, {p.node: p.kept for p in placements if p.candidate == candidate})
        moves += min(counts.get(candidate, 0), sum(seat.replicas for seat in seats)) - kept
    return moves


def assert_placed(
    problem: Problem, counts: Mapping[CandidateId, int], placements: tuple[Placement, ...]
) -> None:
    """Every pod has its GPUs on a node it may be on."""
    used: Counter[NodeId] = Counter()
    placed: Counter[CandidateId] = Counter()
    domain_of = {node.id: node.fabric_domain for node in problem.pools[0].nodes}
    for placement in placements:
        candidate = problem.candidate[placement.candidate]
        used[placement.node] += placement.pods * candidate.gpus_per_pod
        placed[placement.candidate] += placement.pods
        node = next((n for n in problem.pools[0].nodes if n.id == placement.node), None)
        if node is not None and not (node.accepts_pods and node.holds_pods):
            assert placement.pods == placement.kept
        if candidate.fabric_domain is not None and placement.kept < placement.pods:
            assert domain_of.get(placement.node) == candidate.fabric_domain or candidate.pods_per_replica == 1
    for node in problem.pools[0].nodes:
        assert used[node.id] <= (node.free_gpus if node.holds_pods else 0)
    for candidate in problem.candidates:
        assert placed[candidate.id] == counts.get(candidate.id, 0) * candidate.pods_per_replica


@pytest.mark.parametrize("seed", range(25))
def test_pack_agrees_with_brute_force(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - no secret
    for _ in range(100):
        problem, counts, added = a_case(rng)
        answer = pack(problem, counts, {problem.pools[0].id: added})
        if isinstance(answer, Unplaced):
            assert answer.missing > 0
            assert not fits(problem, counts, added, moves=99), (problem, counts, added)
            continue
        assert_placed(problem, counts, answer)
        moves = moves_in(problem, counts, answer)
        assert fits(problem, counts, added, moves=moves)
        if problem.incumbents_rule is Incumbents.PINNED:
            assert moves == 0
        else:
            assert moves == 0 or not fits(problem, counts, added, moves=moves - 1), (problem, counts, added)
