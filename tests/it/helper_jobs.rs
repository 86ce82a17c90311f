//! Jobs over the helper's socket: they outlive their connection, and none of their processes outlives them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::support::container::Containers;
use crate::support::helper::{Helper, LONG_MS, container, host};
use crate::support::machine::{
    IN_TIME, call_cgroups, is_alive, marked, marker, sleeping, wait_until,
};
use crate::support::server::Directory;

const NOWHERE: &str = "/nonexistent";

/// Starts a helper that keeps its jobs in this directory.
fn helper(lxcpath: &Path, home: &Directory) -> Helper {
    Helper::start_as(lxcpath, |command| {
        command.arg("--state-dir").arg(&home.0);
    })
}

/// Returns an id in the form of the front's.
fn id() -> String {
    let digits = marker();
    format!("job_{digits:0>32}")
}

fn start(id: &str, owner: &str, operation: &Value) -> Value {
    json!({
        "do": "job_start", "job": id, "owner": owner, "tool": "job_start", "operation": operation
    })
}

fn about(what: &str, id: &str, owner: &str) -> Value {
    json!({ "do": what, "job": id, "owner": owner })
}

/// Starts a job and disconnects as soon as it is accepted.
fn begin(helper: &Helper, id: &str, owner: &str, operation: &Value) {
    let mut call = helper.ask(&start(id, owner, operation), LONG_MS);
    assert!(call.started(), "it began");
}

