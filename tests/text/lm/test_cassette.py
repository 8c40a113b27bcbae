"""A recorded run is replayed as it was, under any concurrency; one that differs is shown where; nothing is lost."""

import asyncio
import contextlib
import errno
import os
import re
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradspec.text import Retried, Variable, concurrency, gather, watch
from gradspec.text.lm import (
    Budget,
    BudgetError,
    Cache,
    Cassette,
    Client,
    Completion,
    DriftError,
    Message,
    ModelError,
    OpenAIModel,
    ReplyError,
    StatusError,
    Usage,
    complete,
)
from gradspec.text.lm import _cassette as cassettes
from gradspec.text.lm._cassette_text import Entry, parsed, request_lines
from gradspec.text.ops import achat, chat
from gradspec.text.optim import TextualGradientDescent, optimize
from text.lm import recorded
from text.lm.server import Server

DATA = [(f"question {i}", f"answer {i}") for i in range(16)]


def refusing(messages, **options):
    raise AssertionError("a replay asked a model")


REPLAYED = Client(refusing, name="moody")


def ask(path, questions, model=lambda messages: "yes", **how):
    """Ask questions one after the other, recorded in a file or replayed from it, and return the replies."""
    with Cassette(path, **how):
        return [complete(model, question).text for question in questions]


def replay(path, questions):
    """Ask questions without a model."""
    return ask(path, questions, refusing, mode="replay")


def check_replays(seed, path):
    """Record a program under one concurrency, and replay it under two."""
    for limit in (1, 16):
        file = path / f"{seed}-{limit}"
        client, model = recorded.client(seed)
        with Cassette(file):
            wanted = recorded.run(seed, client, limit)
        assert model.calls > 0
        for again in (1, 16):
            with Cassette(file, mode="replay"):
                assert recorded.run(seed, REPLAYED, again) == wanted


def check_same_text(seed, path):
    """Record a program whose model is sure of itself under both, and compare the files."""
    texts = []
    for limit in (1, 16):
        with Cassette(path / f"sober-{seed}-{limit}"):
            recorded.run(seed, recorded.Sober(limit), limit)
        texts.append((path / f"sober-{seed}-{limit}").read_text(encoding="utf-8"))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("seed", range(12))
def test_a_random_program_is_replayed_under_any_concurrency(seed, tmp_path):
    check_replays(seed, tmp_path)


@pytest.mark.parametrize("seed", range(12))
def test_a_cassette_does_not_tell_the_concurrency(seed, tmp_path):
    check_same_text(seed, tmp_path)


@pytest.mark.slow
def test_a_thousand_random_programs(tmp_path):
    for seed in range(100, 1100):
        check_replays(seed, tmp_path)
        check_same_text(seed, tmp_path)
        for file in tmp_path.iterdir():
            file.unlink()


def judged(prediction, target):
    """Return a score made of the first number in a prediction."""
    return int(re.search(r"\d+", prediction)[0]) % 7 / 7, f"{prediction[:9]} is not {target}."


def tuned(model, limit, **settings):
    """Optimize a prompt, and return the report and the prompt."""
    prompt = Variable("Answer.", role="system prompt", requires_grad=True)

    def answer(question):
        return chat(model, [{"role": "system", "content": prompt}, {"role": "user", "content": question}])

    writer = TextualGradientDescent([prompt], model, momentum=2)
    found = optimize(answer, DATA, judged, writer, steps=4, batch=3, concurrency=limit, **settings)
    return found.to_json(), prompt.data


def test_a_whole_optimization_is_replayed_with_its_report(tmp_path):
    client, model = recorded.client(0)
    with Cassette(tmp_path / "run"):
        wanted = tuned(client, 16)
    assert model.calls > 40
    for limit in (1, 16):
        with Cassette(tmp_path / "run", mode="replay"):
            assert tuned(REPLAYED, limit) == wanted


def test_a_run_that_looked_at_its_budget_first_is_replayed_without_one(tmp_path):
    budget = Budget(calls=900)
    client = Client(recorded.Sober(0), name="m", budget=budget)

    with Cassette(tmp_path / "run"):
        wanted = tuned(client, 4, budget=budget)
    with Cassette(tmp_path / "run", mode="replay"):
        assert tuned(Client(refusing, name="m"), 1) == wanted


