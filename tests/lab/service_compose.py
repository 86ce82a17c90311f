"""The part of tests/lab/service_engines.py about Compose: projects that docker-compose starts in Docker and, over Podman's
socket, in Podman, and what both say of them.

Debian's docker-compose is version 1, which writes no dependencies into the labels, so the order is tested elsewhere
(tests/it/stacks.rs)."""

import json

from outside import check, expect, text_of, wait

SERVICES = ["app", "db", "web"]

# A service that ends on SIGTERM, and one that does not.
WAITS = """["/bin/sh", "-c", "trap 'exit 0' TERM; echo begun; while :; do sleep 1 & wait; done"]"""
SERVES = """["/bin/sh", "-c", "mkdir /www; exec httpd -f -p 8080 -h /www"]"""

WITH_NETWORKS = f"""
version: "3.7"
services:
  web: {{image: gatewren-lab, command: {SERVES}, depends_on: [app], networks: [front]}}
  app: {{image: gatewren-lab, command: {WAITS}, depends_on: [db], networks: [front, back]}}
  db: {{image: gatewren-lab, command: {WAITS}, networks: [back], volumes: ["data:/data"]}}
networks: {{front: {{}}, back: {{internal: true}}}}
volumes: {{data: {{}}}}
"""

# The box has no network plugin of Podman.
WITHOUT_NETWORKS = f"""
version: "3.7"
services:
  web: {{image: localhost/gatewren-lab, command: {SERVES}, depends_on: [app], network_mode: none}}
  app: {{image: localhost/gatewren-lab, command: {WAITS}, depends_on: [db], network_mode: none}}
  db: {{image: localhost/gatewren-lab, command: {WAITS}, network_mode: none, volumes: ["data:/data"]}}
volumes: {{data: {{}}}}
"""


class Project:
    """A project in a folder of its own, and its stack."""

    def __init__(self, engine, name, text):
        self.engine, self.name, self.text = engine, name, text
        self.folder, self.stack = f"/root/{name}", {"stack": f"{engine}:{name}"}

    def shell(self, stage, line):
        host = "export DOCKER_HOST=unix:///run/podman/podman.sock;" if self.engine == "podman" else ""
        return stage.box.shell(f"cd {self.folder}; {host} {line}")

    def compose(self, stage, *words):
        return self.shell(stage, f"docker-compose --ansi never {' '.join(words)} 2>&1")

    def containers(self, stage):
        """Its containers by service: what the engine's own client says."""
        found = json.loads(self.shell(stage, f"{self.engine} inspect $(docker-compose ps --quiet)"))
        return {one["Config"]["Labels"]["com.docker.compose.service"]: one for one in found}

    def states(self, stage, key):
        return {service: one["State"][key] for service, one in self.containers(stage).items()}

    def running(self, stage):
        """The services that docker-compose itself calls running."""
        return sorted(self.shell(stage, "docker-compose ps --services --filter status=running").split())


PROJECTS = [Project("docker", "shop", WITH_NETWORKS), Project("podman", "bakery", WITHOUT_NETWORKS)]


def call(stage, tool, **arguments):
    said = stage.client.call(tool, **arguments)
    expect(not said["isError"], text_of(said))
    return said["structuredContent"]


def expect_outcomes(said, outcome):
    found = {one["container"]: one["outcome"] for one in said["containers"]}
    expect(len(found) == 3 and set(found.values()) == {outcome}, f"{said}")


def project_is_a_stack(stage, project):
    stage.box.write(f"{project.folder}/docker-compose.yml", project.text)
    project.compose(stage, "up", "--detach")
    expect(project.running(stage) == SERVICES, project.compose(stage, "ps"))

    def line():
        return next((one for one in call(stage, "stack_list")["stacks"] if one["stack"] == project.stack["stack"]), {})
    wait("it is listed", lambda: line().get("running") == 3)
    expect((line()["services"], line()["containers"]) == (SERVICES, 3), f"{line()}")
    info = call(stage, "stack_info", **project.stack)
    theirs = {one["Name"].lstrip("/"): one for one in project.containers(stage).values()}
    ours = {one["container"].partition(":")[2]: one for one in info["containers"]}
    expect(sorted(ours) == sorted(theirs), f"{info}")
    for name, one in ours.items():
        expect(one["image_id"].endswith(theirs[name]["Image"]) and one["newer_image"] == "no", f"{one}")
        details = call(stage, "container_info", container=f"{project.engine}:{name}")
        networks = (theirs[name]["NetworkSettings"].get("Networks") or {}).values()
        addresses = sorted(network["IPAddress"] for network in networks if network["IPAddress"])
        expect(sorted(details["addresses"]) == addresses, f"{details['addresses']}, not {addresses}")
    return f"version {stage.box.run('docker-compose', 'version', '--short')}"


def stack_changes(stage, project):
    ids = {service: one["Id"] for service, one in project.containers(stage).items()}
    expect_outcomes(call(stage, "stack_stop", grace_s=5, **project.stack), "stopped")
    expect(project.running(stage) == [], project.compose(stage, "ps"))
    expect_outcomes(call(stage, "stack_start", **project.stack), "started")
    expect(project.running(stage) == SERVICES, project.compose(stage, "ps"))
    before = project.states(stage, "StartedAt")
    expect_outcomes(call(stage, "stack_restart", grace_s=5, **project.stack), "restarted")
    after = project.states(stage, "StartedAt")
    expect(all(after[service] > before[service] for service in SERVICES), f"{after}, not after {before}")
    # Compose finds its own containers as it left them: nothing is made again.
    said = project.compose(stage, "up", "--detach")
    # The words of version 1, and of version 2.
    expect(said.count("is up-to-date") + said.count("Running") == 3, said)
    expect({service: one["Id"] for service, one in project.containers(stage).items()} == ids, "other containers")
    return ", ".join(said.split("\n"))


def compose_changes(stage, project):
    project.compose(stage, "stop", "--timeout", "2", "web")
    info = call(stage, "stack_info", **project.stack)
    states = {one["service"]: one["state"] for one in info["containers"]}
    expect(states == {"web": "stopped", "app": "running", "db": "running"}, f"{states}")
    project.compose(stage, "up", "--detach", "--scale", "app=2")
    info = call(stage, "stack_info", **project.stack)
    expect([one["service"] for one in info["containers"]].count("app") == 2, f"{info}")
    project.compose(stage, "down", "--volumes", "--timeout", "2")
    said = stage.client.call("stack_info", **project.stack)
    expect(said["isError"] and "there is no stack" in text_of(said), text_of(said))
    left = lambda: [name for name in stage.client.read("/public/packageData") if project.name in name]
    wait("the state has lost it", lambda: not left())


def add(words, function, project):
    check(f"{project.engine}: {words}")(lambda stage: function(stage, project))


for one in PROJECTS:
    add("a project of docker-compose is a stack with its services, images and addresses", project_is_a_stack, one)
    add("stack_stop, stack_start and stack_restart leave the project as docker-compose would", stack_changes, one)
    add("what docker-compose does to a project is seen at once, and a removed one is unknown", compose_changes, one)
