//! Docker inside a container of LXC: what it has is listed, read, changed and entered, and commands in it end with their
//! calls.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::engine_confinement::confine;
use crate::engine_kill::{end_all_kinds, processes, serves};
use crate::support::client::Client;
use crate::support::command::tell_by;
use crate::support::engines::{Engine, EngineKind, OUTER, with_mark};
use crate::support::helper::{Helper, LONG_MS, container, powerful_container};
use crate::support::kill_case::CallsEnd;
use crate::support::machine::{IN_TIME, call_cgroups, marker, wait_until};
use crate::support::server::{Server, server};

fn shared() -> Option<Engine> {
    Engine::shared(EngineKind::DockerInLxc)
}

fn list(helper: &Helper) -> Vec<String> {
    let listed = helper.run(&json!({ "do": "container_list" })).stdout();
    listed.lines().map(str::to_owned).collect()
}

fn info(helper: &Helper, name: &str) -> String {
    let asked = json!({ "do": "container_info", "container": name });
    helper.run(&asked).stdout()
}

fn act(helper: &Helper, name: &str, action: &Value) {
    let asked = json!({ "do": "container_deed", "container": name, "deed": action });
    let ending = helper.run(&asked).ending;
    assert_eq!(ending, json!({ "exited": { "code": 0 } }), "{action}");
}

#[test]
fn containers_of_docker_inside_lxc_are_listed_and_read_by_the_kernels_word() {
    let Some(engine) = shared() else { return };
    let helper = engine.helper();
    let alpha = engine.reference("alpha");
    let listed = list(&helper);
    assert!(listed.contains(&alpha), "{listed:?}");
    assert!(listed.contains(&OUTER.to_owned()), "{listed:?}");
    let said = info(&helper, &alpha);
    assert!(said.contains("State: RUNNING"), "{said}");
    let pid = said
        .lines()
        .find_map(|line| line.strip_prefix("PID: "))
        .unwrap();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let inner = engine.cli(&["inspect", "--format", "{{.State.Pid}}", "alpha"]);
    assert!(
        status.contains(&format!("NSpid:\t{pid}\t{inner}\t1\n")),
        "{inner}: {status}"
    );
    serves(&helper, &alpha);
    let printed = helper.run(&container(&alpha, "hostname; cat /proc/1/cmdline"));
    let id = engine.cli(&["inspect", "--format", "{{.Id}}", "alpha"]);
    assert!(
        printed.stdout().starts_with(&id[..12]),
        "{}",
        printed.stdout()
    );
    wait_until("its cgroups are gone", IN_TIME, || {
        call_cgroups(helper.pid()).is_empty()
    });
}

#[test]
fn a_container_inside_lxc_is_paused_stopped_and_started() {
    let Some(engine) = shared() else { return };
    let own = engine.run(&[]);
    let (helper, name) = (engine.helper(), own.reference());
    act(&helper, &name, &json!({ "what": "freeze" }));
    assert!(info(&helper, &name).contains("State: FROZEN"));
    let refused = helper.run(&container(&name, "true")).ending;
    assert!(refused.to_string().contains("paused"), "{refused}");
    act(&helper, &name, &json!({ "what": "unfreeze" }));
    serves(&helper, &name);
    let stop = json!({ "do": "container_stop", "container": name, "grace_s": 5 });
    assert_eq!(helper.run(&stop).ending, json!({ "exited": { "code": 0 } }));
    assert_eq!(own.inspect(".State.Status"), "exited");
    let refused = helper.run(&container(&name, "true")).ending;
    assert!(refused.to_string().contains("is stopped"), "{refused}");
    let start = json!({ "do": "container_start", "container": name });
    assert_eq!(
        helper.run(&start).ending,
        json!({ "exited": { "code": 0 } })
    );
    serves(&helper, &name);
}

#[test]
fn a_log_and_files_inside_are_read() {
    let Some(engine) = shared() else { return };
    let own = engine.run(&[]);
    let (helper, name) = (engine.helper(), own.reference());
    let line = format!("said {}", marker());
    serves(&helper, &name);
    let printing = format!("echo '{line}' >/proc/1/fd/1");
    helper.run(&container(&name, &printing));
    let asked = json!({
        "do": "container_deed", "container": name, "deed": { "what": "printed", "lines": 10 },
    });
    wait_until("the log has the line", IN_TIME, || {
        helper.run(&asked).stdout().contains(&line)
    });
    let read = json!({ "what": "read_file", "path": "/etc/passwd", "offset": 0, "bytes": 4096 });
    let asked = json!({ "do": "container_deed", "container": name, "deed": read });
    assert!(helper.run(&asked).stdout().contains("app:x:1000"));
}