def test_a_replay_touches_neither_cache_nor_budget_and_gives_what_came_from_the_cache(tmp_path):
    cache, budget = Cache(":memory:"), Budget(calls=10)
    client = Client(lambda messages: "yes", name="m", cache=cache, budget=budget)
    with Cassette(tmp_path / "run"):
        recorded_replies = [client("Is it?"), client("Is it?")]
    assert [reply.cached for reply in recorded_replies] == [False, True]
    empty, none = Cache(":memory:"), Budget(calls=0)
    client = Client(refusing, name="m", cache=empty, budget=none)
    with Cassette(tmp_path / "run", mode="replay"):
        assert [client("Is it?"), client("Is it?")] == recorded_replies
    assert (len(empty), none.calls) == (0, 0)


def test_retries_are_recorded_and_told_of_again_without_a_wait(tmp_path):
    def events_of(client, mode):
        seen = []
        with Cassette(tmp_path / "run", mode=mode), watch(seen.append):
            client("Hello?")
        return [(event.attempt, event.error) for event in seen if isinstance(event, Retried)]

    client, _ = recorded.client(3, faults=0.7)
    wanted = events_of(client, "record")
    assert len(wanted) > 0
    assert events_of(REPLAYED, "replay") == wanted


def test_an_error_is_replayed_as_it_was_and_asked_again_by_a_resume(tmp_path):
    errors = [
        StatusError("slow down", status=429, retry_after=90.0),
        ReplyError("no text\n"),
        ValueError("no\rsense"),
        KeyError("it"),
    ]

    def failing(messages):
        raise errors[int(messages[-1].content)]

    def ask_all(model):
        found = []
        for number in range(4):
            try:
                found.append(complete(model, str(number)).text)
            except Exception as error:
                kind = type(error) if not isinstance(error, KeyError) else ModelError
                said = str(error) if not isinstance(error, KeyError) else f"KeyError: {error}"
                found.append((kind, said, getattr(error, "status", None), getattr(error, "retry_after", None)))
        return found

    with Cassette(tmp_path / "run"):
        wanted = ask_all(failing)
    with Cassette(tmp_path / "run", mode="replay"):
        assert ask_all(refusing) == wanted
    with Cassette(tmp_path / "run", mode="resume"):
        assert ask_all(lambda messages: "fine") == ["fine"] * 4


def test_a_run_that_failed_is_replayed_to_its_failure(tmp_path):
    client = Client(lambda messages: "yes", name="m", budget=Budget(calls=2))

    def run(model):
        for number in range(9):
            model(str(number))

    with pytest.raises(BudgetError) as wanted, Cassette(tmp_path / "run"):
        run(client)
    assert (tmp_path / "run").read_text().endswith("run of 3 calls, ended by BudgetError\n")
    with pytest.raises(BudgetError) as found, Cassette(tmp_path / "run", mode="replay"):
        run(Client(refusing, name="m"))
    assert str(found.value) == str(wanted.value)


@pytest.mark.parametrize("limit", [1, 16])
def test_a_changed_prompt_is_shown_at_the_first_call_that_differs(limit, tmp_path):
    def program(second):
        first = Variable("Say why.", role="first")
        with concurrency(limit):
            answers = [chat(lambda m: "Because.", [{"role": "user", "content": p}]) for p in (first, second, second)]
            return [answer.data for answer in answers]

    with Cassette(tmp_path / "run"):
        program("Answer\nin one word.")
    with pytest.raises(DriftError) as found, Cassette(tmp_path / "run", mode="replay"):
        program("Answer\nin two words.")
    assert str(found.value).splitlines() == [
        f"call 2, number 2 of 3 in {tmp_path / 'run'}, is not what was recorded:",
        "--- recorded",
        "+++ this run",
        "@@ -2,3 +2,3 @@",
        " user",
        " | Answer",
        "-| in one word.",
        "+| in two words.",
    ]


