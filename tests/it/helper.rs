//! What the helper does and rejects, over its socket; with real containers for the operations on them.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::container::Containers;
use crate::support::helper::{Helper, LONG_MS, container, host};
use crate::support::machine::{
    IN_TIME, holds_within, install_program, is_alive, is_root, lxcpath, marked, marker, skip,
    wait_until,
};

const NOWHERE: &str = "/nonexistent";

fn helper() -> Helper {
    Helper::start(Path::new(NOWHERE))
}

fn about(what: &str, container: &str) -> Value {
    json!({ "do": what, "container": container })
}

fn with(mut operation: Value, name: &str, value: Value) -> Value {
    operation["command"][name] = value;
    operation
}

#[test]
fn it_answers_however_its_socket_came() {
    for helper in [helper(), Helper::start_activated(Path::new(NOWHERE))] {
        assert_eq!(
            helper.run(&json!({ "do": "ping" })).ending,
            json!({ "exited": { "code": 0 } })
        );
    }
}

#[test]
fn a_command_gets_clean_surroundings() {
    let helper = helper();
    let secret = marker();
    let line = format!(
        "umask; pwd; cat; env | sort; ls /proc/self/fd | wc -l; sleep 2 #{}",
        ""
    );
    let operation = with(
        host(&line),
        "env",
        json!({ "TOKEN": secret, "LANG": "de_DE" }),
    );
    let operation = with(operation, "cwd", json!("/usr"));
    let mut call = helper.ask(&operation, LONG_MS);
    let mut text = String::new();
    while text.lines().count() < 11 {
        text += &String::from_utf8(call.output()).unwrap();
    }
    assert!(
        marked(&secret).is_empty(),
        "a variable's value stands in a process list"
    );
    let mut lines: Vec<&str> = text.lines().collect();
    lines.retain(|line| !line.starts_with("SHLVL=") && !line.starts_with("_="));
    let home = std::env::var("HOME").unwrap_or_default();
    let home = if is_root() { "/root" } else { &home };
    let path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    let (home, token) = (format!("HOME={home}"), format!("TOKEN={secret}"));
    assert_eq!(
        lines,
        [
            "0022",
            "/usr",
            &home,
            "LANG=de_DE",
            path,
            "PWD=/usr",
            "TERM=dumb",
            &token,
            "4"
        ]
    );
}

#[test]
fn a_command_starts_with_default_signals_and_a_session_of_its_own() {
    let helper = helper();
    let program = json!({ "argv": ["cat", "/proc/self/status", "/proc/self/stat"] });
    let status = helper.run(&with(host(""), "program", program)).stdout();
    for signals in ["SigBlk", "SigIgn", "SigCgt"] {
        assert!(
            status.contains(&format!("{signals}:\t0000000000000000\n")),
            "{status}"
        );
    }
    let stat: Vec<&str> = status.lines().last().unwrap().split(' ').collect();
    assert_eq!(stat[0], stat[5], "it leads its session");
    assert_eq!(stat[6], "0", "it has no terminal");
}

#[test]
fn what_cannot_be_started_is_told_apart_from_what_failed() {
    let helper = helper();
    let argv = |argv: Value| with(host(""), "program", json!({ "argv": argv }));
    let cases = [
        (argv(json!(["no-such-program"])), "was not found"),
        (argv(json!(["/etc/passwd"])), "cannot be executed"),
        (argv(json!([])), "empty"),
        (
            with(host("id"), "cwd", json!("/no/such/place")),
            "cannot be entered",
        ),
        (with(host("id"), "cwd", json!("relative")), "absolute path"),
        (
            with(host("id"), "user", json!("nobody-of-this-name")),
            "not found in",
        ),
        (
            with(host("id"), "env", json!({ "A B": "c" })),
            "variable name",
        ),
    ];
    for (operation, words) in cases {
        let (code, message) = helper.run(&operation).refusal();
        assert_eq!(code, "bad_command", "{operation}");
        assert!(message.contains(words), "{message}");
    }
    let failed = helper.run(&host("no-such-program"));
    assert_eq!(failed.ending, json!({ "exited": { "code": 127 } }));
    let killed = helper.run(&host("kill -SEGV $$"));
    assert_eq!(killed.ending, json!({ "signalled": { "signal": 11 } }));
}

