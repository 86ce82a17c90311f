//! Jobs of clients: started, watched, read and ended, across a restart of the server, each by its own agent.

use std::fs;
use std::path::Path;
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::support::agents::admit;
use crate::support::client::Client;
use crate::support::command::tell_by;
use crate::support::container::Containers;
use crate::support::helper::Helper;
use crate::support::machine::{IN_TIME, install_program, marked, marker, sleeping, wait_until};
use crate::support::request::Request;
use crate::support::server::{Directory, Server, server};

/// A helper that runs independently, and the directory of its front's state.
pub struct Home {
    directory: Directory,
    helper: Helper,
}

impl Home {
    pub fn new(lxcpath: &Path) -> Self {
        let directory = Directory::new();
        let jobs = directory.join("helper");
        let helper = Helper::start_as(lxcpath, |command| {
            command.arg("--state-dir").arg(&jobs);
        });
        Self { directory, helper }
    }

    /// Starts a front over that helper, with the state of the previous one.
    pub fn front(&self, more: &str) -> Server {
        let settings = format!(
            "[helper]\nsocket = \"{}\"\n{more}",
            self.helper.socket().display()
        );
        let builder = server()
            .policy("admin")
            .directory(&self.directory.join("state"));
        builder.settings(&settings).start()
    }
}

/// Adds another agent to that server.
pub fn visitor(server: &Server, name: &str, options: &[&str]) -> Client {
    let fixed = ["--policy", "admin", "--mode", "execute=allow"];
    admit(server, name, &[&fixed, options].concat())
}

pub fn call(client: &Client, tool: &str, arguments: Value) -> Value {
    client.call(tool, arguments).send().data()
}

/// Starts a job; returns its id.
fn begin(client: &Client, arguments: Value) -> String {
    let begun = call(client, "job_start", arguments);
    begun["job"].as_str().unwrap().to_owned()
}

/// Waits until the job has ended, and returns it.
fn ended(client: &Client, job: &str) -> Value {
    loop {
        let standing = call(client, "job_wait", json!({ "job": job }));
        if standing["state"] != "running" {
            return standing;
        }
    }
}

fn stubborn(marker: &str) -> String {
    format!(
        "echo up; (setsid sh -c 'setsid sleep {marker} & sleep {marker}' &) ; exec sleep {marker}"
    )
}

#[test]
fn a_job_outlives_the_server_however_it_ends() {
    let home = Home::new(Path::new("/nonexistent"));
    for signal in [Signal::SIGKILL, Signal::SIGTERM] {
        let gate = home.directory.join(signal.as_str());
        let mut first = home.front("");
        let line = format!(
            "echo one; while [ ! -e {} ]; do sleep 0.02; done; echo two",
            gate.display()
        );
        let job = begin(
            &first.client(),
            json!({ "command": line, "timeout_s": 7200 }),
        );
        let output = json!({ "job": job, "offset": 0 });
        let look = first.client().call("job_output", output.clone());
        wait_until("it prints", IN_TIME, || {
            look.send().data()["output"] == "one\n"
        });
        first.signal(signal);
        first.ended();

        let next = home.front("");
        let client = next.client();
        let standing = call(&client, "job_get", json!({ "job": job }));
        assert_eq!(standing["state"], "running", "{standing}");
        fs::write(&gate, "").unwrap();
        let standing = ended(&client, &job);
        assert_eq!(
            (&standing["state"], &standing["exit_code"]),
            (&json!("done"), &json!(0))
        );
        let read = call(&client, "job_output", output);
        assert_eq!(
            (
                &read["output"],
                &read["next_offset"],
                &read["ended"],
                &read["truncated"]
            ),
            (&json!("one\ntwo\n"), &json!(8), &json!(true), &json!(false))
        );
        let jobs = call(&client, "job_list", json!({}));
        assert_eq!(jobs["jobs"][0]["job"], json!(job), "the newest first");
    }
}

#[test]
fn cancelling_a_job_kills_its_whole_tree() {
    let Some(mut own) = Containers::new() else {
        return;
    };
    own.make("wren");
    own.tool("lxc-start", "wren", &["-d"]);
    own.until_ready("wren");
    let home = Home::new(own.lxcpath());
    let front = home.front("");
    let client = front.client();
    for arguments in [json!({}), json!({ "container": "wren" })] {
        let mark = marker();
        let mut arguments = arguments;
        arguments["command"] = json!(stubborn(&mark));
        let job = begin(&client, arguments);
        wait_until("all run", IN_TIME, || sleeping(&mark).len() >= 3);
        let killed = call(&client, "job_cancel", json!({ "job": job }));
        assert_eq!(
            (&killed["state"], &killed["killed_because"]),
            (&json!("killed"), &json!("cancelled"))
        );
        assert!(marked(&mark).is_empty());
    }
    assert_eq!(own.state("wren"), "RUNNING");
}

