"""Where each parameter of the cluster experiments is from."""

from __future__ import annotations

from models.reproduction import Origin, Parameter
from planner.reproduction.wva_setup import INPUT, OUTPUT, Cluster

__all__ = ["cluster_parameters"]


def _row(name: str, value: str, origin: Origin, why: str = "") -> Parameter:
    return Parameter(name=name, value=value, origin=origin, why=why)


def cluster_parameters(c: Cluster, seeds: int) -> tuple[Parameter, ...]:
    """All of them: what the paper says, what its code says, what had to be chosen, what was tuned."""
    return (*_published(c), *_tuned(c), *_chosen(c, seeds), *_ours(c))


def _published(c: Cluster) -> tuple[Parameter, ...]:
    paper, source = Origin.PAPER, Origin.SOURCE
    return (
        _row("replicas at most", f"{c.most}", paper),
        _row("rates", "2, 3, 5, 6 req/s, each a run of 600 s", paper),
        _row(
            "input, output tokens",
            f"normal {INPUT.mean:g} ± {INPUT.sd:g} in [{INPUT.low}, {INPUT.high}], "
            f"{OUTPUT.mean:g} ± {OUTPUT.sd:g} in [{OUTPUT.low}, {OUTPUT.high}]",
            paper,
        ),
        _row("τ_kv, τ_q, γ_kv", f"{c.tau_kv:g}, {c.tau_queue}, {c.gamma_kv:g}", paper),
        _row("γ_q", f"{c.gamma_queue:g}", source, "not in the paper; the shipped default"),
        _row("HPA targets", f"mean queue {c.hpa_queue:g}, mean KV usage {c.hpa_kv:g}", paper),
        _row("router weights", "queue 2, KV cache 2, prefix 3", paper, "of the cluster run; prompts share no prefix"),
        _row("router refuses", f"429 while every replica has KV ≥ {c.tau_kv:g} or queue ≥ {c.tau_queue}", source,
             "saturation detector of the endpoint picker; the paper names 429/503 for saturation"),
        _row("max_num_seqs", f"{c.max_num_seqs:,}", paper, "of the cluster run"),
        _row("WVA decides every", f"{c.interval_s:g} s", source, "reconcileInterval of the chart of that time"),
        _row("WVA's metrics", "maxima of a minute per replica", source, "queries of its collector"),
        _row("HPA tolerance, sync period", "0.1, 15 s", source, "Kubernetes"),
    )  # fmt: skip


def _tuned(c: Cluster) -> tuple[Parameter, ...]:
    tuned = Origin.TUNED
    return (
        _row("step time β per computed token", f"{c.beta_ms:g} ms", tuned,
             "HPA at 5 req/s serves 3.9 req/s (figure 4): one replica then carries about 0.67 req/s"),
        _row("KV cache of a replica", f"{c.kv_blocks:,} blocks of 16 tokens", tuned,
             "HPA uses about 9.3 replicas at 6 req/s (section V.E), with β"),
        _row("HPA behavior, under both policies", f"no windows, {c.pods} pods per {c.pods_per_s:g} s", tuned,
             "the sample for WVA; with the 300 s of Kubernetes HPA ends hardly any pod, and the paper says that it does"),
        _row("a replica that is taken away", "ends at once (grace 0 s)", tuned,
             "vLLM ends its requests on SIGTERM; the paper says that pods were ended while serving"),
        _row("HPA's metrics", "maxima of a minute per pod, as WVA's", tuned,
             "only the rule differs then; with figures of now HPA uses fewer replicas than WVA at 3 req/s"),
    )  # fmt: skip


def _chosen(c: Cluster, seeds: int) -> tuple[Parameter, ...]:
    chosen = Origin.CHOSEN
    return (
        _row("step time α, γ", f"{c.alpha_ms:g} ms, {c.gamma_ms:g} ms per token read", chosen,
             "LLM and parallelism of the cluster run are not given; α reads the weights of a 70B LLM on two H100"),
        _row("max_num_batched_tokens", f"{c.max_num_batched_tokens:,}", chosen, "at least max_num_seqs, as vLLM asks"),
        _row("arrivals", "Poisson", chosen, "guidellm offers it; not given"),
        _row("start-up", f"{c.startup_s:g} s", chosen, "within the 65 to 130 s that WVA's benchmarks measured"),
        _row("scrape interval, age of metrics", f"{c.scrape_s:g} s, {c.lag_s:g} s", chosen, "Prometheus and its adapter"),
        _row("before figures are taken", f"{c.warm_s:g} s of the same traffic, from one replica per req/s", chosen,
             "the paper does not say how a run begins"),
        _row("after the traffic", "until every request has ended", chosen, "so that nothing is left uncounted"),
        _row("failure", "429, 503, 500, or cut off on a pod that was ended", chosen,
             "the paper does not define it; no client gives up, none tries again"),
        _row("energy", "board power (700 W) while a replica is there", chosen, "the paper weighs variants by TDP"),
        _row("seeds", f"0 to {seeds - 1}, the same traffic under every policy", chosen),
    )  # fmt: skip


def _ours(c: Cluster) -> tuple[Parameter, ...]:
    chosen = Origin.CHOSEN
    return (
        _row("ours: a replica carries", f"{c.rated_rps:.3f} req/s", chosen,
             f"{c.used:.0%} of what steps with a full batch can do: the rest is the router's queue"),
        _row("ours: demand", f"arrivals of the last {c.window_s:g} s, planned every {c.interval_s:g} s", chosen,
             "long, so that counts do not follow noise; fast demand is the queue's business"),
        _row("ours: admission", f"the router holds while every replica has KV ≥ {c.held_kv:g}, at most {c.held_s:g} s", chosen,
             "the plan sets it since capacity ends at the cap; under the other policies the router refuses, as published"),
    )  # fmt: skip
