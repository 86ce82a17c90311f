"""What a Python client with a session must be able to do behind a balancer with two fronts, of which one is killed.
`connect` is that of checks.py."""

import contextlib
import random

import anyio

import checks
from checks import NOTES, ask, check, eventually, expect

LOST = 5  # seconds until the client gives up the call of a killed front, whose rest no front has


async def everything(connect):
    """Runs a client through everything."""
    with check("comes to its end", only_faults=True), anyio.fail_after(checks.BOUND):
        person, sessions = checks.Person(), []

        async def act(client):
            # The Python SDK 2.x shows its session only in the requests after initialize.
            await whoami(client)
            sessions.append(client.session_id())
            await with_a_session(client, person, sessions[0])

        await checks.connected("connects", "closes", connect(checks.AT_BOX, person), act)
        with check("ends its session at both fronts"):
            await ask(f"see-no-session {sessions[0]}")


async def with_a_session(client, person, session):
    async def still_there():
        await whoami(client)
        expect(client.session_id() == session, f"it was session {session} and is now {client.session_id()}")

    with check("lists its tools"):
        names = await client.tools()
        expect("whoami" in names, f"only {names}")
    with check("calls whoami"):
        await still_there()
    with check("has a session that both fronts know"):
        await ask(f"see-session {session}")
    with check("answers an elicitation"):
        result = await client.call("container_stop", {"container": "no-such-box"})
        expect(len(person.questions) == 1 and "no-such-box" in person.questions[0], person.questions)
        expect(result.is_error and "did not agree" in result.text, result)
    with check("gets the progress of a longer call"):
        heard = await client.progress("system_shell", {"argv": ["sleep", "3"]})
        expect(len(heard) >= 2, heard)
    ear = checks.Ear()
    async with contextlib.AsyncExitStack() as subscribed:
        with check("subscribes"):
            await subscribed.enter_async_context(client.subscribe([NOTES], ear.heard))
        await notices(client, ear, session, still_there)


async def notices(client, ear, session, still_there):
    with check("hears of a row another program wrote"):
        await ear.hears(NOTES, "write-row")
    with check("goes on in its session when its front is killed in the middle of a stream"):
        await lose_a_call(client, session, still_there)
    with check("hears of a row after that"):
        await ear.hears_in_the_end(NOTES, "write-row")
    with check("keeps its session when the front is back"):
        await ask("start-front")
        await ask(f"see-session {session}")
        await eventually(still_there)
        await ear.hears_in_the_end(NOTES, "write-row")


async def whoami(client):
    result = await client.call("whoami", {})
    expect(not result.is_error and "admin" in result.text, result)


async def lose_a_call(client, session, still_there):
    """Kills the front of the session in the middle of the stream of a call: its command is killed, the client goes on,
    and does not take the call for done."""
    seconds = 1_000_000 + random.randrange(1_000_000)  # no other client's command
    arguments = {"argv": ["sleep", str(seconds)], "timeout_s": 300}
    began, outcome = anyio.Event(), []

    async def on_progress(progress, total, message):
        began.set()

    async def lost():
        try:
            with anyio.fail_after(LOST):
                outcome.append(f"result: {await client.call('system_shell', arguments, on_progress)}")
        except Exception as error:
            outcome.append(f"failed: {error!r}")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lost)
        await began.wait()
        await ask(f"kill-front-of {session}")
        await eventually(still_there)
        await ask(f"see-no-sleep {seconds}")
    expect(outcome and outcome[0].startswith("failed"), outcome)
