//! A command in a container of Docker or Podman is confined as the engine confines it, and nothing of it is shown.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::json;

use crate::engine_kill::processes;
use crate::support::engines::{Engine, EngineContainer, EngineKind, with_mark};
use crate::support::helper::{Finished, Helper, LONG_MS, powerful_container};
use crate::support::machine::{IN_TIME, call_cgroups, marker, sleeping, wait_until};

/// Prints what the kernel and the runtime have set for a process.
const PORTRAIT: &str = "grep -E '^(Uid|Gid|Groups|Cap[A-Z][a-z]*|NoNewPrivs|Seccomp|Seccomp_filters):' /proc/self/status; \
    echo \"cwd: $(pwd)\"; echo \"oom: $(cat /proc/self/oom_score_adj)\"; sed 's/^Max /limit:Max /' /proc/self/limits; \
    for it in cgroup ipc mnt net pid user uts; do echo \"ns: $(readlink /proc/self/ns/$it)\"; done; \
    env | sed 's/^/env: /'";

/// Variables that the shell sets, or one of both and not the other.
const OTHERS_VARIABLES: &[&str] = &[
    "HOME", "HOSTNAME", "LANG", "TERM", "SHLVL", "PWD", "OLDPWD", "_",
];

/// Options of a container, and whether the lab needs one of the two engines for it.
const OPTIONS: &[(&[&str], Option<EngineKind>)] = &[
    (&[], None),
    (&["--cap-drop=ALL"], None),
    (&["--security-opt=no-new-privileges"], None),
    (
        &[
            "--user=1000:1000",
            "--workdir=/home/app",
            "--env=JAVA_HOME=/opt/java",
        ],
        None,
    ),
    (
        &[
            "--user=1000",
            "--group-add=7",
            "--security-opt=no-new-privileges",
        ],
        None,
    ),
    (&["--read-only"], None),
    (&["--security-opt=seccomp=unconfined"], None),
    (&["--cgroupns=host"], None),
    (&["--pid=host"], None),
    (
        &["--ulimit=nofile=1024:1024", "--ulimit=nproc=2000:2000"],
        None,
    ),
    (&["--oom-score-adj=500"], None),
    (
        &["--uidmap=0:100000:5000", "--gidmap=0:100000:5000"],
        Some(EngineKind::Podman),
    ),
];

/// What [`PORTRAIT`] printed.
#[derive(Debug, PartialEq, Eq)]
struct Portrait {
    /// All lines but those below.
    lines: BTreeSet<String>,
    /// The supplementary groups without the process's own, which Podman's own exec leaves out.
    groups: BTreeSet<String>,
    variables: BTreeMap<String, String>,
}

impl Portrait {
    fn of(printed: &str) -> Self {
        let rest = |name: &str| {
            let line = printed.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_default().split_whitespace()
        };
        let own: BTreeSet<&str> = rest("Gid:").collect();
        let groups = rest("Groups:").filter(|group| !own.contains(group));
        let (variables, lines): (Vec<&str>, Vec<&str>) = printed
            .lines()
            .filter(|line| !line.starts_with("Groups:"))
            .partition(|line| line.starts_with("env: "));
        let variables = variables
            .iter()
            .filter_map(|line| line.strip_prefix("env: ")?.split_once('='));
        let variables = variables.filter(|(name, _)| !OTHERS_VARIABLES.contains(name));
        assert!(lines.len() > 30, "{printed}");
        Self {
            groups: groups.map(str::to_owned).collect(),
            variables: variables
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            lines: lines.into_iter().map(str::to_owned).collect(),
        }
    }
}

fn compare(engine: &Engine, own: &EngineContainer<'_>, helper: &Helper, options: &[&str]) {
    let by_engine = engine.cli(&["exec", &own.name, "/bin/sh", "-c", PORTRAIT]);
    let finished = helper.run(&powerful_container(&own.reference(), PORTRAIT));
    let shown = format!("{} {options:?}", engine.kind.name());
    assert_eq!(
        finished.ending,
        json!({ "exited": { "code": 0 } }),
        "{shown}"
    );
    let (by_engine, ours) = (Portrait::of(&by_engine), Portrait::of(&finished.stdout()));
    let missing: Vec<_> = by_engine.lines.difference(&ours.lines).collect();
    let further: Vec<_> = ours.lines.difference(&by_engine.lines).collect();
    assert!(
        missing.is_empty() && further.is_empty(),
        "{shown}: the engine has {missing:?}, gatewren {further:?}"
    );
    assert_eq!(by_engine.groups, ours.groups, "{shown}");
    assert_eq!(by_engine.variables, ours.variables, "{shown}");
}

/// Compares both in a container with these options, and ends a call in it.
pub fn confine(engine: &Engine, options: &[&str]) {
    let (own, helper) = (engine.run(options), engine.helper());
    compare(engine, &own, &helper, options);
    let mark = marker();
    let kinds = ["bg", "setsid", "double", "memory", "renamed", "hold"];
    let call = helper.ask(&processes(&own.reference(), &kinds, &mark), LONG_MS);
    wait_until("all run", IN_TIME, || with_mark(&mark).len() == kinds.len());
    call.cancel();
    let ending = call.finish().ending;
    assert_eq!(ending, json!({ "killed": { "why": "cancelled" } }));
    assert_eq!(with_mark(&mark), Vec::<i32>::new(), "{options:?}");
}

