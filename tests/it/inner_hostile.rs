//! A container of LXC whose root pretends to have a Docker: nothing that it says is believed, and it harms nothing else.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::engines::{Engine, EngineKind, ROGUE};
use crate::support::helper::{Helper, container};
use crate::support::machine::{IN_TIME, marker, wait_until};

/// Answers requests of Docker's API on the socket of its first argument by the Python dictionary of its second one: path
/// without the version to body, to a number of bytes, or to None for no answer. Ends with its standard input: a process
/// that lxc-attach started outlives it.
const FAKE: &str = r"
import ast, os, re, socket, sys, threading
path, answers = sys.argv[1], ast.literal_eval(sys.argv[2])
if os.path.lexists(path): os.unlink(path)
listener = socket.socket(socket.AF_UNIX); listener.bind(path); listener.listen(64)
def serve(one):
    head = b''
    while b'\r\n\r\n' not in head:
        part = one.recv(4096)
        if not part: return
        head += part
    asked = re.sub(r'^/v[0-9.]+', '', head.split()[1].decode())
    start = b'HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nContent-Type: application/json\r\n'
    if asked == '/_ping': one.sendall(start + b'Content-Length: 2\r\n\r\nOK'); return
    body = answers.get(asked, '{}')
    if body is None: threading.Event().wait(); return
    if isinstance(body, int):
        one.sendall(start + b'Content-Length: %d\r\n\r\n[' % body)
        try:
            while True: one.sendall(b' ' * 65536)
        except OSError: return
    body = body.encode(); one.sendall(start + b'Content-Length: %d\r\n\r\n' % len(body) + body)
def end(): sys.stdin.read(); os._exit(0)
threading.Thread(target=end, daemon=True).start()
while True:
    one, _ = listener.accept()
    def run(one=one):
        with one: serve(one)
    threading.Thread(target=run, daemon=True).start()
";

/// The list of the fake's containers, and one of them.
const LIST: &str = "/containers/json?all=1";
const ONE: &str = "/containers/web/json";
const NAME: &str = "docker:web@rogue";

/// A fake that runs in the container `rogue` of LXC; it ends when it is dropped.
struct Fake(Child);