def test_a_difference_is_raised_although_the_program_swallows_it(tmp_path):
    def program(model, question):
        with Cassette(tmp_path / "run", mode="replay"), contextlib.suppress(DriftError):
            complete(model, question)

    ask(tmp_path / "run", ["Is it?"])
    program(refusing, "Is it?")
    with pytest.raises(DriftError):
        program(refusing, "Was it?")


def test_a_call_too_many_and_calls_too_few_are_shown(tmp_path):
    questions = [f"Is it {number}?" for number in range(3)]
    ask(tmp_path / "run", questions)
    with pytest.raises(DriftError, match=r"call 4, number 4 of 3 in .*, was not recorded:(.|\n)*\+\| Is it 3\?"):
        replay(tmp_path / "run", [*questions, "Is it 3?"])
    with pytest.raises(DriftError, match=r"ended without 2 of the 3 calls in .* is call 2:(.|\n)*\| Is it 1\?"):
        replay(tmp_path / "run", questions[:1])


def test_options_schema_and_sample_are_part_of_the_request(tmp_path):
    client = Client(lambda messages, **options: '{"a": 1}', name="m", options={"temperature": 0.5})
    with Cassette(tmp_path / "run"):
        client("Say.", schema={"required": ["a"]}, sample=2)
    for change in ({"sample": 1}, {"temperature": 0.6}, {"schema": {"required": ["b"]}}):
        with pytest.raises(DriftError), Cassette(tmp_path / "run", mode="replay"):
            Client(refusing, name="m")(
                "Say.", **{"temperature": 0.5, "schema": {"required": ["a"]}, "sample": 2, **change}
            )


@pytest.mark.slow
def test_cut_at_any_byte_a_run_goes_on_and_pays_only_for_what_is_missing(tmp_path):
    def run(model):
        with concurrency(4):
            answers = [chat(model, f"Is it {number}?") for number in range(3)]
            return complete(model, " ".join(answer.data for answer in answers)).text

    with Cassette(tmp_path / "whole"):
        wanted = run(recorded.Sober(0))
    whole = (tmp_path / "whole").read_bytes()
    for cut in range(len(whole)):
        paid = []

        def counting(messages, paid=paid):
            paid.append(messages)
            return recorded.Sober(0)(messages)

        (tmp_path / "cut").write_bytes(whole[:cut])
        with Cassette(tmp_path / "cut", mode="resume"):
            assert run(counting) == wanted
        assert len(paid) == 4 - whole[:cut].count(b"\nend\n")
        assert (tmp_path / "cut").read_bytes() == whole


def test_a_run_that_was_killed_is_not_replayed(tmp_path):
    with Cassette(tmp_path / "run"):
        complete(lambda messages: "yes", "Is it?")
    whole = (tmp_path / "run").read_bytes()
    (tmp_path / "run").write_bytes(whole[: whole.index(b"run of")])
    with pytest.raises(ValueError, match="did not come to its end; mode='resume' goes on with it"):
        Cassette(tmp_path / "run", mode="replay").__enter__()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda text: text.replace("cassette 1", "cassette 9"), "its first line is not 'gradspec cassette 1'"),
        (lambda text: text.replace("run of 2", "run of 3"), "line 19 says 'run of 3 calls', and the file holds 2"),
        (lambda text: text.replace("reply", "rely"), "lines 3 to 9 are not a call of a cassette: it has neither"),
        (lambda text: text.replace("call 2", "call 1"), "has two calls at one position"),
        (
            lambda text: text.replace("call 2", "call two"),
            "lines 11 to 17 are not a call of a cassette: invalid literal",
        ),
        (lambda text: text.replace("| yes", ""), "its reply has no text; an empty one is the line"),
    ],
)
def test_a_spoiled_file_is_refused_with_its_lines(spoil, said, tmp_path):
    with Cassette(tmp_path / "run"):
        for number in range(2):
            complete(lambda messages: Completion(text="yes"), f"{number}")
    text = (tmp_path / "run").read_text()
    (tmp_path / "run").write_text(spoil(text))
    with pytest.raises(ValueError, match=said):
        Cassette(tmp_path / "run", mode="replay").__enter__()
    complete(lambda messages: "yes", "It records no more.")


