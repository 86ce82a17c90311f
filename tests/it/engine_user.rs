//! The Podman of a user, without root: it is served as the user's, and nothing that it says gives a right of root.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use serde_json::{Value, json};

use crate::engine_kill::processes;
use crate::support::engines::{
    Engine, EngineContainer, EngineKind, MARK, PROCESSES, USER, with_mark,
};
use crate::support::helper::{Helper, LONG_MS, container};
use crate::support::machine::{IN_TIME, marker, wait_until};
use crate::support::server::server;

fn engine() -> Option<Engine> {
    Engine::shared(EngineKind::PodmanUser)
}

/// Returns an operation on a container.
fn on(operation: &str, container: &EngineContainer<'_>) -> Value {
    json!({ "do": operation, "container": container.reference() })
}

/// Returns an action on a container.
fn action(container: &EngineContainer<'_>, action: &Value) -> Value {
    let mut operation = on("container_deed", container);
    operation["deed"] = action.clone();
    operation
}

fn info(helper: &Helper, container: &EngineContainer<'_>) -> (String, Value) {
    let printed = helper.run(&on("container_info", container)).stdout();
    let facts = printed
        .lines()
        .find_map(|line| line.strip_prefix("Engine: "));
    let facts = serde_json::from_str(facts.unwrap_or("null")).unwrap();
    (printed, facts)
}

#[test]
fn containers_of_a_user_are_listed_started_stopped_paused_and_read() {
    let Some(engine) = engine() else {
        return;
    };
    let (own, helper) = (engine.run(&[]), engine.helper());
    let list = helper.run(&json!({ "do": "container_list" })).stdout();
    assert!(list.lines().any(|line| line == own.reference()), "{list}");
    let is = |word: &str| {
        let (printed, _) = info(&helper, &own);
        assert!(printed.contains(&format!("State: {word}\n")), "{printed}");
    };
    is("RUNNING");
    let done = json!({ "exited": { "code": 0 } });
    for (operation, word) in [
        (action(&own, &json!({ "what": "freeze" })), "FROZEN"),
        (action(&own, &json!({ "what": "unfreeze" })), "RUNNING"),
        (
            json!({ "do": "container_stop", "container": own.reference(), "grace_s": 5 }),
            "STOPPED",
        ),
        (on("container_start", &own), "RUNNING"),
    ] {
        let finished = helper.run(&operation);
        assert_eq!(finished.ending, done, "{operation}");
        is(word);
    }
    let finished = helper.run(&action(&own, &json!({ "what": "printed", "lines": 5 })));
    assert_eq!(finished.ending, done, "{:?}", finished.refusal());
}

#[test]
fn a_command_in_a_container_of_a_user_has_no_more_than_the_users_rights() {
    let Some(engine) = engine() else {
        return;
    };
    let options = ["--env=JAVA_HOME=/opt/java", "--workdir=/home/app"];
    let (own, helper) = (engine.run(&options), engine.helper());
    let line = "id -u; pwd; echo $JAVA_HOME; echo $HOME; grep CapEff /proc/self/status; echo err >&2; exit 5";
    let finished = helper.run(&container(&own.reference(), line));
    assert_eq!(
        finished.ending,
        json!({ "exited": { "code": 5 } }),
        "{:?}",
        finished.refusal()
    );
    assert_eq!(finished.stderr, b"err\n");
    let (_, ours) = (own.name.as_str(), finished.stdout());
    let by_podman = engine.cli(&[
        "exec",
        &own.name,
        "/bin/sh",
        "-c",
        "grep CapEff /proc/self/status",
    ]);
    let expected = format!("0\n/home/app\n/opt/java\n/root\n{by_podman}\n");
    assert_eq!(ours, expected);
    // Another user of the container, who is known by name there.
    let mut as_app = container(&own.reference(), "id -u; echo $HOME; pwd");
    as_app["command"]["user"] = json!("app");
    as_app["command"]["cwd"] = json!("/tmp");
    assert_eq!(helper.run(&as_app).stdout(), "1000\n/home/app\n/tmp\n");
    // On the host its processes are the user's.
    let mark = marker();
    let call = helper.ask(&processes(&own.reference(), &["hold"], &mark), LONG_MS);
    wait_until("it runs", IN_TIME, || !with_mark(&mark).is_empty());
    let uid: u32 = engine.run_as_user(&["id", "-u"]).parse().unwrap();
    for pid in with_mark(&mark) {
        assert_eq!(fs::metadata(format!("/proc/{pid}")).unwrap().uid(), uid);
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
        let call_group = format!("libpod-{}/gatewren-exec-", own.inspect(".Id"));
        assert!(groups.contains(&call_group), "{groups}");
    }
    call.cancel();
    call.finish();
    assert_eq!(with_mark(&mark), Vec::<i32>::new());
}

#[test]
fn an_unknown_user_or_directory_in_a_container_of_a_user_is_named() {
    let Some(engine) = engine() else {
        return;
    };
    let (own, helper) = (engine.run(&[]), engine.helper());
    for (key, value) in [("user", "nobody-here"), ("cwd", "/missing")] {
        let mut operation = container(&own.reference(), "true");
        operation["command"][key] = json!(value);
        let (_, message) = helper.run(&operation).refusal();
        assert!(message.contains(value), "{message}");
    }
}

