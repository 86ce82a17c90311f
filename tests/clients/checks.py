"""What a client driven from Python must be able to do with gatewren and its fixtures, whatever it was made with.

The runner does something to the box when asked (`ask WORDS` on stdout) and answers `done` on stdin.
"""

import contextlib
import dataclasses
import json
import os
import random
import sys

import anyio

CONTAINER = os.environ["GATEWREN_CONTAINER"]  # empty where there is no container to try
SHELL = "container_shell" if CONTAINER else "system_shell"
IN_CONTAINER = {"container": CONTAINER} if CONTAINER else {}
BOUND = 480  # seconds for the whole of it; a client that hangs has failed
EVENT = 60  # seconds until something that must happen has happened
AGAIN = 2  # seconds before a row is written again, for a stream that was away
BOX = "gatewren:///public/packageData"
NOTES = "gatewren:///public/notes"
WATCHED = [f"{BOX}/{CONTAINER}" if CONTAINER else BOX, NOTES]


@dataclasses.dataclass
class Server:
    """Where a client connects, and with what token."""

    url: str
    token: str

    @property
    def headers(self):
        return {"Authorization": f"Bearer {self.token}"}


NAME = os.environ["GATEWREN_CLIENT"]
AUTHORITIES = os.environ["GATEWREN_CA"]
AT_BOX = Server(os.environ["GATEWREN_URL"], os.environ["GATEWREN_TOKEN"])
AT_FIXTURES = Server(os.environ["GATEWREN_FIXTURES_URL"], os.environ["GATEWREN_FIXTURES_TOKEN"])


@dataclasses.dataclass
class Result:
    """What a tool answered, whichever types the client has for it."""

    is_error: bool
    text: str


BY_ITSELF, SUBSCRIBING_AGAIN = "by itself", "subscribing again"


class Client:
    """What a client's file fills in. What it leaves as it is here, its client cannot do."""

    tools = None  # async () -> the tools' names
    call = None  # async (name, arguments) -> Result
    read = None  # async (uri) -> the text of a resource
    subscribe = None  # (uris, heard) -> async context manager; heard(uri) for each notice
    session_id = None  # () -> the id of the session
    cancels = False  # whether a call that is given up tells the server
    stays = False  # whether it is connected between two calls, which a restart of the server can break
    hears_later = None  # BY_ITSELF or SUBSCRIBING_AGAIN: how it hears of changes after that
    comes_back = False  # whether it hears by itself after the server was away for some seconds
    progress = None  # async (name, arguments) -> what was heard of progress


class Library(Client):
    """A client whose `call` also takes a callback for progress."""

    async def progress(self, name, arguments):
        heard = []

        async def on_progress(progress, total, message):
            heard.append(progress)

        await self.call(name, arguments, on_progress)
        return heard


class Asked:
    """What the client answers when the server asks for something, and what it was asked."""

    def __init__(self):
        self.questions = []

    def elicited(self, message, schema):
        self.questions.append(message)
        return {field: "Ada" for field in schema["properties"]}

    def sampled(self, prompt):
        self.questions.append(prompt)
        return "Paris"


class Person(Asked):
    """Whoever sits at the client, asked before something is stopped."""

    agrees = False

    def elicited(self, message, schema):
        self.questions.append(message)
        return {field: self.agrees for field in schema["properties"]}


failed = False


def run(connect, asks=False):
    """Runs a client through everything: `connect(server, asked)` is an async context manager that gives a Client.

    With `asks` the client can answer the server's questions, and is tried with the fixtures too.
    """
    if "GATEWREN_FRONTS" in os.environ:
        import balanced  # which imports this file

        anyio.run(balanced.everything, connect)
    else:
        anyio.run(everything, connect, asks)
    sys.exit(failed)


async def everything(connect, asks):
    with check("comes to its end", only_faults=True):
        with anyio.fail_after(BOUND):
            await connected("connects", "closes", connect(AT_BOX, None), at_the_box)
            if asks:
                person = Person()
                to, from_ = "connects with a person", "closes its connection with a person"
                await connected(to, from_, connect(AT_BOX, person), with_a_person, person)
                asked = Asked()
                to, from_ = "connects to the fixtures", "closes its connection to the fixtures"
                await connected(to, from_, connect(AT_FIXTURES, asked), at_the_fixtures, asked)


async def connected(opens, closes, connection, act, *more):
    async with contextlib.AsyncExitStack() as stack:
        client = None
        with check(opens):
            client = await stack.enter_async_context(connection)
        if client:
            await act(client, *more)
            with check(closes, only_faults=not client.stays):
                await stack.aclose()


async def at_the_box(client):
    with check("lists its tools"):
        names = await client.tools()
        expect({SHELL, "whoami"} <= set(names), f"only {names}")
    with check("calls whoami"):
        await whoami(client)
    with check("is told what is wrong with its arguments"):
        result = await client.call(SHELL, {**IN_CONTAINER, "command": 7})
        expect(result.is_error and "command" in result.text, result)
    with check("reads a resource"):
        containers = json.loads(await client.read(BOX))
        expect(not CONTAINER or CONTAINER in containers, containers)
    if CONTAINER:
        with check("runs a command in a container"):
            result = await client.call(SHELL, {**IN_CONTAINER, "command": 'echo "this is $(hostname)"'})
            expect(not result.is_error and f"this is {CONTAINER}" in result.text, result)
    else:
        skip("runs a command in a container")
    if client.cancels:
        with check("ends a command by cancelling its call"):
            await cancels(client)
    if client.subscribe:
        await notices(client)
    elif client.stays:
        await restart(client)