def test_a_reply_that_a_reviewer_has_edited_is_replayed_and_line_ends_do_not_matter(tmp_path):
    ask(tmp_path / "run", ["Is it?"], lambda messages: "yes\nno")
    text = (tmp_path / "run").read_bytes().replace(b"| no", b"| maybe").replace(b"\n", b"\r\n")
    (tmp_path / "run").write_bytes(text)
    assert replay(tmp_path / "run", ["Is it?"]) == ["yes\nmaybe"]


texts = st.text(st.characters(exclude_categories=()))  # lone surrogates too
completions = st.builds(
    Completion,
    text=texts,
    usage=st.none() | st.builds(Usage, prompt_tokens=st.integers(0, 99), completion_tokens=st.integers(0, 99)),
    finish_reason=st.none() | texts,
    model=st.none() | texts,
    id=st.none() | texts,
    value=st.none() | st.dictionaries(st.text(), st.integers() | st.text()),
    cached=st.booleans(),
)
messages = st.lists(
    st.builds(Message, role=st.sampled_from(["user", "system", "assistant"]), content=texts), min_size=1
)


@settings(deadline=None)
@given(messages, completions, st.lists(st.integers(0, 20), min_size=1))
def test_any_text_comes_back_as_it_was(said, completion, position):
    request = request_lines("m", None, said, {"seed": 1}, None, 0)
    entry = Entry(position=(*position, 1), request=request, retried=("TimeoutError",), outcome=completion)
    text = f"gradspec cassette 1\n\n{entry.text}\nrun of 1 call\n"
    assert parsed(text, "it") == ([entry], "run of 1 call")
    assert parsed(text.encode().decode(), "it")[0][0].request == request_lines("m", None, said, {"seed": 1}, None, 0)


def test_no_key_and_no_header_is_in_it(tmp_path):
    key, header = "sk-0123456789abcdef0123", "tenant-0123456789abcdef"

    def repeating(body):
        return f"You sent {key} and {header}."

    with Server(reply=repeating, faults=[(401, f"no {key} {header}".encode())]) as server:
        model = OpenAIModel("echo", base_url=server.url, api_key=key, headers={"X-Tenant": header})
        with Cassette(tmp_path / "run"):
            with pytest.raises(StatusError):
                model("Hello")
            model("Hello")
            Client(model)("Hello")
            asyncio.run(model.acall("Hello"))
            complete(lambda messages, **options: "yes", "Hello", api_key=key, extra_headers={"X-Tenant": header})
        fingerprint = model.identity["headers"]
        asked = len(server.requests)
        # Another key is another customer of the same run.
        other = OpenAIModel("echo", base_url=server.url, api_key="sk-another")
        with Cassette(tmp_path / "run", mode="replay"):
            with pytest.raises(StatusError):
                other("Hello")
            assert "[secret]" in other("Hello").text
            Client(other)("Hello")
            asyncio.run(other.acall("Hello"))
            complete(refusing, "Hello", api_key="sk-another", extra_headers={})
        assert len(server.requests) == asked
    text = (tmp_path / "run").read_text()
    assert not [word for word in (key, header, "X-Tenant", fingerprint) if word in text]
    assert 'options {"api_key":"[secret]","extra_headers":"[secret]"}' in text


@pytest.mark.parametrize("limit", [1, 4])
def test_programs_on_an_event_loop_are_replayed(limit, tmp_path):
    async def twice(model, question):
        first = await achat(model, question)
        return await achat(model, [{"role": "user", "content": [first, " Why?"]}])

    async def program(model):
        with concurrency(limit):
            answers = await gather(*(twice(model, f"Is it {number}?") for number in range(6)))
            last = await achat(model, " ".join(answer.data for answer in answers))
            return [answer.data for answer in (*answers, last)]

    async def moody(messages):
        await asyncio.sleep(model.draw.random() * 0.001)
        return model(messages).text

    model = recorded.Moody(0, faults=0)
    with Cassette(tmp_path / "run"):
        wanted = asyncio.run(program(moody))
    with Cassette(tmp_path / "run", mode="replay"):
        assert asyncio.run(program(refusing)) == wanted