#[test]
fn files_of_a_container_of_a_user_are_not_read_as_root() {
    let Some(engine) = engine() else {
        return;
    };
    // The user may not read this file of the host; root could, through the container.
    let secret = engine.folder().join(format!("secret-{}", marker()));
    fs::write(&secret, "of root").unwrap();
    let (own, helper) = (engine.run(&["--volume", "/:/host:ro"]), engine.helper());
    let path = format!("/host{}", secret.display());
    for operation in [
        action(
            &own,
            &json!({ "what": "read_file", "path": path, "offset": 0, "bytes": 100 }),
        ),
        action(
            &own,
            &json!({ "what": "list_files", "path": "/host", "limit": 10 }),
        ),
        on("container_os_release", &own),
        on("container_disk", &own),
    ] {
        let finished = helper.run(&operation);
        let (_, message) = finished.refusal();
        assert!(!finished.stdout().contains("of root"), "{operation}");
        assert!(
            message.contains("as root"),
            "{operation}: {:?}",
            finished.ending
        );
    }
    fs::remove_file(secret).unwrap();
}

#[test]
fn a_container_with_the_users_home_directory_needs_host_shell() {
    let Some(engine) = engine() else {
        return;
    };
    let home = engine.run_as_user(&["printenv", "HOME"]);
    engine.run_as_user(&["mkdir", "-p", &format!("{home}/media")]);
    let mount = format!("{home}:/home-of-user");
    let own = engine.run(&["--volume", &mount]);
    let helper = engine.helper_with("host_shell = \"off\"\n");
    let (_, message) = helper.run(&container(&own.reference(), "true")).refusal();
    let expected = format!("has the rights of user '{USER}'");
    assert!(message.contains(&expected), "{message}");
    let (_, facts) = info(&helper, &own);
    let right = facts["host_rights"][0].as_str().unwrap();
    assert!(right.contains(&home), "{right}");
    let plain = engine.run(&["--volume", &format!("{home}/media:/media")]);
    let finished = helper.run(&container(&plain.reference(), "true"));
    assert_eq!(
        finished.ending,
        json!({ "exited": { "code": 0 } }),
        "{:?}",
        finished.refusal()
    );
}

#[test]
fn a_process_that_is_not_confirmed_is_no_container() {
    let Some(engine) = engine() else {
        return;
    };
    let helper = engine.helper();
    // Without a cgroup of its own, nothing shows that the process belongs to this container.
    let own = engine.run(&["--cgroups=disabled"]);
    let (_, message) = helper.run(&container(&own.reference(), "true")).refusal();
    assert!(message.contains("no cgroup of its own"), "{message}");
    let (printed, facts) = info(&helper, &own);
    assert!(!printed.contains("PID:"), "{printed}");
    assert!(
        facts["no_commands"].as_str().unwrap().contains("cgroup"),
        "{facts}"
    );
}

#[test]
fn the_podman_of_a_user_that_is_not_named_is_not_asked() {
    let Some(engine) = engine() else {
        return;
    };
    let helper = Helper::start_by(&engine.inside(), |_| {});
    let (code, message) = helper
        .run(&container(&engine.reference("alpha"), "true"))
        .refusal();
    assert_ne!(code, "", "{message}");
    let list = helper.run(&json!({ "do": "container_list" })).stdout();
    assert!(!list.contains('@'), "{list}");
}

#[test]
fn a_command_that_kills_its_reaper_in_a_container_of_a_user_leaves_nothing() {
    let Some(engine) = engine() else {
        return;
    };
    let (own, helper) = (engine.run(&[]), engine.helper());
    let mark = marker();
    let line =
        format!("export {MARK}={mark}; {PROCESSES} bg setsid double; kill -KILL $PPID; sleep 600");
    let finished = helper.run(&container(&own.reference(), &line));
    assert_eq!(
        finished.ending,
        json!({ "killed": { "why": "reaper_lost" } })
    );
    assert_eq!(with_mark(&mark), Vec::<i32>::new());
}

#[test]
fn the_state_has_the_containers_of_a_user_and_follows_them() {
    let Some(engine) = engine() else {
        return;
    };
    let bounds = format!("runtimes = []\npodman_users = [\"{USER}\"]\nhost_shell = \"full\"\n");
    let server = server().policy("admin").settings("").bounds(&bounds);
    let server = server.run_inside(&engine).start();
    let client = server.client();
    let state = |own: &EngineContainer<'_>| {
        let pointer = format!("/public/packageData/{}/status", own.reference());
        let answer = client.call("state_get", json!({ "pointer": pointer }));
        answer.send().body
    };
    let own = engine.run(&[]);
    wait_until("it is in the state", IN_TIME, || {
        state(&own).contains("running")
    });
    own.act("pause");
    wait_until("a change is in the state", IN_TIME, || {
        state(&own).contains("frozen")
    });
    own.act("unpause");
    wait_until("it runs again", IN_TIME, || state(&own).contains("running"));
    for name in [own.reference(), own.name.clone()] {
        let shell = json!({ "container": name, "command": "echo out; exit 3" });
        let answer = client.call("container_shell", shell).send().data();
        assert_eq!(answer["stdout"], "out\n", "{answer}");
        assert_eq!(answer["exit_code"], 3);
    }
}

#[test]
fn a_command_in_a_container_of_a_user_cannot_report_in_the_name_of_its_reaper() {
    let Some(engine) = engine() else {
        return;
    };
    let (own, helper) = (engine.run(&[]), engine.helper());
    let forged = r#"{"ended":{"exited":{"code":0}}}"#;
    let line = format!("echo '{forged}' >/proc/$PPID/fd/4 || exit 3");
    let finished = helper.run(&container(&own.reference(), &line));
    assert_eq!(finished.ending, json!({ "exited": { "code": 3 } }));
}
