"""vLLM's batching told request by request and step by step, slowly and plainly: what the kernel is held against."""

from __future__ import annotations

from dataclasses import dataclass, field

from models.twin_timing import LinearTiming


@dataclass(eq=False)
class Request:
    number: int
    arrival_s: float
    prompt: int
    output: int
    computed: int = 0
    made: int = 0
    chunk: int = 0
    blocks: int = 0
    first_s: float = float("nan")
    last_s: float = float("nan")
    preemptions: int = 0
    filling: bool = True


@dataclass
class NaiveEngine:
    timing: LinearTiming
    kv_blocks: int
    block_size: int
    max_num_seqs: int
    max_tokens: int
    chunked: bool = True
    looks_ahead: bool = False
    seen: int = 0
    seats: int = 0
    running: list[Request] = field(default_factory=list)
    waiting: list[Request] = field(default_factory=list)

    def _free(self) -> int:
        return self.kv_blocks - sum(request.blocks for request in self.running)

    def _grow(self, request: Request, tokens: int) -> bool:
        wanted = -(-tokens // self.block_size)
        if wanted - request.blocks > self._free():
            return False
        request.blocks = max(request.blocks, wanted)
        return True

    def _preempt(self) -> Request:
        request = self.running.pop()
        request.computed = request.blocks = request.chunk = 0
        request.preemptions += 1
        request.filling = True
        self.waiting.insert(0, request)
        return request

    def _schedule(self) -> None:
        budget, preempted, i = self.max_tokens, False, 0
        admissible = len(self.waiting)
        if self.looks_ahead and self.running:
            # This step was composed when the one before it began.
            admissible = min(self.seen, self.seats)
        while i < len(self.running):
            request = self.running[i]
            request.chunk = min(request.prompt + request.made - request.computed, budget)
            while not self._grow(request, request.computed + request.chunk):
                preempted = True
                if self._preempt() is request:
                    break
            else:
                budget -= request.chunk
                i += 1
        if not preempted:
            self._admit(budget, admissible)
        self.seen, self.seats = len(self.waiting), self.max_num_seqs - len(self.running)

    def _admit(self, budget: int, admissible: int) -> None:
        while self.waiting and budget > 0 and len(self.running) < self.max_num_seqs and admissible > 0:
            request = self.waiting[0]
            whole = request.prompt + request.made
            if (whole > budget and not self.chunked) or -(-whole // self.block_size) > self._free():
                return
            self.running.append(self.waiting.pop(0))
            request.chunk = min(whole, budget)
            self._grow(request, request.chunk)
            budget -= request.chunk
            admissible -= 1

    def _step_s(self) -> float:
        decoding = [r for r in self.running if not r.filling]
        filling = [r for r in self.running if r.filling]
        context = sum(r.computed + 1 for r in decoding)
        pairs = sum(r.chunk * (r.computed + 0.5 * r.chunk) for r in filling)
        timing = self.timing
        seconds = timing.base_s + timing.per_request_s * len(decoding)
        seconds += timing.per_prefill_token_s * sum(r.chunk for r in filling)
        return seconds + timing.per_kv_token_s * context + timing.per_pair_s * pairs

    def run(self, requests: list[Request]) -> None:
        """Serve all of them; an arrival at the end of a step is seen by the next one."""
        now_s, coming = 0.0, list(requests)
        while coming or self.waiting or self.running:
            if not self.waiting and not self.running:
                now_s = max(now_s, coming[0].arrival_s)
            while coming and coming[0].arrival_s <= now_s:
                self.waiting.append(coming.pop(0))
            self._schedule()
            if not self.running:
                continue
            now_s += self._step_s()
            for request in list(self.running):
                request.computed += request.chunk
                if request.computed < request.prompt + request.made:
                    continue
                request.made += 1
                request.filling = False
                if request.made == 1:
                    request.first_s = now_s
                if request.made == request.output:
                    request.last_s = now_s
                    self.running.remove(request)