#[test]
fn a_command_runs_as_the_user_it_names() {
    if !is_root() {
        return skip("becoming somebody needs root");
    }
    let helper = helper();
    let whoami = with(host("id -u; id -g; id -G; umask"), "user", json!("nobody"));
    let lines = helper.run(&whoami).stdout();
    assert!(lines.starts_with("65534\n65534\n65534\n"), "{lines}");
    let number = with(host("id -un"), "user", json!("65534"));
    assert_eq!(helper.run(&number).stdout(), "nobody\n");
}

#[test]
fn both_outputs_arrive_whole_and_apart() {
    let helper = helper();
    let line = "head -c 3000000 /dev/zero; head -c 200000 /dev/zero >&2; printf '\\377end'";
    let finished = helper.run(&host(line));
    assert_eq!(finished.stdout.len(), 3_000_004);
    assert!(finished.stdout.ends_with(b"\xffend"));
    assert_eq!(finished.stderr.len(), 200_000);
}

#[test]
fn a_long_command_arrives_whole() {
    let helper = helper();
    let text = "x".repeat(100_000);
    let finished = helper.run(&host(&format!("printf %s {text}")));
    assert_eq!(finished.stdout(), text);
    let (code, _) = helper.run(&host(&"x".repeat(200_000))).refusal();
    assert_eq!(code, "bad_command");
}

#[test]
fn bytes_that_are_no_request_close_the_connection_and_nothing_else() {
    let helper = helper();
    let no_requests: [&[u8]; 5] = [
        b"GET / HTTP/1.1\r\n\r\n",
        &[1, 0, 0, 0, 2, b'{', b'}'],
        &[1, 0xff, 0xff, 0xff, 0xff],
        &[9, 0, 0, 0, 0],
        b"\x01\x00\x00\x00\x4a{\"operation\":{\"do\":\"shell_everything\"},\"limits\":{},\"reference\":\"\"}      ",
    ];
    for bytes in no_requests {
        let mut stream = helper.connect();
        stream.write_all(bytes).unwrap();
        let mut answer = Vec::new();
        // Unread bytes turn the end of the connection into a reset.
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty());
    }
    let ping = helper.run(&json!({ "do": "ping" }));
    assert_eq!(ping.ending, json!({ "exited": { "code": 0 } }));
}

#[test]
fn strangers_are_refused() {
    let stranger = if is_root() { "65534" } else { "0" };
    let helper = Helper::start_as(Path::new(NOWHERE), |command| {
        command.args(["--allow-uid", stranger]);
    });
    let mut stream = helper.connect();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(answer.is_empty());
}

#[test]
fn one_operation_too_many_waits_and_is_then_refused_as_busy() {
    let helper = helper();
    let marker = marker();
    let owner = json!("owner");
    let calls: Vec<_> = (0..64)
        .map(|_| helper.ask_for(&owner, &host(&format!("exec sleep {marker}"))))
        .collect();
    wait_until("all run", IN_TIME, || marked(&marker).len() == 64);
    assert_eq!(helper.run(&host("true")).refusal().0, "busy");
    let waiting = helper.ask_for(&owner, &host("true"));
    drop(calls);
    assert_eq!(waiting.finish().ending, json!({ "exited": { "code": 0 } }));
    wait_until("one runs again", IN_TIME, || {
        helper.run(&host("true")).ending == json!({ "exited": { "code": 0 } })
    });
    wait_until("all are gone", IN_TIME, || marked(&marker).is_empty());
}

#[test]
fn the_helper_stays_small_while_a_command_prints_a_gigabyte() {
    let helper = helper();
    let operation = host("head -c 1073741824 /dev/zero");
    let mut call = helper.ask(&operation, LONG_MS);
    // The memory for the first bytes depends on the build: a debug build maps more of itself.
    let (mut bytes, mut first, mut most) = (0, 0, 0);
    while bytes < 1 << 30 {
        bytes += call.output().len();
        if bytes % (64 << 20) < 65_536 {
            most = most.max(resident_kb(helper.pid()));
            first = if first == 0 { most } else { first };
        }
    }
    assert_eq!(call.finish().ending, json!({ "exited": { "code": 0 } }));
    assert!(first > 0 && first < 64_000, "{first} kB");
    assert!(most < first + 8_000, "{first} kB, then {most} kB");
}

