"""`pack` against plain enumeration of every assignment of pods to nodes, on random small cases."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations, product

import pytest

from models.ids import CandidateId, NodeId
from models.problem import Candidate, Incumbent, NodeState, Problem
from models.scenario import Incumbents
from models.solution import Placement
from planner.referee import Unplaced, pack
from planner.referee.bays import added_node, kept_replicas, seats_of
from planner.referee.packing import _PoolPacking
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
    nodes = [a_random_node(rng, f"n{i}") for i in range(rng.randint(1, 4))]
    candidates = [a_random_candidate(rng, f"v{i}", sizes) for i in range(rng.randint(1, 3))]
    free = {node.id: node.free_gpus for node in nodes}
    seated = [seat for candidate in candidates for seat in random_seats(rng, candidate, (nodes, free))]
    growth = rng.choice([None, {"gpus_per_node": rng.randint(3, 6)}])
    problem = a_problem(
        candidates=candidates,
        pools=[a_pool(nodes=nodes, growth=growth)],
        incumbents=tuple(seated),
        incumbents_rule=rng.choice(list(Incumbents)),
    )
    counts = rng.choice([loose_counts, tight_counts])(rng, problem)
    return problem, counts, rng.choice([0, 0, 1]) if growth else 0


def a_random_node(rng: random.Random, name: str) -> NodeState:
    gpus = rng.randint(3, 8)
    return a_node(
        name,
        gpus,
        free_gpus=gpus - rng.choice([0, 0, 1, 2]),
        accepts_pods=rng.random() > 0.15,
        holds_pods=rng.random() > 0.07,
        fabric_domain=rng.choice([None, "d0", "d1"]),
    )


def a_random_candidate(rng: random.Random, variant: str, sizes: tuple[int, ...]) -> Candidate:
    pods = rng.choice([1, 1, 1, 2])
    domain = rng.choice([None, "d0", "d1"]) if pods == 2 or rng.random() < 0.1 else None
    size = rng.choice(sizes)
    return a_candidate(variant=variant, domain=domain, pods_per_replica=pods, gpus_per_pod=size)


def random_seats(
    rng: random.Random, candidate: Candidate, where: tuple[list[NodeState], Free]
) -> Iterator[Incumbent]:
    """Replicas that sit where there is room for them; takes that room."""
    nodes, free = where
    places = [node.id for node in nodes if candidate.fabric_domain in (None, node.fabric_domain)]
    for _ in range(rng.choice([0, 1, 2, 3]) if places else 0):
        chosen = [rng.choice(places) for _ in range(candidate.pods_per_replica)]
        if all(free[node] >= n * candidate.gpus_per_pod for node, n in Counter(chosen).items()):
            for node in chosen:
                free[node] -= candidate.gpus_per_pod
            yield an_incumbent(candidate, *chosen)


def loose_counts(rng: random.Random, problem: Problem) -> dict[CandidateId, int]:
    """A little less or more than runs now."""
    own = Counter(incumbent.candidate for incumbent in problem.incumbents)
    return {
        c.id: rng.randint(max(0, own[c.id] - 2), own[c.id] + rng.choice([0, 1, 2]))
        for c in problem.candidates
    }


def tight_counts(rng: random.Random, problem: Problem) -> dict[CandidateId, int]:
    """Some seats are kept and the nodes are filled up, so that a placement exists if the others may leave theirs."""
    counts: Counter[CandidateId] = Counter({candidate.id: 0 for candidate in problem.candidates})
    free = {node.id: node.free_gpus for node in problem.pools[0].nodes if node.holds_pods}
    for incumbent in problem.incumbents:
        if rng.random() < 0.6 and all(node in free for node in incumbent.nodes):
            counts[incumbent.candidate] += 1
            for node in incumbent.nodes:
                free[node] -= problem.candidate[incumbent.candidate].gpus_per_pod
    for node in problem.pools[0].nodes:
        for candidate in rng.sample(problem.candidates, len(problem.candidates)):
            while (
                node.holds_pods
                and node.accepts_pods
                and free[node.id] >= candidate.gpus
                and sum(counts.values()) < 8
            ):
                counts[candidate.id] += 1
                free[node.id] -= candidate.gpus
                if rng.random() < 0.5:
                    break
    return dict(counts)


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


def assert_agrees(rng: random.Random) -> None:
    problem, counts, added = a_case(rng)
    answer = pack(problem, counts, {problem.pools[0].id: added})
    if isinstance(answer, Unplaced):
        assert answer.missing > 0
        assert not fits(problem, counts, added, moves=99), (problem, counts, added)
        return
    assert_placed(problem, counts, answer)
    moves = moves_in(problem, counts, answer)
    assert moves == 0 or problem.incumbents_rule is Incumbents.MOVABLE
    assert fits(problem, counts, added, moves=moves)
    assert moves == 0 or not fits(problem, counts, added, moves=moves - 1), (problem, counts, added)


@pytest.mark.parametrize("seed", range(25))
def test_pack_agrees_with_brute_force(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - no secret
    for _ in range(100):
        assert_agrees(rng)


@pytest.mark.parametrize("seed", range(100, 125))
def test_the_search_alone_agrees_with_brute_force(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        _PoolPacking, "_largest_first", lambda self: Unplaced(self.pool.id, self.wanted[0][0].gpus_per_pod, 1)
    )
    monkeypatch.setattr(_PoolPacking, "_largest_first_decides", lambda _: False)
    rng = random.Random(seed)  # noqa: S311 - no secret
    for _ in range(100):
        assert_agrees(rng)