/// Returns the output of an operation, one JSON value per line.
fn lines(helper: &Helper, operation: &Value) -> Vec<Value> {
    let finished = helper.run(operation);
    assert_eq!(
        finished.ending,
        json!({ "exited": { "code": 0 } }),
        "{operation}"
    );
    let said = finished.stdout();
    said.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Returns how a job ended.
fn ended(helper: &Helper, id: &str, owner: &str) -> Value {
    lines(helper, &about("job_wait", id, owner)).remove(0)
}

/// Returns a part of its output: the metadata, and the bytes.
fn piece(helper: &Helper, id: &str, owner: &str, offset: u64) -> (Value, Vec<u8>) {
    let mut operation = about("job_output", id, owner);
    operation["offset"] = json!(offset);
    operation["bytes"] = json!(1 << 20);
    let said = helper.run(&operation).stdout;
    let end = said.iter().position(|byte| *byte == b'\n').unwrap();
    (
        serde_json::from_slice(&said[..end]).unwrap(),
        said[end + 1..].to_vec(),
    )
}

#[test]
fn a_job_goes_on_without_its_connection_and_is_kept() {
    let (home, id) = (Directory::new(), id());
    let helper = helper(Path::new(NOWHERE), &home);
    let gate = home.join("gate");
    let line = format!(
        "echo out; echo err >&2; while [ ! -e {} ]; do sleep 0.02; done; printf end; exit 3",
        gate.display()
    );
    begin(&helper, &id, "ada", &host(&line));
    let list = json!({ "do": "job_list", "owner": "ada" });
    wait_until("it prints", IN_TIME, || {
        lines(&helper, &list)[0]["output_bytes"] == 8
    });
    let runs = lines(&helper, &list).remove(0);
    assert_eq!(
        (&runs["id"], &runs["operation"], &runs["reference"]),
        (&json!(id), &json!("host_command"), &json!("it"))
    );
    assert!(runs.get("ending").is_none(), "{runs}");
    fs::write(&gate, "").unwrap();
    let done = ended(&helper, &id, "ada");
    assert_eq!(done["ending"], json!({ "exited": { "code": 3 } }));
    let (said, bytes) = piece(&helper, &id, "ada", 0);
    let mut words: Vec<&[u8]> = bytes.split(|b| *b == b'\n').collect();
    words.sort_unstable();
    assert_eq!(words, [&b"end"[..], b"err", b"out"]);
    assert_eq!(
        said,
        json!({ "offset": 0, "output_bytes": 11, "ended": true })
    );
    assert_eq!(piece(&helper, &id, "ada", 9).1, b"nd"[..].to_vec());

    let place = home.join("jobs").join(&id);
    for (path, mode) in [
        (place.clone(), 0o700),
        (place.join("output.0"), 0o600),
        (place.join("record.json"), 0o600),
    ] {
        let facts = fs::metadata(&path).unwrap();
        assert_eq!(
            facts.permissions().mode() & 0o777,
            mode,
            "{}",
            path.display()
        );
    }
}

#[test]
fn whoever_stays_hears_it_as_without_a_job() {
    let (home, id) = (Directory::new(), id());
    let helper = helper(Path::new(NOWHERE), &home);
    let finished = helper.run(&start(&id, "ada", &host("echo out; echo err >&2; exit 7")));
    assert_eq!(finished.ending, json!({ "exited": { "code": 7 } }));
    assert_eq!(
        (finished.stdout(), finished.stderr),
        ("out\n".into(), b"err\n".to_vec())
    );
    // A second job with this id is rejected.
    assert_eq!(
        helper.run(&start(&id, "ada", &host("true"))).refusal().0,
        "bad_command"
    );
}

#[test]
fn a_job_is_there_for_its_owner_alone() {
    let (home, id) = (Directory::new(), id());
    let helper = helper(Path::new(NOWHERE), &home);
    helper.run(&start(&id, "ada", &host("echo secret")));
    assert_eq!(
        lines(&helper, &json!({ "do": "job_list", "owner": "bert" })),
        [] as [Value; 0]
    );
    let never = "job_00000000000000000000000000000000";
    for what in ["job_list", "job_wait", "job_output", "job_cancel"] {
        let answer = |id: &str, owner: &str| {
            let mut operation = about(what, id, owner);
            if what == "job_output" {
                operation["offset"] = json!(0);
                operation["bytes"] = json!(10);
            }
            let (code, message) = helper.run(&operation).refusal();
            (code, message.replace(id, "ID"))
        };
        let hidden = answer(&id, "bert");
        assert_eq!(hidden.0, "no_such_job", "{what}");
        assert_eq!(hidden, answer(never, "bert"), "{what}");
    }
    for not_an_id in ["../../etc", "", "job_1"] {
        let closed = helper
            .ask(&about("job_wait", not_an_id, "ada"), LONG_MS)
            .try_finish();
        assert!(closed.is_none(), "{not_an_id} is no request");
    }
}

/// Returns a shell line that starts processes of every kind; `PROCESSES` of them have the marker, at least.
fn stubborn(marker: &str) -> String {
    format!(
        "trap '' TERM HUP; (setsid sh -c 'setsid sleep {marker} & sleep {marker}' &) ; (env -i setsid sleep {marker} \
         &) ; echo up; sleep {marker}"
    )
}

const PROCESSES: usize = 4;

#[test]
fn cancelling_ends_everything_that_a_job_has_started() {
    let (home, id, mark) = (Directory::new(), id(), marker());
    let helper = helper(Path::new(NOWHERE), &home);
    begin(&helper, &id, "ada", &host(&stubborn(&mark)));
    wait_until("all run", IN_TIME, || sleeping(&mark).len() >= PROCESSES);
    let ended = lines(&helper, &about("job_cancel", &id, "ada")).remove(0);
    assert_eq!(ended["ending"], json!({ "killed": { "why": "cancelled" } }));
    assert!(
        marked(&mark).is_empty(),
        "it has answered, so they are gone"
    );
    assert!(call_cgroups(helper.pid()).is_empty());
    assert_eq!(piece(&helper, &id, "ada", 0).1, b"up\n");
    // Cancelling it again changes nothing.
    let again = lines(&helper, &about("job_cancel", &id, "ada")).remove(0);
    assert_eq!(again, ended);
}

#[test]
fn a_job_in_a_container_is_ended_whole_and_one_that_cannot_begin_is_none() {
    let Some(mut own) = Containers::new() else {
        return;
    };
    own.make("wren");
    let (home, id, mark) = (Directory::new(), id(), marker());
    let helper = helper(own.lxcpath(), &home);
    let stopped = helper.run(&start(&id, "ada", &container("wren", "true")));
    assert_eq!(stopped.refusal().0, "not_running");
    let list = json!({ "do": "job_list", "owner": "ada" });
    assert_eq!(lines(&helper, &list), [] as [Value; 0]);
    helper.run(&json!({ "do": "container_start", "container": "wren" }));
    begin(&helper, &id, "ada", &container("wren", &stubborn(&mark)));
    wait_until("all run", IN_TIME, || sleeping(&mark).len() >= PROCESSES);
    assert_eq!(lines(&helper, &list)[0]["container"], "wren");
    let ended = lines(&helper, &about("job_cancel", &id, "ada")).remove(0);
    assert_eq!(ended["ending"], json!({ "killed": { "why": "cancelled" } }));
    assert!(marked(&mark).is_empty());
    assert_eq!(own.state("wren"), "RUNNING");
    // An operation other than a command can also be a job.
    let stop = json!({ "do": "container_stop", "container": "wren", "grace_s": 0 });
    let stopping = format!("{}f", &id[..id.len() - 1]);
    let ended = helper.run(&start(&stopping, "ada", &stop)).ending;
    assert_eq!(ended, json!({ "exited": { "code": 0 } }));
    own.until_stopped("wren");
}

#[test]
fn jobs_end_with_the_helper_and_the_next_one_says_so() {
    for (signal, why) in [(Signal::SIGTERM, "shutdown"), (Signal::SIGKILL, "lost")] {
        let (home, running, done, mark) = (Directory::new(), id(), id(), marker());
        let mut first = helper(Path::new(NOWHERE), &home);
        first.run(&start(&done, "ada", &host("echo done")));
        begin(&first, &running, "ada", &host(&stubborn(&mark)));
        wait_until("all run", IN_TIME, || sleeping(&mark).len() >= PROCESSES);
        let printed = || piece(&first, &running, "ada", 0).1 == b"up\n";
        wait_until("it has printed", IN_TIME, printed);
        kill(Pid::from_raw(first.pid()), signal).unwrap();
        first.process.wait().unwrap();
        wait_until("none is left", IN_TIME, || marked(&mark).is_empty());

        let next = helper(Path::new(NOWHERE), &home);
        let lost = ended(&next, &running, "ada");
        assert_eq!(lost["ending"], json!({ "killed": { "why": why } }));
        assert_eq!(piece(&next, &running, "ada", 0).1, b"up\n");
        assert_eq!(
            ended(&next, &done, "ada")["ending"],
            json!({ "exited": { "code": 0 } })
        );
        assert!(is_alive(next.pid()));
    }
}

#[test]
fn of_ten_megabytes_and_more_beginning_and_end_are_kept() {
    let (home, id) = (Directory::new(), id());
    let helper = helper(Path::new(NOWHERE), &home);
    // Lines of eight bytes, each with its position.
    let lines_printed: u64 = 3_000_000;
    begin(
        &helper,
        &id,
        "ada",
        &host(&format!("seq -f %07.0f 0 {}", lines_printed - 1)),
    );
    let all = lines_printed * 8;
    assert_eq!(ended(&helper, &id, "ada")["output_bytes"], all);
    let (mut at, mut read, mut gaps) = (0, 0, Vec::new());
    while at < all {
        let (said, bytes) = piece(&helper, &id, "ada", at);
        let begin = said["offset"].as_u64().unwrap();
        assert_eq!(said["output_bytes"], all);
        if begin > at {
            gaps.push((at, begin));
        }
        assert!(!bytes.is_empty());
        let first = begin.next_multiple_of(8);
        let within = usize::try_from(first - begin).unwrap();
        if let Some(line) = bytes.get(within..within + 7) {
            assert_eq!(line, format!("{:07}", first / 8).as_bytes(), "at {first}");
        }
        read += bytes.len() as u64;
        at = begin + bytes.len() as u64;
    }
    assert_eq!(gaps.len(), 1, "{gaps:?}");
    assert_eq!(gaps[0].0, 2 << 20, "the beginning is kept");
    assert!(all - gaps[0].1 >= 6 << 20, "and the end");
    assert!(read <= 10 << 20, "{read}");
    let place = home.join("jobs").join(&id);
    let kept: u64 = fs::read_dir(place)
        .unwrap()
        .map(|f| f.unwrap().metadata().unwrap().len())
        .sum();
    assert!(kept <= (10 << 20) + 4096, "{kept}");
}

#[test]
fn a_listener_that_does_not_read_stops_no_job() {
    let (home, id) = (Directory::new(), id());
    let helper = helper(Path::new(NOWHERE), &home);
    let call = helper.ask(
        &start(&id, "ada", &host("head -c 30000000 /dev/zero")),
        LONG_MS,
    );
    wait_until("it is there", IN_TIME, || {
        let list = json!({ "do": "job_list", "owner": "ada" });
        !lines(&helper, &list).is_empty()
    });
    let done = ended(&helper, &id, "ada");
    assert_eq!(done["ending"], json!({ "exited": { "code": 0 } }));
    drop(call);
}

#[test]
fn ends_that_nobody_heard_are_told_those_of_before_too_and_what_was_heard_can_go() {
    let (home, before, after, heard_id) = (Directory::new(), id(), id(), id());
    let helper = helper(Path::new(NOWHERE), &home);
    let detached = |id: &str| {
        let mut operation = start(id, "ada", &host("true"));
        operation["detached"] = json!(true);
        assert_eq!(
            helper.run(&operation).ending,
            json!({ "exited": { "code": 0 } })
        );
    };
    helper.run(&start(&heard_id, "ada", &host("true")));
    detached(&before);
    ended(&helper, &before, "ada");
    let mut ends = helper.ask(&json!({ "do": "job_ends" }), LONG_MS);
    let mut heard = String::new();
    while !heard.contains(&before) {
        heard += &String::from_utf8(ends.output()).unwrap();
    }
    detached(&after);
    while !heard.contains(&after) {
        heard += &String::from_utf8(ends.output()).unwrap();
    }
    assert_eq!(heard.lines().count(), 2, "{heard}");
    assert!(!heard.contains(&heard_id));

    let forget = about("job_forget", &heard_id, "ada");
    assert_eq!(
        helper
            .run(&about("job_forget", &heard_id, "bert"))
            .refusal()
            .0,
        "no_such_job"
    );
    assert_eq!(
        helper.run(&forget).ending,
        json!({ "exited": { "code": 0 } })
    );
    assert_eq!(helper.run(&forget).refusal().0, "no_such_job");
    assert!(!home.join("jobs").join(&heard_id).exists());
}

#[test]
fn what_is_off_is_no_job_either_and_a_job_is_no_way_round_anything() {
    let (home, id) = (Directory::new(), id());
    let file = home.join("helper.toml");
    fs::write(
        &file,
        "containers = [\"wren\"]\ncontainer_shell = \"off\"\n",
    )
    .unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    fs::set_permissions(&home.0, fs::Permissions::from_mode(0o755)).unwrap();
    let helper = Helper::start_as(Path::new(NOWHERE), |command| {
        command
            .arg("--state-dir")
            .arg(home.join("state"))
            .arg("--policy")
            .arg(&file);
    });
    let refused = |operation: &Value| helper.run(&start(&id, "ada", operation)).refusal();
    assert_eq!(refused(&host("true")).0, "forbidden");
    assert_eq!(refused(&container("wren", "true")).0, "forbidden");
    assert_eq!(refused(&container("vault", "true")).0, "no_such_container");
    let bounds = json!({ "do": "bounds" });
    let nested = start(&id, "ada", &json!({ "do": "container_list" }));
    for never in [
        bounds,
        json!({ "do": "container_events" }),
        nested,
        json!({ "do": "job_list" }),
    ] {
        assert_eq!(refused(&never).0, "bad_command", "{never}");
    }
    let list = json!({ "do": "job_list" });
    assert_eq!(lines(&helper, &list), [] as [Value; 0]);
    assert!(!home.join("state").exists(), "nothing was kept");
}

#[test]
fn a_helper_without_a_place_for_jobs_has_none() {
    let helper = Helper::start(Path::new(NOWHERE));
    let (code, message) = helper.run(&start(&id(), "ada", &host("true"))).refusal();
    assert_eq!(code, "failed");
    assert!(message.contains("--state-dir"), "{message}");
}