macro_rules! matrix {
    ($($(#[$attribute:meta])* $test:ident: $end:ident;)*) => {$(
        #[test]
        $(#[$attribute])*
        fn $test() {
            end_all_kinds(EngineKind::DockerInLxc, "runc", CallsEnd::$end);
        }
    )*};
}

matrix! {
    #[ignore = "long: 8 kinds of processes, one end of 4"]
    in_docker_inside_lxc_a_timeout_leaves_nothing: Timeout;
    #[ignore = "long: 8 kinds of processes, one end of 4"]
    in_docker_inside_lxc_a_closed_connection_leaves_nothing: ConnectionClosed;
    #[ignore = "long: 8 kinds of processes, one end of 4"]
    in_docker_inside_lxc_sigterm_of_the_helper_leaves_nothing: HelperSigterm;
    in_docker_inside_lxc_sigkill_of_the_helper_leaves_nothing: HelperSigkill;
}

#[test]
fn a_command_inside_lxc_is_confined_as_by_docker_there() {
    let Some(engine) = shared() else { return };
    for options in [
        &[][..],
        &["--cap-drop=ALL"],
        &["--user=1000", "--security-opt=no-new-privileges"],
    ] {
        confine(&engine, options);
    }
}

#[test]
fn a_call_ends_though_its_container_of_lxc_is_stopped() {
    let Some(engine) = Engine::own(EngineKind::DockerInLxc, "") else {
        return;
    };
    let (helper, mark) = (engine.helper(), marker());
    let call = processes(&engine.reference("alpha"), &["bg", "setsid", "hold"], &mark);
    let call = helper.ask(&call, LONG_MS);
    wait_until("all run", IN_TIME, || with_mark(&mark).len() == 3);
    let stop = json!({ "do": "container_stop", "container": OUTER, "grace_s": 0 });
    assert_eq!(helper.run(&stop).ending, json!({ "exited": { "code": 0 } }));
    call.finish();
    assert_eq!(with_mark(&mark), Vec::<i32>::new());
    wait_until("Docker's containers have gone with it", IN_TIME, || {
        !list(&helper).contains(&engine.reference("alpha"))
    });
    let refused = helper.run(&container(&engine.reference("alpha"), "true"));
    assert!(
        refused.ending.to_string().contains("is stopped"),
        "{}",
        refused.ending
    );
}

#[test]
fn root_of_the_container_of_lxc_needs_access_to_it() {
    let Some(engine) = shared() else { return };
    let root = engine.run(&["--pid=host"]);
    let (helper, name) = (engine.helper(), root.reference());
    let said = info(&helper, &name);
    assert!(said.contains("lxc_rights"), "{said}");
    assert!(!said.contains("host_rights"), "{said}");
    let refused = helper.run(&container(&name, "true")).ending.to_string();
    assert!(
        refused.contains("rights of root in the LXC container 'media'"),
        "{refused}"
    );
    let ran = helper.run(&powerful_container(&name, "true")).ending;
    assert_eq!(ran, json!({ "exited": { "code": 0 } }));
}

/// Adds an agent of a space; returns its client, which the server knows.
fn agent_of_space(server: &Server, space: &str) -> Client {
    let options = ["agent", "add", space, "--space", space, "--policy", "admin"];
    let options = [&options[..], &["--mode", "persist=allow"]].concat();
    let said = tell_by(&server.settings_file(), &options);
    let client = server.client().with_token(said["token"].as_str().unwrap());
    wait_until("the server knows the agent", IN_TIME, || {
        client.call("container_list", json!({})).send().status == 200
    });
    client
}

/// Returns the references of the containers that a client sees.
fn names(client: &Client) -> Vec<String> {
    let listed = client.call("container_list", json!({})).send().data();
    let listed = listed["containers"].as_array().unwrap().iter();
    let names = listed.map(|one| one["name"].as_str().unwrap().to_owned());
    names.collect()
}

#[test]
fn an_agent_sees_what_is_inside_lxc_by_its_own_name_or_by_that_of_the_container_around_it() {
    let Some(engine) = shared() else { return };
    let root = engine.run(&["--pid=host"]);
    let (alpha, root) = (engine.reference("alpha"), root.reference());
    let path = engine.lxcpath();
    let settings = "[spaces.inner]\ncontainers = [\"docker:*@media\"]\n\
                    [spaces.outer]\ncontainers = [\"media\"]\n\
                    [spaces.other]\ncontainers = [\"alpha\", \"docker:*\", \"rogue\"]\n";
    let bounds = "runtimes = [\"lxc\", \"docker-in-lxc\"]\n";
    let settings = format!("{settings}[lxc]\nlxcpath = \"{}\"\n", path.display());
    let server = server().policy("admin").settings(&settings).bounds(bounds);
    let server = server.lxcpath(&path).run_inside(&engine).start();
    let run = |name: &str| json!({ "container": name, "command": "true" });
    let client = |space| agent_of_space(&server, space);
    let (inner, outer, other) = (client("inner"), client("outer"), client("other"));
    wait_until("the state has the containers", IN_TIME, || {
        let place = json!({ "pointer": format!("/public/packageData/{root}/engine/lxc_rights") });
        outer.call("state_get", place).send().result()["isError"] != true
    });
    let seen = names(&inner);
    assert!(
        seen.contains(&alpha) && !seen.contains(&OUTER.to_owned()),
        "{seen:?}"
    );
    let seen = names(&outer);
    assert!(
        seen.contains(&alpha) && seen.contains(&OUTER.to_owned()),
        "{seen:?}"
    );
    assert!(!names(&other).iter().any(|name| name.contains('@')));
    let parent = outer
        .call("container_info", json!({ "container": alpha }))
        .send()
        .data();
    assert_eq!(
        (&parent["parent"], &parent["runtime"]),
        (&json!("media"), &json!("docker"))
    );
    for agent in [&inner, &outer] {
        let ran = agent.call("container_shell", run(&alpha)).send().data();
        assert_eq!(ran["exit_code"], 0);
    }
    // Root of the container of LXC, for an agent that may access what is in it, and not itself.
    let refused = inner.call("container_shell", run(&root)).send().body;
    assert!(!refused.contains("exit_code"), "{refused}");
    let ran = outer.call("container_shell", run(&root)).send().data();
    assert_eq!(ran["exit_code"], 0);
    // What is hidden is answered as what is missing, and nothing shows whether its place exists.
    let answer = |name: &str| {
        let asked = json!({ "container": name });
        let said = other.call("container_info", asked).send().body;
        said.replace(name, "NAME")
    };
    let missing = answer("docker:none@media");
    assert_eq!(answer(&alpha), missing);
    assert_eq!(answer("docker:alpha@nowhere"), missing);
}

#[test]
fn a_subcontainer_of_startos_is_the_container_of_docker_inside() {
    let Some(engine) = shared() else { return };
    let path = engine.lxcpath();
    let settings = format!("[lxc]\nlxcpath = \"{}\"\n", path.display());
    let bounds = "runtimes = [\"lxc\", \"docker-in-lxc\"]\n";
    let server = server().policy("admin").settings(&settings).bounds(bounds);
    let server = server.lxcpath(&path).run_inside(&engine).start();
    let client = server.client();
    let shell = |subcontainer: &str| {
        // The program is in the image of the containers inside.
        let line = "test -x /bin/processes && echo inside || echo outside";
        let arguments = json!({ "id": OUTER, "subcontainer": subcontainer, "command": line });
        client.call("package.shell", arguments).send()
    };
    let seen = engine.reference("beta");
    wait_until("the state has the containers", IN_TIME, || {
        names(&client).contains(&seen)
    });
    // Until the server has looked into the container, the call is refused.
    wait_until("it is found by part of its name", IN_TIME, || {
        let answer = shell("bet").result();
        answer["structuredContent"]["stdout"] == "inside\n"
    });
    assert_eq!(shell("").data()["stdout"], "outside\n");
    let refused = shell("a").failure();
    assert!(
        refused.contains("these are inside: alpha, beta"),
        "{refused}"
    );
    // Nothing is inside the container inside.
    let line = "touch /tmp/beside";
    let deeper = json!({ "id": seen, "subcontainer": "alpha", "command": line });
    let refused = client.call("package.shell", deeper).send().failure();
    assert!(refused.contains("has no containers inside"), "{refused}");
}

#[test]
fn a_change_inside_lxc_is_told_by_the_events_of_docker_there() {
    let Some(engine) = shared() else { return };
    let own = engine.run(&[]);
    let helper = engine.helper();
    let mut events = helper.ask(&json!({ "do": "container_events" }), LONG_MS);
    let line = format!("'{}' changed definition\n", own.reference());
    let is_told = AtomicBool::new(false);
    thread::scope(|scope| {
        // The helper looks for daemons first, so the first changes may be before its watch.
        scope.spawn(|| {
            wait_until("the change is told", IN_TIME, || {
                own.act("pause");
                own.act("unpause");
                is_told.load(Ordering::Relaxed)
            });
        });
        let mut said = String::new();
        while !said.contains(&line) {
            match events.output_or_end() {
                Ok(bytes) => said += &String::from_utf8_lossy(&bytes),
                // LXC's monitor is shared: it ends with the helper of another test that has started it. The front asks
                // again too.
                Err(ending) => {
                    assert!(ending.contains("LXC's monitor exited"), "{ending}");
                    events = helper.ask(&json!({ "do": "container_events" }), LONG_MS);
                }
            }
        }
        is_told.store(true, Ordering::Relaxed);
    });
    events.cancel();
}