def test_calls_in_threads_of_the_user_are_recorded(tmp_path):
    with Cassette(tmp_path / "run"), ThreadPoolExecutor(1) as threads:
        list(threads.map(lambda number: complete(lambda messages: "yes", f"{number}"), range(5)))
    with Cassette(tmp_path / "run", mode="replay"):
        assert [complete(refusing, f"{number}").text for number in range(5)] == ["yes"] * 5


def test_a_full_disk_loses_no_reply_and_the_run_can_go_on(tmp_path, monkeypatch):
    def full(file, text):
        os.write(file, text.encode()[:20])
        raise OSError(errno.ENOSPC, "No space left on device")

    write = cassettes._write

    def asked():
        with Cassette(tmp_path / "run"):
            for number, writing in (("1", write), ("2", full), ("3", write)):
                monkeypatch.setattr(cassettes, "_write", writing)
                yield complete(lambda messages: f"reply to {messages[-1].content}", number).text

    with pytest.warns(UserWarning, match="a reply was paid and is returned, and not kept in .*: No space left on dev"):
        replies = [*asked()]
    assert replies == ["reply to 1", "reply to 2", "reply to 3"]
    again = []
    ask(tmp_path / "run", "123", lambda messages: again.append(messages[-1].content) or "late", mode="resume")
    assert again == ["2"]
    assert replay(tmp_path / "run", "123") == ["reply to 1", "late", "reply to 3"]


def test_one_cassette_at_a_time(tmp_path):
    refused = pytest.raises(RuntimeError, match="records this process already; a run has one cassette")
    with Cassette(tmp_path / "one"), refused:
        Cassette(tmp_path / "other").__enter__()
    assert not (tmp_path / "other").exists()


def test_a_file_that_is_there_is_not_overwritten(tmp_path):
    (tmp_path / "run").write_text("mine")
    with pytest.raises(FileExistsError, match="exists already; delete it, name another file, or pass mode='resume'"):
        Cassette(tmp_path / "run").__enter__()
    assert (tmp_path / "run").read_text() == "mine"
    with pytest.raises(FileNotFoundError):
        Cassette(tmp_path / "none", mode="replay").__enter__()
    with pytest.raises(ValueError, match="mode is record, resume or replay, not 'play'"):
        Cassette(tmp_path / "run", mode="play")


def test_what_cannot_be_written_is_refused_before_it_is_paid(tmp_path):
    asked = []
    with Cassette(tmp_path / "run"), pytest.raises(TypeError, match="a request is made of plain data"):
        complete(lambda messages, **options: asked.append(1) or "yes", "Is it?", tool=object())
    assert asked == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_is_told_that_it_is_not_recorded(tmp_path):
    with Cassette(tmp_path / "run"):
        complete(lambda messages: "yes", "1")
        child = os.fork()
        if not child:
            try:
                complete(lambda messages: "yes", "2")
            except RuntimeError as error:
                os._exit(0 if "not one that was forked" in str(error) else 1)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.slow
def test_the_memory_of_a_recorded_run_does_not_grow_with_its_calls(tmp_path):
    def peak(calls):
        tracemalloc.start()
        try:
            with Cassette(tmp_path / str(calls)):
                for number in range(calls):
                    complete(lambda messages: "yes " * 100, f"Is it {number}?")
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(10)
    assert peak(10_000) - peak(100) < 100_000  # the file has more than four megabytes
    assert (tmp_path / "10000").stat().st_size > 4_000_000


def test_a_call_that_outlives_the_block_loses_nothing(tmp_path):
    asked, go = threading.Event(), threading.Event()

    def slow(messages):
        asked.set()
        go.wait(30)
        return "late"

    with ThreadPoolExecutor(1) as threads:
        with Cassette(tmp_path / "run"):
            reply = threads.submit(complete, slow, "1")
            asked.wait(30)
        go.set()
        assert reply.result().text == "late"
    assert "run of 0 calls" in (tmp_path / "run").read_text()
