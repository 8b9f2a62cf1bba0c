"""Tokens are counted once: every way in which emitters tell them twice, as a trace made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.metrics.bench import Bench, at, bench, request, span

Span = dict[str, Any]
LATER = at(86_400)


def used(input: int | None, output: int | None, **more: Any) -> dict[str, Any]:
    """Usage attributes of the GenAI conventions."""
    stated = {"gen_ai__usage__input_tokens": input, "gen_ai__usage__output_tokens": output, **more}
    return {key: value for key, value in stated.items() if value is not None}


def agent(
    trace: str,
    start: float,
    end: float,
    *,
    id: str = "root",
    parent: str | None = None,
    name: str = "clerk",
    **more: Any,
) -> Span:
    attributes = {"gen_ai__operation__name": "invoke_agent", "gen_ai__agent__name": name, **more}
    return span(trace, f"invoke_agent {name}", start, end, parent, id=id, **attributes)


def chat(
    trace: str, start: float, parent: str | None, *, id: str | None = None, seconds: float = 1.0, **more: Any
) -> Span:
    attributes = {
        "gen_ai__operation__name": "chat",
        "gen_ai__request__model": "gpt-4o-mini",
        "gen_ai__provider__name": "openai",
        "gen_ai__response__finish_reasons": ["stop"],
        **more,
    }
    return span(trace, "chat m", start, start + seconds, parent, id=id, **attributes)


def counted(one: Bench) -> tuple[int | None, int | None]:
    (row,) = one.rows("SELECT sum(input_tokens) AS i, sum(output_tokens) AS o FROM core.tasks")
    return (None if row["i"] is None else int(row["i"])), (None if row["o"] is None else int(row["o"]))


def tokens(folder: Path, *requests: dict[str, Any]) -> tuple[int | None, int | None]:
    with bench(folder) as one:
        return counted(one.send(requests).derive(LATER))


def test_an_agent_that_repeats_the_sum_of_its_calls(tmp_path: Path) -> None:
    """strands-agents/harness-sdk 1267, langfuse PR 14808: every trace doubled (600 for 300)."""
    spans = [
        agent("a", 0, 9, **used(300, 60)),
        chat("a", 1, "root", **used(100, 20)),
        chat("a", 3, "root", **used(200, 40)),
    ]
    assert tokens(tmp_path, request(spans)) == (300, 60)


def test_agent_workflow_and_step_all_repeating_one_call(tmp_path: Path) -> None:
    """The wrapper and the root repeat the one call: four spans, one usage (phoenix 12768 showed exactly 3x)."""
    spans = [
        span("a", "crew", 0, 9, id="flow", gen_ai__operation__name="invoke_workflow", **used(100, 20)),
        agent("a", 0.1, 8, parent="flow", **used(100, 20)),
        chat("a", 1, "root", id="wrapper", seconds=3, **used(100, 20)),
        chat("a", 2, "wrapper", id="inner", **used(100, 20)),
    ]
    assert tokens(tmp_path, request(spans)) == (100, 20)


def test_a_model_call_within_a_model_call(tmp_path: Path) -> None:
    """phoenix 15793: a rule by kind doubles here, a rule by leaf does not."""
    spans = [
        agent("a", 0, 9),
        chat("a", 1, "root", id="outer", seconds=3, **used(100, 20)),
        chat("a", 2, "outer", **used(100, 20)),
    ]
    assert tokens(tmp_path, request(spans)) == (100, 20)


def test_a_call_that_a_tool_makes_below_a_call_is_its_own(tmp_path: Path) -> None:
    """Some emitters hang tools below the model call that asked for them; an expert's calls there repeat nothing."""
    asks = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": "ask_expert"}
    spans = [
        agent("a", 0, 20),
        chat("a", 1, "root", id="outer", seconds=15, **used(100, 20)),
        span("a", "execute_tool ask_expert", 3, 9, "outer", id="tool", **asks),
        agent("a", 3.1, 8.9, id="expert", parent="tool", name="expert"),
        chat("a", 4, "expert", **used(70, 7)),
    ]
    assert tokens(tmp_path, request(spans)) == (170, 27)


def test_a_wrapper_states_what_the_call_within_leaves_out(tmp_path: Path) -> None:
    """The inner span of a transport has no usage of its own: the wrapper's is the call's, and is not lost."""
    spans = [
        agent("a", 0, 9),
        chat("a", 1, "root", id="outer", seconds=3, **used(100, 20)),
        chat("a", 2, "outer"),
    ]
    assert tokens(tmp_path, request(spans)) == (100, 20)


def test_wrappers_three_deep_with_a_silent_one_between(tmp_path: Path) -> None:
    spans = [
        agent("a", 0, 9),
        chat("a", 1, "root", id="one", seconds=6, **used(100, 20)),
        chat("a", 2, "one", id="two", seconds=4),
        chat("a", 3, "two", id="three", **used(100, 20)),
    ]
    assert tokens(tmp_path, request(spans)) == (100, 20)