impl Fake {
    /// Starts it and waits until it listens.
    fn start(engine: &Engine, answers: &Value) -> Self {
        let answers = answers.to_string().replace("null", "None");
        let child = attach(engine)
            .args(["/usr/bin/python3", "-c", FAKE, "/run/docker.sock", &answers])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let fake = Self(child);
        wait_until("the fake listens", IN_TIME, || {
            let probe =
                "import socket,sys; socket.socket(socket.AF_UNIX).connect('/run/docker.sock')";
            let mut probing = attach(engine);
            let probing = probing.args(["/usr/bin/python3", "-c", probe]);
            probing.stderr(Stdio::null()).status().unwrap().success()
        });
        fake
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Begins a command that runs in `rogue`.
fn attach(engine: &Engine) -> Command {
    let words = engine.inside();
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).args(["lxc-attach", "-P"]);
    command
        .arg(engine.lxcpath())
        .args(["-n", ROGUE, "--clear-env", "--"]);
    command
}

fn run_in_rogue(engine: &Engine, line: &str) -> String {
    let output = attach(engine)
        .args(["/bin/sh", "-c", line])
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Returns the first process of `rogue` on the host.
fn first_process(engine: &Engine) -> String {
    let path = engine.lxcpath();
    engine
        .run_inside(&format!("lxc-info -P '{}' -n {ROGUE} -pH", path.display()))
        .trim()
        .to_owned()
}

fn list(helper: &Helper) -> String {
    helper.run(&json!({ "do": "container_list" })).stdout()
}

fn id() -> String {
    "ab".repeat(32)
}

/// A container that runs, with this first process.
fn running(pid: &str) -> String {
    json!({
        "Id": id(), "Name": "/web", "State": { "Status": "running", "Running": true, "Pid": pid.parse::<i64>().unwrap() },
    })
    .to_string()
}

fn listed() -> String {
    json!([{ "Id": id(), "Names": ["/web"] }]).to_string()
}

#[test]
fn a_hostile_docker_inside_lxc_harms_nothing_else() {
    let Some(engine) = Engine::shared(EngineKind::DockerInLxc) else {
        return;
    };
    lists_that_are_wrong_are_reported_and_others_are_listed(&engine);
    the_process_that_it_names_is_not_believed(&engine);
    a_cgroup_that_it_made_lets_no_command_in(&engine);
    no_socket_outside_the_container_is_asked(&engine);
}

fn lists_that_are_wrong_are_reported_and_others_are_listed(engine: &Engine) {
    let many: Vec<Value> = (0..300)
        .map(|number| json!({ "Id": format!("{number:064x}"), "Names": [format!("/c{number}")] }))
        .collect();
    for (answer, why) in [
        (
            json!([{ "Id": "../../../etc", "Names": ["/web"] }])
                .to_string()
                .into(),
            "64 hexadecimal digits",
        ),
        (json!(100_000_000), "more than 2097152 bytes"),
        (Value::Null, "did not answer within 3 s"),
        (json!("{}"), "not the JSON"),
        (json!(many).to_string().into(), "at most 256"),
    ] {
        let _fake = Fake::start(engine, &json!({ LIST: answer }));
        let helper = engine.helper();
        let begun = Instant::now();
        let said = list(&helper);
        assert!(begun.elapsed() < Duration::from_secs(6), "{why}");
        let line = said
            .lines()
            .find(|line| line.starts_with("!docker-in-lxc@rogue "));
        assert!(line.is_some_and(|line| line.contains(why)), "{why}: {said}");
        assert!(said.contains("docker:alpha@media\n"), "{why}: {said}");
        // A daemon that was silent is not waited for again.
        if answer.is_null() {
            let begun = Instant::now();
            list(&helper);
            assert!(begun.elapsed() < Duration::from_secs(2));
        }
    }
}

fn the_process_that_it_names_is_not_believed(engine: &Engine) {
    let own = std::process::id().to_string();
    for pid in ["1", "2", &own, "99999999999", "-1"] {
        let _fake = Fake::start(engine, &json!({ LIST: listed(), ONE: running(pid) }));
        let helper = engine.helper();
        assert!(list(&helper).contains(NAME));
        let ending = helper.run(&container(NAME, "true")).ending.to_string();
        assert!(
            ending.contains("its first process was not found"),
            "{pid}: {ending}"
        );
        let read = json!({ "what": "read_file", "path": "/etc/passwd", "offset": 0, "bytes": 64 });
        let read = json!({ "do": "container_deed", "container": NAME, "deed": read });
        let read = helper.run(&read);
        assert!(read.stdout().is_empty(), "{pid}: {}", read.stdout());
    }
}

/// Root in a container of LXC makes a cgroup with the name, and puts a process into it.
fn a_cgroup_that_it_made_lets_no_command_in(engine: &Engine) {
    let group = format!("/sys/fs/cgroup/docker/{}", id());
    let made = format!("mkdir -p {group}; sleep 300 & echo $! >{group}/cgroup.procs; echo $!");
    let mut holding = attach(engine);
    let line = format!("{made}; wait");
    let mut holding = holding
        .args(["/bin/sh", "-c", &line])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pid = String::new();
    let mut byte = [0];
    let output = holding.stdout.as_mut().unwrap();
    while output.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
        pid.push(byte[0].into());
    }
    let fake = Fake::start(engine, &json!({ LIST: listed(), ONE: running(&pid) }));
    let helper = engine.helper();
    let ending = helper.run(&container(NAME, "true")).ending.to_string();
    assert!(ending.contains("cannot be entered"), "{ending}");
    // Its runc is the one of the container of LXC, and finds nothing to enter there.
    let state = format!("/run/docker/runtime-runc/moby/{}", id());
    let config =
        "printf '{\"process\":{\"user\":{\"uid\":0,\"gid\":0},\"args\":[\"x\"],\"cwd\":\"/\"}}'";
    run_in_rogue(
        engine,
        &format!(
            "mkdir -p {state} /bundle; printf '{{\"config\":{{\"labels\":[\"bundle=/bundle\"]}}}}' >{state}/state.json; \
         {config} >/bundle/config.json"
        ),
    );
    let helper = engine.helper();
    let ending = helper.run(&container(NAME, "true")).ending.to_string();
    assert!(ending.contains("could not be started"), "{ending}");
    drop(fake);
    run_in_rogue(
        engine,
        &format!("rm -rf /run/docker /bundle; kill {pid}; rmdir {group}"),
    );
    let _ = holding.wait();
    run_in_rogue(engine, &format!("rmdir {group} /sys/fs/cgroup/docker"));
}

/// Links out of the container, and a socket of a process outside.
fn no_socket_outside_the_container_is_asked(engine: &Engine) {
    let inside = PathBuf::from(format!("/proc/{}/root/run", first_process(engine)));
    let outside = std::env::temp_dir().join(format!("gatewren-it-{}.sock", marker()));
    let asked = UnixListener::bind(&outside).unwrap();
    asked.set_nonblocking(true).unwrap();
    let socket = inside.join("docker.sock");
    let _ = fs::remove_file(&socket);
    let helper = engine.helper();
    for target in [outside.as_path(), Path::new("/proc/1/root/run/docker.sock")] {
        symlink(target, &socket).unwrap();
        let said = list(&helper);
        assert!(!said.contains(NAME), "a link leads to no socket: {said}");
        let ending = helper.run(&container(NAME, "true")).ending.to_string();
        assert!(ending.contains("does not answer"), "{ending}");
        fs::remove_file(&socket).unwrap();
    }
    assert!(
        asked.accept().is_err(),
        "the socket outside was not connected to"
    );
    fs::remove_file(&outside).unwrap();
    // As where the owner has mounted the host's socket in the container.
    let listener = UnixListener::bind(&socket).unwrap();
    let said = list(&helper);
    let line = said
        .lines()
        .find(|line| line.starts_with("!docker-in-lxc@rogue "));
    assert!(
        line.is_some_and(|line| line.contains("not one of this container")),
        "{said}"
    );
    let (mut connection, _) = listener.accept().unwrap();
    connection.write_all(b"x").unwrap_or_default();
    let mut sent = Vec::new();
    connection.read_to_end(&mut sent).unwrap_or_default();
    assert_eq!(sent, b"", "nothing was sent to it");
    fs::remove_file(&socket).unwrap();
}
