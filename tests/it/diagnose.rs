//! Why a container is slow: one call names it, and the usage over time keeps to the caller's space.

use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use gatewren_base::sys::now_ms;
use gatewren_store::history::{
    SampledContainer, UsageHistory, UsageMetric, UsageSample, UsageTick,
};
use serde_json::{Value, json};

use crate::support::agents::admit;
use crate::support::answer::Answer;
use crate::support::client::Client;
use crate::support::container::Containers;
use crate::support::engines::{Engine, EngineKind};
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::server::{Server, server};

const NEAR: &str = "plover-near";
const FAR: &str = "plover-far0";

/// A busy loop in a container; it is killed with the test.
struct BusyLoop(Child);

impl BusyLoop {
    fn start(containers: &Containers, name: &str) -> Self {
        let mut attach = Command::new("lxc-attach");
        attach.arg("-P").arg(containers.lxcpath());
        attach.args(["-n", name, "--", "/bin/sh", "-c", "while :; do :; done"]);
        Self(attach.spawn().unwrap())
    }
}

impl Drop for BusyLoop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Limits a container of LXC to a fifth of a CPU.
fn limit_cpu(containers: &Containers, name: &str) {
    let file = containers.lxcpath().join(name).join("config");
    let line = if Path::new("/sys/fs/cgroup/cpu/cpu.cfs_quota_us").exists() {
        "lxc.cgroup.cpu.cfs_quota_us = 20000\n"
    } else {
        "lxc.cgroup2.cpu.max = 20000 100000\n"
    };
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text + line).unwrap();
}

fn with_lxcpath(containers: &Containers, more: &str) -> String {
    format!(
        "[lxc]\nlxcpath = \"{}\"\n{more}",
        containers.lxcpath().display()
    )
}

fn diagnose(client: &Client, container: &str) -> Answer {
    let arguments = json!({ "container": container });
    client.call("container_diagnose", arguments).send()
}

fn findings(answer: &Value) -> String {
    let found = answer["findings"].as_array().unwrap().iter();
    let found: Vec<&str> = found.map(|one| one.as_str().unwrap()).collect();
    found.join("\n")
}

fn seconds_now() -> u64 {
    now_ms() / 1000
}

/// Writes an hour of samples of these containers and the host, as the server does.
fn write_history(server: &Server, containers: &[&str]) {
    let history = UsageHistory::at(server.state_dir().join("usage.db"));
    let mut sample = UsageSample::default();
    sample.set(UsageMetric::CpuPercent, Some(20.0));
    sample.set(UsageMetric::CpuThrottledPercent, Some(43.0));
    let now_s = seconds_now();
    for minute in (1..=60).rev() {
        let at_s = now_s - minute * 60;
        let container = |name: &&str| SampledContainer {
            name: (*name).to_owned(),
            sample,
        };
        let tick = UsageTick {
            at_s: at_s - at_s % 60,
            host: Some(sample),
            containers: containers.iter().map(container).collect(),
        };
        history.add(&tick).unwrap();
    }
}

#[test]
fn an_operator_learns_in_one_call_that_the_cpu_limit_throttles_a_container() {
    let Some(mut containers) = Containers::new() else {
        return;
    };
    containers.make(NEAR);
    limit_cpu(&containers, NEAR);
    let server = server()
        .policy("operate")
        .settings(&with_lxcpath(&containers, ""))
        .start();
    let client = server.client();
    let list = client.modern("tools/list").send().result();
    let tools = list["tools"].as_array().unwrap();
    assert!(
        tools
            .iter()
            .any(|tool| tool["name"] == "container_diagnose")
    );

    let stopped = diagnose(&client, NEAR).data();
    assert_eq!(stopped["state"], "stopped");
    let words = findings(&stopped);
    assert!(words.contains("It is not running"), "{words}");

    containers.tool("lxc-start", NEAR, &["-d"]);
    containers.until_ready(NEAR);
    let _busy = BusyLoop::start(&containers, NEAR);
    write_history(&server, &[NEAR]);
    let mut found = Value::Null;
    // The samples alone have the finding written: the container has to have got time as well, and its loop to have run
    // while the processes were looked at.
    wait_until(
        "the container is throttled now, and its loop is seen",
        IN_TIME,
        || {
            found = diagnose(&client, NEAR).data();
            found["usage"]["cpu_throttled_percent"]["now"].as_f64() > Some(20.0)
                && found["processes"].to_string().contains("while")
        },
    );
    let words = findings(&found);
    println!("{found:#}");
    assert!(words.contains("its limit is 0.20 cores"), "{words}");
    assert!(
        words.contains("% of the last ") && words.contains(", 43 % of the last hour"),
        "{words}"
    );
    // Only the first look waits a second for a second reading.
    wait_until("a later look does not wait", IN_TIME, || {
        let begun = Instant::now();
        let later = diagnose(&client, NEAR).data();
        assert!(later["usage"]["cpu_percent"]["now"].as_f64() > Some(0.0));
        begun.elapsed() < Duration::from_secs(1)
    });
    assert!(found["samples"]["hour"].as_u64() >= Some(59));
    assert!(found["root_disk"]["total_bytes"].as_u64() > Some(0));
    assert!(found["host"]["usage"]["memory_bytes"]["now"].as_f64() > Some(0.0));
    assert!(serde_json::to_string_pretty(&found).unwrap().len() <= 8000);
}