#[test]
fn a_command_has_no_new_privileges_where_its_container_has_none() {
    for engine in EngineKind::ALL.into_iter().filter_map(Engine::shared) {
        confine(
            &engine,
            &["--user=1000", "--security-opt=no-new-privileges"],
        );
    }
}

#[test]
#[ignore = "long: a container for each option"]
fn a_command_is_confined_as_by_the_engines_own_exec() {
    for engine in EngineKind::ALL.into_iter().filter_map(Engine::shared) {
        for (options, only) in OPTIONS {
            if only.is_none_or(|only| only == engine.kind) {
                confine(&engine, options);
            }
        }
    }
}

#[test]
#[ignore = "long: a container for each runtime"]
fn a_command_is_confined_by_runc_below_podman_too() {
    if let Some(engine) = Engine::shared(EngineKind::Podman) {
        let (own, helper) = (engine.run_with_runtime("runc"), engine.helper());
        assert_eq!(own.inspect(".OCIRuntime"), "runc");
        compare(&engine, &own, &helper, &["runc"]);
    }
}

#[test]
#[ignore = "long: a daemon of its own"]
fn a_command_is_confined_where_docker_maps_users() {
    let flags = "--userns-remap=nobody:nogroup";
    if let Some(engine) = Engine::own(EngineKind::Docker, "") {
        // The machine's own files stay as they are: this is in the namespace of the daemon.
        engine.run_inside(&format!(
            "cd '{}' && echo nobody:100000:65536 | tee subuid >subgid &&
             mount --bind subuid /etc/subuid && mount --bind subgid /etc/subgid",
            engine.folder().display()
        ));
        engine.restart(false, flags);
        engine.up(flags);
        confine(&engine, &[]);
    }
}

/// Runs `id` as this user.
fn run_as(helper: &Helper, own: &EngineContainer<'_>, user: &str) -> Finished {
    helper.run(&json!({
        "do": "container_command", "container": own.reference(),
        "command": { "program": { "shell": "id -u; id -g; pwd; echo $HOME" }, "user": user },
    }))
}

#[test]
fn a_user_of_the_container_runs_a_command_without_a_right_to_change_users() {
    for engine in EngineKind::ALL.into_iter().filter_map(Engine::shared) {
        let (own, helper) = (engine.run(&["--cap-drop=ALL"]), engine.helper());
        for (user, printed) in [
            ("app", "1000\n1000\n/\n/home/app\n"),
            ("1000", "1000\n1000\n/\n/home/app\n"),
            ("root", "0\n0\n/\n/root\n"),
        ] {
            let finished = run_as(&helper, &own, user);
            assert_eq!(finished.stdout(), printed, "{user}: {:?}", finished.ending);
        }
        let (code, message) = run_as(&helper, &own, "stranger").refusal();
        assert_eq!(code, "bad_command");
        assert!(message.contains("'stranger'"), "{message}");
    }
}

/// Finds the processes with a word in their arguments, or with `environ` in their environment.
fn processes_with(file: &str, word: &str) -> Vec<i32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let text = fs::read(entry.path().join(file)).unwrap_or_default();
        let holds = text.windows(word.len()).any(|part| part == word.as_bytes());
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.parse().ok());
        found.extend(pid.filter(|_: &i32| holds));
    }
    found
}

#[test]
fn nothing_of_a_command_or_its_environment_is_in_a_command_line_an_event_or_a_file() {
    for engine in EngineKind::ALL.into_iter().filter_map(Engine::shared) {
        let name = format!("it-{}", marker());
        let events = engine.follow_events(&name);
        let (own, helper) = (engine.run_named(&name), engine.helper());
        let (mark, word, value) = (marker(), marker(), marker());
        let operation = json!({
            "do": "container_command", "container": own.reference(), "command": {
                "program": { "shell": format!(": word-{word}; exec sleep {mark}") },
                "env": { "SECRET": format!("value-{value}") },
            },
        });
        let (word, value) = (format!("word-{word}"), format!("value-{value}"));
        let call = helper.ask(&operation, LONG_MS);
        wait_until("it runs", IN_TIME, || sleeping(&mark).len() == 1);
        let command = sleeping(&mark);
        assert_eq!(processes_with("cmdline", &word), Vec::<i32>::new());
        assert_eq!(processes_with("cmdline", &value), Vec::<i32>::new());
        assert_eq!(processes_with("environ", &word), Vec::<i32>::new());
        assert_eq!(processes_with("environ", &value), command);
        assert_eq!(files_with(&engine, &[&mark, &word, &value]), "");
        call.cancel();
        call.finish();
        own.act("pause");
        let events = events.until("pause");
        assert!(events.contains("start"), "{events}");
        for secret in [&mark, &word, &value] {
            assert!(!events.contains(secret), "{events}");
        }
        assert!(!events.contains("exec"), "{events}");
        assert!(call_cgroups(helper.pid()).is_empty());
    }
}

/// Returns the files of the engine and of its runtimes that contain one of these words.
fn files_with(engine: &Engine, words: &[&String]) -> String {
    let patterns: Vec<String> = words.iter().map(|word| format!("-e {word}")).collect();
    let patterns = patterns.join(" ");
    engine.run_inside(&format!(
        "grep -rslF -D skip {patterns} /run/docker /run/containerd /run/crun /run/runc /run/containers /run/libpod '{}'",
        engine.folder().display()
    ))
}