async def whoami(client):
    result = await client.call("whoami", {})
    expect(not result.is_error and "admin" in result.text, result)


async def cancels(client):
    seconds = 1_000_000 + random.randrange(1_000_000)  # no other client's command
    asked = {**IN_CONTAINER, "argv": ["sleep", str(seconds)], "timeout_s": 300}
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client.call, SHELL, asked)
        await ask(f"see-sleep {seconds}")
        tasks.cancel_scope.cancel()
    await ask(f"see-no-sleep {seconds}")


async def notices(client):
    ear = Ear()
    async with contextlib.AsyncExitStack() as subscribed:
        with check("subscribes"):
            await subscribed.enter_async_context(client.subscribe(WATCHED, ear.heard))
        if CONTAINER:
            with check("hears that a container was restarted"):
                await ear.hears(WATCHED[0], "restart-container")
        else:
            skip("hears that a container was restarted")
        with check("hears of a row another program wrote"):
            await ear.hears(NOTES, "write-row")
        await restart(client)
        if client.hears_later == BY_ITSELF:
            with check("hears of a row after that"):
                await ear.hears_in_the_end(NOTES, "write-row")
        if client.comes_back:
            with check("hears of a row after the server was away for ten seconds"):
                await ask("stop-server-for 10")
                await ear.hears_in_the_end(NOTES, "write-row")
    if client.hears_later == SUBSCRIBING_AGAIN:
        with check("subscribes again, and hears of a row after that"):
            async with client.subscribe(WATCHED, ear.heard):
                await ear.hears(NOTES, "write-row")


async def restart(client):
    with check("goes on when the server was killed and has started again"):
        session = client.session_id and client.session_id()
        await ask("restart-server")
        await eventually(whoami, client)
        after = client.session_id and client.session_id()
        expect(after == session, f"it was session {session} and is now {after}")


async def with_a_person(client, person):
    """What stops something runs only with a yes of the person at the client."""

    async def stop():
        person.questions.clear()
        result = await client.call("container_stop", {"container": "no-such-box"})
        expect(result.is_error and len(person.questions) == 1, result)
        question = person.questions[0]
        expect("container_stop" in question and "no-such-box" in question, question)
        return result.text

    with check("stops nothing when the person does not agree"):
        said = await stop()
        expect("did not agree" in said, said)
    with check("goes on when the person agrees"):
        person.agrees = True
        said = await stop()
        expect("person" not in said, said)


async def at_the_fixtures(client, asked):
    """What the server asks of a client, and what it says on the way to a result."""

    async def says(tool, arguments, wanted):
        asked.questions.clear()
        result = await client.call(tool, arguments)
        expect(not result.is_error and wanted in result.text, result)

    with check("answers an elicitation"):
        await says("test_elicitation", {"message": "Who are you?"}, "Ada")
        expect(asked.questions == ["Who are you?"], asked.questions)
    with check("answers a sampling request"):
        await says("test_sampling", {"prompt": "What is the capital of France?"}, "Paris")
        expect(asked.questions == ["What is the capital of France?"], asked.questions)
    with check("answers in several rounds"):
        await says("test_input_required_result_multi_round", {}, "Both rounds")
        expect(len(asked.questions) == 2, asked.questions)
    with check("hears of progress"):
        heard = await client.progress("test_tool_with_progress", {})

        async def all_of_it():  # which may be handed on after the result
            expect(heard == [0, 50, 100], heard)

        await eventually(all_of_it)


@contextlib.contextmanager
def check(what, only_faults=False):
    global failed
    try:
        yield
        if not only_faults:
            say(f"ok {NAME} {what}")
    except Exception as error:
        failed = True
        say(f"not ok {NAME} {what}: {words(error)}")


def words(error):
    """An error in one line; a group of them by its first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


def skip(what):
    say(f"skip {NAME} {what}: no LXC lab here")


def say(line):
    print(" ".join(line.split()), flush=True)


def expect(truth, why):
    if not truth:
        raise AssertionError(why)


async def ask(what):
    say(f"ask {what}")
    answer = (await anyio.to_thread.run_sync(sys.stdin.readline)).strip()
    expect(answer == "done", f"the runner could not {what}: {answer}")


async def eventually(act, *arguments):
    """Tries until it works: a connection that broke may be noticed only by the request that is sent on it."""
    end = anyio.current_time() + EVENT
    while True:
        try:
            return await act(*arguments)
        except Exception:
            if anyio.current_time() > end:
                raise
            await anyio.sleep(0.1)


class Ear:
    """Hears notices by URI, and waits for one that comes after a change was asked for."""

    def __init__(self):
        self.counts = {}

    def heard(self, uri):
        self.counts[uri] = self.counts.get(uri, 0) + 1

    async def hears(self, uri, change):
        before = self.counts.get(uri)
        await ask(change)
        expect(await self.more(uri, before, EVENT), f"no notice for {uri} within {EVENT} s")

    async def hears_in_the_end(self, uri, change):
        """For a stream that is perhaps still being opened: changes the box until it is heard."""
        before, end = self.counts.get(uri), anyio.current_time() + EVENT
        while anyio.current_time() < end:
            await ask(change)
            if await self.more(uri, before, AGAIN):
                return
        raise AssertionError(f"no notice for {uri} within {EVENT} s, whatever changes")

    async def more(self, uri, before, seconds):
        with anyio.move_on_after(seconds):
            while self.counts.get(uri) == before:
                await anyio.sleep(0.02)
            return True
        return False