#[test]
fn a_container_of_docker_is_measured_and_a_stopped_one_has_its_exit_code_and_last_words() {
    let Some(engine) = Engine::shared(EngineKind::Docker) else {
        return;
    };
    let engines = [engine];
    let server = server().policy("observe").engines(&engines).start();
    let client = server.client();
    let busy = engines[0].run_line("it-busy", "while :; do :; done");
    let mut found = Value::Null;
    wait_until("it is busy", IN_TIME, || {
        found = diagnose(&client, &busy.reference()).data();
        found["usage"]["cpu_percent"]["now"].as_f64() > Some(30.0)
    });
    assert!(
        found["not_read"].to_string().contains("no samples"),
        "{found:#}"
    );
    let ended = engines[0].run_line(
        "it-ended",
        "echo ready; echo 'cannot open the database'; exit 3",
    );
    wait_until("it has ended", IN_TIME, || {
        found = diagnose(&client, &ended.reference()).data();
        found["state"] == "stopped"
    });
    let words = findings(&found);
    assert!(
        words.contains("with exit code 3. Its restart policy is no."),
        "{words}"
    );
    assert_eq!(found["ended"]["exit_code"], 3);
    assert!(
        found["log"]["lines"]
            .to_string()
            .contains("cannot open the database")
    );
    assert_eq!(found["usage"], json!({}));
}

/// A server with a container of each space, and an agent that reaches one of them alone.
struct TwoSpaces {
    _containers: Containers,
    server: Server,
    admin: Client,
    near: Client,
}

impl TwoSpaces {
    fn new() -> Option<Self> {
        let mut containers = Containers::new()?;
        for name in [NEAR, FAR] {
            containers.make(name);
        }
        let spaces = "[spaces.pond]\ncontainers = [\"plover-near*\"]\n";
        let settings = with_lxcpath(&containers, spaces);
        let server = server().policy("admin").settings(&settings).start();
        let admin = server.client();
        let near = admit(&server, "kept", &["--policy", "observe", "--space", "pond"]);
        Some(Self {
            _containers: containers,
            server,
            admin,
            near,
        })
    }

    fn history(client: &Client, container: &str) -> Answer {
        let arguments = json!({
            "container": container, "since": "2h", "metrics": ["cpu_throttled_percent"], "limit": 120
        });
        client.call("container_history", arguments).send()
    }

    fn resource(client: &Client, container: &str) -> Answer {
        let uri = format!("gatewren:///history/containers/{container}");
        client.modern("resources/read").uri(&uri).send()
    }
}

#[test]
fn the_history_of_a_container_gone_or_not_is_shown_within_its_space_alone() {
    let Some(home) = TwoSpaces::new() else { return };
    let (gone_near, gone_far) = ("plover-near-gone", "plover-far0-gone");
    write_history(&home.server, &[NEAR, FAR, gone_near, gone_far]);
    for (client, names) in [
        (&home.admin, vec![NEAR, FAR, gone_near, gone_far]),
        (&home.near, vec![NEAR, gone_near]),
    ] {
        for name in names {
            let shown = TwoSpaces::history(client, name).data();
            let times = shown["times"].as_array().unwrap();
            assert!(times.len() >= 58, "{name}: {}", times.len());
            assert_eq!(shown["step_s"], 60);
            let mean = &shown["metrics"]["cpu_throttled_percent"]["mean"][5];
            assert_eq!(mean, 43.0, "{shown}");
            let read = TwoSpaces::resource(client, name).result();
            let text = read["contents"][0]["text"].as_str().unwrap();
            assert!(text.contains("cpu_throttled_percent"), "{text}");
        }
    }
    let never = "plover-never";
    for hidden in [FAR, gone_far] {
        for ask in [TwoSpaces::history, TwoSpaces::resource, diagnose] {
            let alike = |name: &str| ask(&home.near, name).body.replace(name, "NAME");
            let (hidden, never) = (alike(hidden), alike(never));
            assert_eq!(hidden, never);
        }
    }
    let host = home.near.call("server_history", json!({})).send();
    assert!(host.message().to_lowercase().contains("unknown tool"));
    let kept = diagnose(&home.near, NEAR).data();
    assert!(kept.get("host").is_none(), "{kept:#}");
    let own = home
        .admin
        .call("server_history", json!({ "since": "2h", "limit": 120 }))
        .send();
    assert!(own.data()["times"].as_array().unwrap().len() >= 50);
    let wrong = json!({ "since": "2026-01-02", "until": "2026-01-01" });
    let wrong = home.admin.call("server_history", wrong).send().failure();
    assert!(wrong.contains("`since` must be before `until`"), "{wrong}");
}