def test_tries_of_one_call_are_all_paid(tmp_path: Path) -> None:
    """A gateway's wrapper states the last try alone; each try below it that used tokens was paid."""
    spans = [
        agent("a", 0, 9),
        chat("a", 1, "root", id="outer", seconds=5, **used(100, 20)),
        chat("a", 1.1, "outer", id="try1", error="RateLimitError"),
        chat("a", 2.5, "outer", id="try2", **used(100, 5)),
        chat("a", 4, "outer", id="try3", **used(100, 20)),
    ]
    assert tokens(tmp_path, request(spans)) == (200, 25)


def test_sub_agents_are_counted_once_at_every_level(tmp_path: Path) -> None:
    """Sums on the root and on the sub-agent, parts on the calls: a sub-agent adds a level, not tokens."""
    spans = [
        agent("a", 0, 20, **used(406, 86)),
        chat("a", 1, "root", **used(103, 23)),
        span(
            "a",
            "execute_tool ask_expert",
            3,
            9,
            "root",
            id="tool",
            gen_ai__operation__name="execute_tool",
            gen_ai__tool__name="ask_expert",
        ),
        agent("a", 3.1, 8.9, id="expert", parent="tool", name="expert", **used(203, 43)),
        chat("a", 4, "expert", **used(100, 20)),
        chat("a", 6, "expert", **used(103, 23)),
        chat("a", 10, "root", **used(100, 20)),
    ]
    assert tokens(tmp_path, request(spans)) == (406, 86)


def test_a_sub_agent_in_another_process_is_in_the_same_tree(tmp_path: Path) -> None:
    """mlflow 24307: one rule for late and remote spans too. The root's sum holds the remote calls."""
    near = [agent("a", 0, 20, **used(300, 60)), chat("a", 1, "root", id="mine", **used(100, 20))]
    far = [
        chat("a", 4, "expert", **used(200, 40)),
        agent("a", 3, 9, id="expert", parent="root", name="expert", **used(200, 40)),
    ]
    with bench(tmp_path) as one:
        one.send([request(near)]).derive(at(30))
        assert counted(one) == (100, 20)
        one.send([request(far, service="experts")]).derive(LATER)
        assert counted(one) == (300, 60)


def test_a_sum_counts_where_no_call_was_told(tmp_path: Path) -> None:
    assert tokens(tmp_path, request([agent("a", 0, 9, **used(300, 60))])) == (300, 60)


def test_of_sums_within_sums_the_outermost_counts(tmp_path: Path) -> None:
    spans = [
        agent("a", 0, 20, **used(600, 90)),
        agent("a", 1, 5, id="one", parent="root", name="one", **used(100, 20)),
        agent("a", 6, 9, id="two", parent="root", name="two", **used(200, 30)),
    ]
    assert tokens(tmp_path, request(spans)) == (600, 90)


def test_sums_side_by_side_are_added(tmp_path: Path) -> None:
    """No sum on the root: that of each sub-agent is a part of its own, and the largest alone would be too few."""
    spans = [
        agent("a", 0, 20),
        agent("a", 1, 5, id="one", parent="root", name="one", **used(100, 20)),
        agent("a", 6, 9, id="two", parent="root", name="two", **used(200, 30)),
    ]
    assert tokens(tmp_path, request(spans)) == (300, 50)


def test_calls_without_usage_under_a_sum_leave_it_whole(tmp_path: Path) -> None:
    with bench(tmp_path) as one:
        one.send(
            [
                request(
                    [
                        agent("a", 0, 9, gen_ai__usage__cost=0.25, **used(300, 60)),
                        chat("a", 1, "root"),
                        chat("a", 3, "root"),
                    ]
                )
            ]
        )
        one.derive(LATER)
        assert one.rows("SELECT input_tokens, output_tokens, cost_usd, cost_complete FROM core.tasks") == [
            {"input_tokens": 300, "output_tokens": 60, "cost_usd": 0.25, "cost_complete": True}
        ]


def test_a_rootless_crash_leaves_what_was_told_as_a_lower_bound(tmp_path: Path) -> None:
    assert tokens(
        tmp_path, request([chat("a", 1, "root", **used(100, 20)), chat("a", 3, "root", **used(150, 30))])
    ) == (250, 50)


def test_two_spellings_on_one_span(tmp_path: Path) -> None:
    """prompt_tokens beside input_tokens, cache_read_input_tokens beside cache_read.input_tokens: one number each."""
    both = used(
        300,
        60,
        gen_ai__usage__prompt_tokens=300,
        gen_ai__usage__completion_tokens=60,
        gen_ai__usage__total_tokens=360,
        gen_ai__usage__cache_read_input_tokens=200,
        **{"gen_ai__usage__cache_read__input_tokens": 200},
    )
    with bench(tmp_path) as one:
        one.send([request([agent("a", 0, 9), chat("a", 1, "root", **both)])]).derive(LATER)
        assert counted(one) == (300, 60)
        (step,) = one.rows("SELECT cache_read_tokens FROM work.steps WHERE role = 'model'")
        assert step["cache_read_tokens"] == 200