#[test]
fn agents_see_their_own_jobs_and_no_others_and_those_of_their_space() {
    let Some(mut own) = Containers::new() else {
        return;
    };
    for name in ["wren", "lark"] {
        own.make(name);
        own.tool("lxc-start", name, &["-d"]);
        own.until_ready(name);
    }
    let home = Home::new(own.lxcpath());
    let front = home
        .front("[spaces.nest]\ncontainers = [\"wren\"]\n[spaces.wood]\ncontainers = [\"lark\"]\n");
    let (ada, bert) = (
        front.client(),
        visitor(&front, "bert", &["--space", "nest"]),
    );
    let job = begin(
        &ada,
        json!({ "command": "echo of ada; exec sleep 100", "container": "wren" }),
    );
    let hers = call(&bert, "job_list", json!({}));
    assert_eq!(hers, json!({ "jobs": [] }));
    let never = "job_0123456789abcdef0123456789abcdef";
    for tool in ["job_get", "job_wait", "job_output", "job_cancel"] {
        let words = |id: &str| {
            let answer = bert.call(tool, json!({ "job": id })).send().result();
            assert_eq!(answer["isError"], true, "{tool}");
            answer["content"][0]["text"].to_string().replace(id, "ID")
        };
        assert_eq!(words(&job), words(never), "{tool}");
    }
    assert_eq!(
        call(&ada, "job_get", json!({ "job": job }))["state"],
        "running"
    );

    // Outside its space an agent starts no job, and existing containers look like missing ones.
    let refused = |container: &str| {
        let call = bert.call(
            "job_start",
            json!({ "command": "true", "container": container }),
        );
        let text = call.send().result()["content"][0]["text"].clone();
        text.as_str().unwrap().replace(container, "NAME")
    };
    assert_eq!(refused("lark"), refused("none"));
    let on_host = bert.call("job_start", json!({ "command": "true" })).send();
    assert_eq!(on_host.result()["isError"], true);
    let within = begin(
        &bert,
        json!({ "command": "echo of bert", "container": "wren" }),
    );
    assert_eq!(ended(&bert, &within)["state"], "done");

    // In another space, the agent no longer sees its earlier jobs.
    let edit = ["agent", "edit", "bert", "--space", "wood"];
    tell_by(&front.settings_file(), &edit);
    let look = bert.call("job_get", json!({ "job": within }));
    wait_until("it is in the wood", IN_TIME, || {
        look.send().result()["isError"] == true
    });
    call(&ada, "job_cancel", json!({ "job": job }));
}

#[test]
fn output_is_read_on_from_where_the_last_piece_ended() {
    let home = Home::new(Path::new("/nonexistent"));
    let front = home.front("");
    let client = front.client();
    let lines = 40_000;
    let job = begin(
        &client,
        json!({ "command": format!("seq -f 'ä%07.0f' 1 {lines}") }),
    );
    let standing = ended(&client, &job);
    let all = lines * 10;
    assert_eq!(standing["output_bytes"], all);
    let (mut at, mut text) = (0, String::new());
    while at < all {
        let arguments = json!({ "job": job, "offset": at, "limit_bytes": 8_000 });
        let piece = call(&client, "job_output", arguments);
        assert_eq!(piece["offset"], at);
        text += piece["output"].as_str().unwrap();
        at = piece["next_offset"].as_u64().unwrap();
        assert_eq!(piece["truncated"], at < all);
    }
    let expected = (1..=lines).fold(String::new(), |text, n| text + &format!("ä{n:07}\n"));
    assert!(
        text == expected,
        "{} bytes of {}",
        text.len(),
        expected.len()
    );
    // The default is the end of the output, with terminal control characters made harmless.
    let last = call(
        &client,
        "job_output",
        json!({ "job": job, "limit_bytes": 10 }),
    );
    assert_eq!(last["output"], "ä0040000\n");
    let shout = begin(&client, json!({ "command": "printf '\\033[2Jx'" }));
    ended(&client, &shout);
    let said = client
        .call("job_output", json!({ "job": shout }))
        .send()
        .result();
    let text = said["content"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("^[[2Jx") && !text.contains('\u{1b}'),
        "{text}"
    );
}

#[test]
fn what_a_job_is_told_and_what_becomes_of_it() {
    let home = Home::new(Path::new("/nonexistent"));
    let front = home.front("");
    let client = front.client();
    let env = json!({ "command": "echo $A; pwd; exit 5", "env": { "A": "b" }, "cwd": "/usr" });
    let failed = ended(&client, &begin(&client, env));
    assert_eq!(
        (&failed["state"], &failed["exit_code"]),
        (&json!("failed"), &json!(5))
    );
    assert_eq!(failed["command"], "echo $A; pwd; exit 5");
    let job = failed["job"].as_str().unwrap();
    assert_eq!(
        call(&client, "job_output", json!({ "job": job }))["output"],
        "b\n/usr\n"
    );
    let argv = begin(&client, json!({ "argv": ["sleep", "100"], "timeout_s": 1 }));
    assert_eq!(ended(&client, &argv)["killed_because"], "timeout");
    let wrong = begin(&client, json!({ "argv": ["no-such-program"] }));
    let wrong = ended(&client, &wrong);
    assert!(
        wrong["error"].as_str().unwrap().contains("was not found"),
        "{wrong}"
    );
    let secret = begin(
        &client,
        json!({ "command": "true password=hunter2hunter2" }),
    );
    let secret = ended(&client, &secret);
    assert!(!secret.to_string().contains("hunter2"), "{secret}");
}

