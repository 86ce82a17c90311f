"""The part of tests/lab/service_engines.py about Compose: a project that docker-compose starts, and what both say of it.

Debian's docker-compose is version 1, which writes no dependencies into the labels, so the order is tested elsewhere
(tests/it/stacks.rs)."""

import json

from outside import check, expect, text_of, wait

PROJECT = "/root/shop"
STACK = {"stack": "docker:shop"}
SERVICES = ["app", "db", "web"]

COMPOSE = """
version: "3.7"
services:
  web:
    image: gatewren-lab
    command: ["/bin/sh", "-c", "mkdir /www; exec httpd -f -p 8080 -h /www"]
    depends_on: [app]
    networks: [front]
  app:
    image: gatewren-lab
    command: &wait ["/bin/sh", "-c", "trap 'exit 0' TERM; echo begun; while :; do sleep 1 & wait; done"]
    depends_on: [db]
    networks: [front, back]
  db:
    image: gatewren-lab
    command: *wait
    networks: [back]
    volumes: ["data:/data"]
networks: {front: {}, back: {internal: true}}
volumes: {data: {}}
"""


def compose(stage, *words):
    return stage.box.shell(f"cd {PROJECT}; docker-compose --ansi never {' '.join(words)} 2>&1")


def containers(stage):
    """The containers of the project as the engine knows them, by service: what docker inspect says."""
    found = json.loads(stage.box.shell(f"cd {PROJECT}; docker inspect $(docker-compose ps --quiet)"))
    return {one["Config"]["Labels"]["com.docker.compose.service"]: one for one in found}


def running(stage):
    """The services that docker-compose itself calls running."""
    return sorted(stage.box.shell(f"cd {PROJECT}; docker-compose ps --services --filter status=running").split())


def call(stage, tool, **arguments):
    said = stage.client.call(tool, **arguments)
    expect(not said["isError"], text_of(said))
    return said["structuredContent"]


def outcomes(said):
    return {one["container"]: one["outcome"] for one in said["containers"]}


@check("a project of docker-compose is a stack with its services, images and networks")
def project_is_a_stack(stage):
    stage.box.write(f"{PROJECT}/docker-compose.yml", COMPOSE)
    compose(stage, "up", "--detach")
    expect(running(stage) == SERVICES, compose(stage, "ps"))
    line = wait("it is listed", lambda: next(
        (one for one in call(stage, "stack_list")["stacks"] if one["stack"] == STACK["stack"]), None))
    expect((line["services"], line["containers"], line["running"]) == (SERVICES, 3, 3), f"{line}")
    info = call(stage, "stack_info", **STACK)
    theirs = {one["Name"].lstrip("/"): one for one in containers(stage).values()}
    ours = {one["container"].removeprefix("docker:"): one for one in info["containers"]}
    expect(sorted(ours) == sorted(theirs), f"{info}")
    for name, one in ours.items():
        expect(one["image_id"] == theirs[name]["Image"] and one["newer_image"] == "no", f"{one}")
        details = call(stage, "container_info", container=f"docker:{name}")
        networks = theirs[name]["NetworkSettings"]["Networks"].values()
        addresses = sorted(network["IPAddress"] for network in networks)
        expect(sorted(details["addresses"]) == addresses, f"{details['addresses']}, not {addresses}")
    return f"version {stage.box.run('docker-compose', 'version', '--short')}"


@check("stack_stop, stack_start and stack_restart leave the project as docker-compose would")
def stack_changes(stage):
    ids = {service: one["Id"] for service, one in containers(stage).items()}
    stopped = call(stage, "stack_stop", grace_s=5, **STACK)
    expect(set(outcomes(stopped).values()) == {"stopped"} and len(outcomes(stopped)) == 3, f"{stopped}")
    expect(running(stage) == [], compose(stage, "ps"))
    started = call(stage, "stack_start", **STACK)
    expect(set(outcomes(started).values()) == {"started"}, f"{started}")
    expect(running(stage) == SERVICES, compose(stage, "ps"))
    starts = {service: one["State"]["StartedAt"] for service, one in containers(stage).items()}
    restarted = call(stage, "stack_restart", grace_s=5, **STACK)
    expect(set(outcomes(restarted).values()) == {"restarted"}, f"{restarted}")
    again = {service: one["State"]["StartedAt"] for service, one in containers(stage).items()}
    expect(all(again[service] > starts[service] for service in SERVICES), f"{again}")
    # Compose finds its own containers as it left them: nothing is made again.
    said = compose(stage, "up", "--detach")
    expect(said.count("is up-to-date") == 3, said)
    expect({service: one["Id"] for service, one in containers(stage).items()} == ids, "other containers")
    return ", ".join(said.split("\n"))


@check("what docker-compose does to a project is seen at once, and a removed one is unknown")
def compose_changes(stage):
    compose(stage, "stop", "--timeout", "2", "web")
    info = call(stage, "stack_info", **STACK)
    states = {one["service"]: one["state"] for one in info["containers"]}
    expect(states == {"web": "stopped", "app": "running", "db": "running"}, f"{states}")
    compose(stage, "up", "--detach", "--scale", "app=2")
    info = call(stage, "stack_info", **STACK)
    expect([one["service"] for one in info["containers"]].count("app") == 2, f"{info}")
    compose(stage, "down", "--volumes", "--timeout", "2")
    said = stage.client.call("stack_info", **STACK)
    expect(said["isError"] and "there is no stack" in text_of(said), text_of(said))
    wait("the state has lost it", lambda: not any("shop" in name for name in stage.client.read("/public/packageData")))