fn resident_kb(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Without root: no cgroup, no containers, and still no process is left.
#[test]
fn an_ordinary_user_has_the_host_and_nothing_more() {
    if !is_root() {
        return skip("becoming an ordinary user needs root");
    }
    let exe = std::env::temp_dir().join(format!("gatewren-it-exe-{}", marker()));
    install_program(Path::new(env!("CARGO_BIN_EXE_gatewren")), &exe);
    let helper = Helper::start_program(&exe, Path::new("/var/lib/lxc"), |command| {
        command.args(["--allow-uid", "0"]).uid(65534).gid(65534);
    });
    assert_eq!(helper.run(&host("id -u")).stdout(), "65534\n");
    let own = with(host("id -u"), "user", json!("nobody"));
    assert_eq!(helper.run(&own).stdout(), "65534\n");
    let other = with(host("id -u"), "user", json!("root"));
    assert_eq!(helper.run(&other).refusal().0, "not_root");
    for operation in [container("alpha", "id"), json!({ "do": "container_list" })] {
        let (code, message) = helper.run(&operation).refusal();
        assert_eq!(code, "not_root");
        assert!(message.contains("as root"), "{message}");
    }
    let marker = marker();
    let line = format!(
        "i=0; while [ $i -lt 100 ]; do (env -i setsid sleep {marker} &) ; i=$((i+1)); done; exec sleep {marker}"
    );
    let call = helper.ask(&host(&line), LONG_MS);
    wait_until("all run", IN_TIME, || marked(&marker).len() > 100);
    drop(call);
    wait_until("none is left", IN_TIME, || marked(&marker).is_empty());
    drop(helper);
    fs::remove_file(&exe).unwrap();
}

#[test]
fn containers_are_listed_described_started_and_stopped() {
    let Some(mut own) = Containers::new() else {
        return;
    };
    own.make("wren");
    let helper = Helper::start(own.lxcpath());
    let run = |operation: &Value| helper.run(operation);
    assert_eq!(run(&json!({ "do": "container_list" })).stdout(), "wren\n");
    assert!(
        run(&about("container_info", "wren"))
            .stdout()
            .contains("STOPPED")
    );
    let config = run(&about("container_config", "wren")).stdout();
    assert!(config.contains("lxc.uts.name = wren"));

    assert_eq!(
        run(&about("container_os_release", "wren")).stdout(),
        "ID=wren\n"
    );
    let stopped = run(&container("wren", "id"));
    assert_eq!(stopped.refusal().0, "not_running");
    assert!(stopped.refusal().1.contains("container_start"));

    let started = run(&about("container_start", "wren"));
    assert_eq!(
        started.ending,
        json!({ "exited": { "code": 0 } }),
        "{started:?}"
    );
    assert_eq!(own.state("wren"), "RUNNING");
    assert_eq!(
        run(&container("wren", "echo $HOME; exit 3")).stdout(),
        "/root\n"
    );
    assert_eq!(
        run(&about("container_os_release", "wren")).stdout(),
        "ID=wren\n"
    );

    own.until_ready("wren");
    let mut stop = about("container_stop", "wren");
    stop["grace_s"] = json!(100);
    assert_eq!(run(&stop).ending, json!({ "exited": { "code": 0 } }));
    assert_eq!(run(&container("wren", "id")).refusal().0, "not_running");
    // Its first process has another process id now.
    run(&about("container_start", "wren"));
    assert_eq!(run(&container("wren", "echo again")).stdout(), "again\n");
    stop["grace_s"] = json!(0);
    assert_eq!(run(&stop).ending, json!({ "exited": { "code": 0 } }));
}

#[test]
fn no_link_leads_the_helper_out_of_a_container() {
    let Some(mut own) = Containers::new() else {
        return;
    };
    let root = own.make("wren");
    let helper = Helper::start(own.lxcpath());
    let run = |operation: &Value| helper.run(operation);
    // A link out of the container resolves to the container's own file, or to none.
    fs::remove_file(root.join("etc/os-release")).unwrap();
    fs::remove_file(root.join("usr/lib/os-release")).unwrap();
    symlink("/etc/os-release-of-the-host", root.join("etc/os-release")).unwrap();
    fs::write(root.join("etc/os-release-of-the-host"), "ID=inside\n").unwrap();
    assert_eq!(
        run(&about("container_os_release", "wren")).stdout(),
        "ID=inside\n"
    );
    fs::remove_file(root.join("etc/os-release")).unwrap();
    symlink(
        "../../../../../../../../etc/hostname",
        root.join("etc/os-release"),
    )
    .unwrap();
    assert_eq!(
        run(&about("container_os_release", "wren")).refusal().0,
        "failed"
    );
    // A pipe at that path does not block it either.
    fs::remove_file(root.join("etc/os-release")).unwrap();
    nix::unistd::mkfifo(&root.join("etc/os-release"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_eq!(
        run(&about("container_os_release", "wren")).refusal().0,
        "failed"
    );
}

#[test]
fn a_container_outlives_the_helper_that_started_it() {
    let Some(mut own) = Containers::new() else {
        return;
    };
    own.make("wren");
    for signal in [nix::sys::signal::SIGTERM, nix::sys::signal::SIGKILL] {
        let mut helper = Helper::start(own.lxcpath());
        if own.state("wren") != "RUNNING" {
            helper.run(&about("container_start", "wren"));
        }
        assert_eq!(helper.run(&container("wren", "echo up")).stdout(), "up\n");
        // Longer than the helper takes to search for orphans.
        let _ = helper.ask(&host("sleep 1.5"), LONG_MS).finish();
        assert_eq!(own.state("wren"), "RUNNING");
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(helper.pid()), signal).unwrap();
        helper.process.wait().unwrap();
        assert_eq!(own.state("wren"), "RUNNING");
    }
}

#[test]
fn changes_of_state_are_reported_as_they_happen() {
    let Some(mut own) = Containers::new() else {
        return;
    };
    own.make("wren");
    let helper = Helper::start(own.lxcpath());
    let mut events = helper.ask(&json!({ "do": "container_events" }), 0);
    let hears = std::thread::spawn(move || {
        let mut heard = String::new();
        while !heard.contains("'wren' changed state to [RUNNING]\n") {
            heard += &String::from_utf8(events.output()).unwrap();
        }
    });
    // lxc-monitor needs a moment to start and does not report when it has. So the test repeats the change.
    let mut stop = about("container_stop", "wren");
    stop["grace_s"] = json!(0);
    let told = (0..50).any(|_| {
        helper.run(&stop);
        helper.run(&about("container_start", "wren"));
        holds_within(Duration::from_secs(2), || hears.is_finished())
    });
    assert!(told, "a start is reported");
    hears.join().unwrap();
    let lxcpath = own.lxcpath().to_str().unwrap().to_owned();
    let names = fs::read_dir(own.lxcpath()).unwrap().count();
    assert_eq!(names, 1, "the tools leave nothing among the containers");
    wait_until("no monitor is left", IN_TIME, || {
        marked(&lxcpath)
            .iter()
            .all(|pid| *pid == helper.pid() || !is_monitor(*pid))
    });
    assert_eq!(own.state("wren"), "RUNNING");
}

#[test]
fn definitions_are_reported_as_far_as_the_owner_lets_them_be_seen() {
    let Some(own) = Containers::new() else {
        return;
    };
    let policy = own.lxcpath().join("policy.toml");
    fs::write(&policy, "containers = [\"wren\"]\n").unwrap();
    let helper = Helper::start_as(own.lxcpath(), |command| {
        command.arg("--policy").arg(&policy);
    });
    let mut events = helper.ask(&json!({ "do": "container_events" }), 0);
    // The helper does not report when it has begun to watch. So the test writes a definition until an event comes.
    let heard = std::thread::spawn(move || {
        let mut heard = String::new();
        while !heard.contains("'wren' changed definition\n") {
            heard += &String::from_utf8(events.output()).unwrap();
        }
        heard
    });
    while !heard.is_finished() {
        for name in ["hidden", "wren"] {
            let directory = own.lxcpath().join(name);
            fs::create_dir(&directory).unwrap();
            fs::write(directory.join("config"), "").unwrap();
            std::thread::sleep(Duration::from_millis(50));
            fs::remove_dir_all(directory).unwrap();
        }
    }
    let heard = heard.join().unwrap();
    assert!(!heard.contains("hidden"), "{heard}");
}

#[test]
fn what_the_kernel_shows_of_containers_is_read_without_asking_lxc() {
    let Some(mut own) = Containers::new() else {
        return;
    };
    own.make("wren");
    own.make("idle");
    let helper = Helper::start(own.lxcpath());
    let all = json!({ "do": "container_vitals" });
    assert_eq!(
        helper.run(&about("container_vitals", "idle")).refusal().0,
        "not_running"
    );
    helper.run(&about("container_start", "wren"));
    let one: Value =
        serde_json::from_slice(&helper.run(&about("container_vitals", "wren")).stdout).unwrap();
    let init: u64 = own
        .tool("lxc-info", "wren", &["-pH"])
        .trim()
        .parse()
        .unwrap();
    assert_eq!(
        (&one["init_pid"], &one["frozen"]),
        (&json!(init), &json!(false))
    );
    assert!(one["usage"]["cpu_usage_us"].as_u64() > Some(0), "{one}");
    assert_eq!(one["shares_host_network"], false);
    own.tool("lxc-freeze", "wren", &[]);
    let frozen: Value = serde_json::from_slice(&helper.run(&all).stdout).unwrap();
    assert_eq!(frozen["frozen"], true);
    own.tool("lxc-unfreeze", "wren", &[]);
    let bytes = helper.run(&about("container_disk", "wren")).stdout();
    let bytes: u64 = bytes.split_whitespace().next().unwrap().parse().unwrap();
    let busybox = fs::metadata("/bin/busybox").unwrap().len();
    assert!(bytes > busybox / 2, "{bytes} of {busybox}");
    own.tool("lxc-stop", "wren", &["-k"]);
    own.until_stopped("wren");
    assert_eq!(helper.run(&all).stdout(), "");
}

fn is_monitor(pid: i32) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    is_alive(pid) && String::from_utf8_lossy(&line).contains("lxc-monitor")
}

#[test]
fn a_container_that_cannot_be_entered_is_told_before_anybody_waits() {
    let Some(mut own) = Containers::new() else {
        return;
    };
    own.make("wren");
    let helper = Helper::start(own.lxcpath());
    let (code, message) = helper.run(&container("nobody", "id")).refusal();
    assert_eq!(code, "no_such_container");
    assert!(message.contains("container_list"), "{message}");
    helper.run(&about("container_start", "wren"));
    assert_eq!(helper.run(&container("wren", "echo up")).stdout(), "up\n");
    own.tool("lxc-freeze", "wren", &[]);
    let (code, message) = helper.run(&container("wren", "id")).refusal();
    assert_eq!(code, "frozen");
    assert!(message.contains("unfreeze"), "{message}");
    own.tool("lxc-unfreeze", "wren", &[]);
    assert_eq!(helper.run(&container("wren", "echo up")).stdout(), "up\n");
}

#[test]
fn a_call_in_a_container_that_stops_ends_and_leaves_nothing() {
    let Some(mut own) = Containers::new() else {
        return;
    };
    own.make("wren");
    let helper = Helper::start(own.lxcpath());
    for _ in 0..3 {
        helper.run(&about("container_start", "wren"));
        let marker = marker();
        let call = helper.ask(
            &container(
                "wren",
                &format!("(setsid sleep {marker} &) ; sleep {marker}"),
            ),
            LONG_MS,
        );
        wait_until("it runs", IN_TIME, || marked(&marker).len() >= 2);
        own.tool("lxc-stop", "wren", &["-k"]);
        assert_eq!(
            call.finish().ending,
            json!({ "signalled": { "signal": 9 } })
        );
        assert!(marked(&marker).is_empty());
        assert!(crate::support::machine::call_cgroups(helper.pid()).is_empty());
        own.until_stopped("wren");
    }
}

#[test]
fn nothing_of_the_host_can_be_overwritten_from_inside() {
    let Some(path) = lxcpath() else { return };
    let helper = Helper::start(&path);
    // gatewren's own program runs inside and is reachable there; it must not be the file on disk.
    let line =
        "readlink /proc/$PPID/exe; for f in /proc/$PPID/exe /proc/$PPID/fd/*; do echo x > $f; done";
    let before = fs::metadata(env!("CARGO_BIN_EXE_gatewren"))
        .unwrap()
        .modified()
        .unwrap();
    let finished = helper.run(&container("alpha", line));
    assert!(
        finished.stdout().starts_with("/memfd:gatewren"),
        "{finished:?}"
    );
    let after = fs::metadata(env!("CARGO_BIN_EXE_gatewren"))
        .unwrap()
        .modified()
        .unwrap();
    assert_eq!(before, after);
    assert_eq!(
        helper.run(&container("alpha", "echo well")).stdout(),
        "well\n"
    );
}