/// Returns a container that ignores the signal to stop, so that stopping it takes the whole grace period.
pub fn deaf() -> Option<Containers> {
    let mut own = Containers::new()?;
    let root = own.make("wren");
    let init = "#!/bin/sh\ntrap '' PWR TERM INT\n: > /tmp/ready\nwhile :; do sleep 1; done\n";
    fs::write(root.join("etc/deaf"), init).unwrap();
    install_program(&root.join("etc/deaf"), &root.join("init"));
    own.tool("lxc-start", "wren", &["-d"]);
    own.until_ready("wren");
    Some(own)
}

/// Returns the call that stops it, with the longest grace period.
pub fn stop(client: &Client) -> Request {
    client.call(
        "container_stop",
        json!({ "container": "wren", "grace_s": 40 }),
    )
}

/// Holds up the program that stops it, which would kill the container after the grace period.
pub fn hold_up(own: &Containers) {
    let path = own.lxcpath().to_str().unwrap();
    wait_until("it is being stopped", IN_TIME, || {
        let pids = marked(path).into_iter().filter(|pid| {
            fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "lxc-stop\n")
        });
        let held = pids.map(|pid| kill(Pid::from_raw(pid), Signal::SIGSTOP));
        held.flatten().count() > 0
    });
}

pub const MAY_STOP: [&str; 2] = ["--mode", "disrupt=allow"];

#[test]
fn a_long_call_is_answered_with_a_job_that_outlives_the_server() {
    let Some(own) = deaf() else { return };
    let home = Home::new(own.lxcpath());
    let mut first = home.front("[tasks]\nafter = \"0s\"\n");
    let client = visitor(&first, "bert", &MAY_STOP);
    let begun = stop(&client).send();
    let words = begun.result()["content"][0]["text"].to_string();
    let begun = begun.data();
    assert_eq!(begun["state"], "running", "{begun}");
    hold_up(&own);
    let job = begun["job"].as_str().unwrap();
    assert!(words.contains("job_wait") && words.contains(job), "{words}");
    first.signal(Signal::SIGKILL);
    first.ended();

    let next = home.front("");
    let client = next.client().with_token(&client.token);
    let standing = call(&client, "job_get", json!({ "job": job }));
    assert_eq!(
        (
            &standing["state"],
            &standing["tool"],
            &standing["container"]
        ),
        (&json!("running"), &json!("container_stop"), &json!("wren"))
    );
    let killed = call(&client, "job_cancel", json!({ "job": job }));
    assert_eq!(killed["killed_because"], "cancelled");
    assert_eq!(own.state("wren"), "RUNNING", "nobody asks it any more");
    wait_until("its end is in the audit", IN_TIME, || {
        let args = ["audit", "list", "--tool", "job_end", "--json"];
        let mut audit = Command::new(env!("CARGO_BIN_EXE_gatewren"));
        audit.args(args).arg("--config").arg(next.settings_file());
        let said = String::from_utf8(audit.output().unwrap().stdout).unwrap();
        said.contains(job) && said.contains("\"killed\"") && said.contains("cancelled")
    });
}

#[test]
fn a_stop_of_the_server_answers_who_waits_with_the_job() {
    let Some(own) = deaf() else { return };
    let home = Home::new(own.lxcpath());
    let mut first = home.front("");
    let client = visitor(&first, "bert", &MAY_STOP);
    let waiting = client.clone();
    let answer = std::thread::spawn(move || stop(&waiting).send().data());
    wait_until("it is a job", IN_TIME, || {
        call(&client, "job_list", json!({}))["jobs"][0]["tool"] == "container_stop"
    });
    hold_up(&own);
    first.signal(Signal::SIGTERM);
    let begun = answer.join().unwrap();
    assert_eq!(begun["state"], "running", "{begun}");
    assert!(first.ended().success());
    let next = home.front("");
    let client = next.client().with_token(&client.token);
    let killed = call(&client, "job_cancel", json!({ "job": begun["job"] }));
    assert_eq!(killed["killed_because"], "cancelled");
}

#[test]
fn what_ends_in_time_is_answered_as_ever_and_leaves_no_job() {
    let Some(mut own) = Containers::new() else {
        return;
    };
    own.make("wren");
    own.tool("lxc-start", "wren", &["-d"]);
    own.until_ready("wren");
    let home = Home::new(own.lxcpath());
    let front = home.front("[tasks]\nafter = \"5m\"\n");
    let client = visitor(&front, "bert", &MAY_STOP);
    let stopped = call(
        &client,
        "container_stop",
        json!({ "container": "wren", "grace_s": 0 }),
    );
    assert_eq!(stopped["state"], "stopped", "{stopped}");
    assert_eq!(call(&client, "job_list", json!({})), json!({ "jobs": [] }));
}