def test_cached_and_reasoning_tokens_are_within_and_not_beside(tmp_path: Path) -> None:
    """langfuse 10592: 35,720 for 17,903. Cached tokens are part of the input, reasoning is part of the output."""
    cached = used(
        17_903,
        500,
        gen_ai__usage__cache_read__input_tokens=17_817,
        gen_ai__usage__reasoning__output_tokens=400,
    )
    assert tokens(tmp_path, request([agent("a", 0, 9), chat("a", 1, "root", **cached)])) == (17_903, 500)


def test_a_span_exported_twice(tmp_path: Path) -> None:
    """Two exporters on one provider send every span twice, under one id."""
    spans = [agent("a", 0, 9, **used(100, 20)), chat("a", 1, "root", **used(100, 20))]
    assert tokens(tmp_path, request(spans), request(spans), request(spans[::-1])) == (100, 20)


def test_a_call_told_by_two_instrumentations_side_by_side(tmp_path: Path) -> None:
    """Two libraries wrap one client: siblings with ids of their own, one within the time of the other."""
    mine = [agent("a", 0, 9), chat("a", 1, "root", id="client", seconds=2, **used(100, 20))]
    theirs = [chat("a", 1.001, "root", id="http", seconds=1.99, **used(100, 20))]
    assert tokens(tmp_path, request(mine), request(theirs, scope="another.library")) == (100, 20)


def test_equal_calls_of_one_instrumentation_are_two(tmp_path: Path) -> None:
    """Parallel calls with equal tokens do happen, so sameness of numbers alone says nothing."""
    spans = [
        agent("a", 0, 9),
        chat("a", 1, "root", id="left", seconds=2, **used(100, 20)),
        chat("a", 1.1, "root", id="right", seconds=1, **used(100, 20)),
    ]
    assert tokens(tmp_path, request(spans)) == (200, 40)


def turns(sums: list[tuple[int, int]], calls: bool = False) -> list[dict[str, Any]]:
    """One run a turn of a conversation, an hour apart, each stating a sum."""
    talk = {"gen_ai__conversation__id": "talk"}
    requests = []
    for turn, (input, output) in enumerate(sums):
        start = turn * 3600
        spans = [agent(f"turn{turn}", start, start + 9, **used(input, output), **talk)]
        if calls:
            spans.append(chat(f"turn{turn}", start + 1, "root", **used(100, 20), **talk))
        requests.append(request(spans))
    return requests


def test_a_session_sum_that_only_grows(tmp_path: Path) -> None:
    """harness-sdk 2010: each run states the whole session's 100, 200, 300 k; 100 k of it are its own."""
    assert tokens(tmp_path, *turns([(100, 20), (200, 45), (330, 60)])) == (330, 60)


def test_a_session_sum_arriving_in_any_order(tmp_path: Path) -> None:
    requests = turns([(100, 20), (200, 45), (330, 60)])
    with bench(tmp_path) as one:
        for number in (2, 0, 1):
            one.send([requests[number]]).derive(LATER)
        assert counted(one) == (330, 60)
        own = one.rows("SELECT input_tokens AS i, output_tokens AS o FROM core.tasks ORDER BY started_at")
        assert [(row["i"], row["o"]) for row in own] == [(100, 20), (100, 25), (130, 15)]


def test_sums_that_do_not_grow_every_time_are_each_run_s_own(tmp_path: Path) -> None:
    assert tokens(tmp_path, *turns([(100, 20), (200, 15), (330, 60)])) == (630, 95)


def test_two_growing_sums_are_too_few_to_tell(tmp_path: Path) -> None:
    """A longer history grows the input of honest sums too; with two runs nothing can be told from that."""
    assert tokens(tmp_path, *turns([(100, 20), (200, 45)])) == (300, 65)


def test_session_sums_over_told_calls_never_count(tmp_path: Path) -> None:
    assert tokens(tmp_path, *turns([(100, 20), (200, 40), (300, 60)], calls=True)) == (300, 60)


def test_an_embedding_counts_once_and_leaves_its_agents_sum_alone(tmp_path: Path) -> None:
    def embedding(start: float, end: float, parent: str, id: str, tokens: int) -> Span:
        return span("a", id, start, end, parent, id=id, openinference__span__kind="EMBEDDING",
                    embedding__model_name="text-embedding-3-small", llm__token_count__prompt=tokens)  # fmt: skip

    looked_up = [embedding(1, 3, "root", "outer", 40), embedding(1.5, 2, "outer", "inner", 40)]
    apart = [agent("a", 0, 9), *looked_up, chat("a", 4, "root", **used(100, 20))]
    summed = [agent("a", 0, 9, **used(500, 50)), *looked_up]
    scope = "openinference.instrumentation.langchain"
    assert tokens(tmp_path / "apart", request(apart, scope=scope)) == (140, 20)
    assert tokens(tmp_path / "summed", request(summed, scope=scope)) == (500, 50)
