//! An attacker in place of the front: the helper does only what helper.toml allows, and keeps serving.

use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io::{IoSlice, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use serde_json::{Value, json};

use crate::support::attacked_helper::{
    AttackedHelper, FRAME_BYTES, HOST_SHELL, NOTHING, deeds, descriptors, everything, request,
};
use crate::support::container::Containers;
use crate::support::cores::core;
use crate::support::helper::{Helper, LONG_MS, container, frame, host};
use crate::support::machine::{IN_TIME, is_root, skip, wait_until};
use crate::support::namespace::NetworkNamespace;
use crate::support::rng::Rng;
use crate::support::server::Directory;

/// The number of random frames, unless `GATEWREN_HOSTILE_FRAMES` is set; `GATEWREN_SEED` repeats them.
const FRAMES: usize = 10_000;

#[test]
fn what_is_switched_off_is_refused_to_everybody() {
    let attacked = AttackedHelper::new(&NOTHING.replace("containers = []", "containers = [\"*\"]"));
    for operation in everything(&attacked.trace()).iter().skip(1) {
        let (code, message) = attacked.helper.run(operation).refusal();
        assert_eq!(code, "forbidden", "{operation}: {message}");
    }
    attacked.assert_unharmed();
}

/// Returns the class of an operation in helper.toml, with the value that enables it.
fn class(operation: &Value) -> (&'static str, &'static str) {
    match operation["do"].as_str().unwrap() {
        // The class of the operation that it starts.
        "job_start" => class(&operation["operation"]),
        "host_command" => ("host_shell", "\"full\""),
        "container_command" => ("container_shell", "\"full\""),
        "container_start" | "container_stop" | "container_unit_change" => ("lxc_writes", "true"),
        "container_create" => ("lxc_manage", "\"on\""),
        "container_deed" => {
            let deed = &operation["deed"]["what"];
            let known = deeds();
            let (class, _) = known
                .iter()
                .find(|(_, known)| known["what"] == *deed)
                .unwrap();
            match *class {
                "lxc_manage" | "container_files" => (class, "\"on\""),
                class => (class, "true"),
            }
        }
        "host_log" | "host_boots" | "host_uptime_history" => ("host_logs", "true"),
        "unit_change" => ("units", "\"on\""),
        "restart" | "shutdown" | "cancel_shutdown" => ("power", "\"on\""),
        "host_repair" => ("storage", "\"on\""),
        "disk_cleanup" => ("cleanup", "\"on\""),
        "wifi" if operation["deed"]["what"] == "status" => ("host_reads", "true"),
        "host_tunnel_up" | "host_tunnel_down" | "wifi" | "set_name_servers" => {
            ("network", "\"on\"")
        }
        "ssh_keys" => ("ssh_keys", "[\"/nonexistent/.ssh/authorized_keys\"]"),
        "host_setting" => ("host_settings", "\"on\""),
        "backup" => match operation["deed"] {
            ref deed if deed["what"] == "delete" || deed.get("keep").is_some() => {
                ("backup", "\"delete\"")
            }
            _ => ("backup", "\"on\""),
        },
        "mail" => ("mail_to", "[\"root\"]"),
        "firmware" => match operation["deed"]["what"].as_str().unwrap() {
            "refresh" | "apply" => ("updates", "\"apply\""),
            _ => ("updates", "\"read-only\""),
        },
        "host_file_write" => ("host_file_writes", "[\"/\"]"),
        looks if looks.starts_with("host_file_") => ("host_file_reads", "[\"/\"]"),
        looks if looks.starts_with("host_") => ("host_reads", "true"),
        "update_check" | "update_history" => ("updates", "\"read-only\""),
        "update_refresh" | "update_apply" => ("updates", "\"apply\""),
        looks if looks.starts_with("container_") => ("lxc_reads", "true"),
        other => panic!("{other} has no class"),
    }
}

#[test]
fn each_operation_is_refused_when_its_class_is_off_and_served_when_it_is_on() {
    let _core = core();
    // Without a system bus, so that no test can shut down the host.
    let machine = NetworkNamespace::new();
    if machine.is_none() && is_root() {
        return;
    }
    let open = NOTHING.replace("containers = []", "containers = [\"*\"]");
    let all = everything(&host("true"));
    let classes: BTreeSet<_> = all.iter().skip(1).map(class).collect();
    assert_eq!(classes.len(), 22);
    for (key, on) in classes {
        let lines = open.lines().map(|line| match line.split_once(" = ") {
            Some((name, _)) if name == key => format!("{key} = {on}\n"),
            _ => format!("{line}\n"),
        });
        let attacked = AttackedHelper::on(machine.as_ref(), &lines.collect::<String>());
        let mut bounds = attacked.helper.ask(&json!({ "do": "bounds" }), LONG_MS);
        let said = String::from_utf8(bounds.output()).unwrap();
        // The values that switch on what another value does too, and more.
        let is_wider = on.contains("apply") || on.contains("delete");
        let more = match on {
            "\"apply\"" => ",\"updates_apply\"",
            "\"delete\"" => ",\"backup_delete\"",
            _ => "",
        };
        assert_eq!(
            said,
            format!("[\"{key}\"{more}]\n"),
            "what the front is told"
        );
        drop(bounds);
        for operation in all.iter().skip(1) {
            let asked = attacked.helper.ask(operation, LONG_MS);
            if operation["do"] == "container_events" {
                // It would never end.
                asked.cancel();
            }
            let (code, message) = asked.finish().refusal();
            let (its_key, its_word) = class(operation);
            let is_on = its_key == key && (its_word == on || is_wider);
            assert_eq!(code != "forbidden", is_on, "{key}: {operation}: {message}");
            if !is_on {
                let named = match its_word {
                    "\"apply\"" => "updates = \"apply\"",
                    "\"delete\"" => "backup = \"delete\"",
                    _ => its_key,
                };
                let file = format!("{named} is off in /etc/gatewren/helper.toml");
                assert!(message.contains(&file), "{message}");
            }
        }
        assert!(attacked.serves());
    }
}

#[test]
fn commands_on_the_host_are_off_unless_the_file_switches_them_on() {
    let file_is_absent = !Path::new("/etc/gatewren/helper.toml").exists();
    // The file also limits a trial.
    let attacked = AttackedHelper::new("");
    let refused = |helper: &Helper| helper.run(&attacked.trace()).refusal();
    let (code, message) = refused(&attacked.helper);
    assert_eq!(code, "forbidden", "{message}");
    let file = "host_shell is off in /etc/gatewren/helper.toml";
    assert!(message.contains(file), "{message}");
    if file_is_absent {
        let lxcpath = Path::new("/nonexistent");
        let installed = Helper::start_installed(lxcpath);
        assert_eq!(refused(&installed), (code, message));
        attacked.assert_unharmed();
        let trial = Helper::start(lxcpath);
        assert_eq!(refused(&trial).0, "", "a trial without a file");
        assert!(attacked.canary.exists());
    } else {
        skip("this machine has a helper.toml, which bounds everything");
        attacked.assert_unharmed();
    }
}

#[test]
fn a_container_that_is_not_in_the_list_is_answered_as_one_that_does_not_exist() {
    let attacked = AttackedHelper::new(
        "containers = [\"web\", \"absent\"]\nlxc_manage = \"on\"\ncontainer_files = \"on\"\nupdates = \"apply\"\n",
    );
    // Without root or LXC, a listed container gets an error about what is missing.
    let able = is_root() && Path::new("/usr/bin/lxc-attach").exists();
    let absent = if able { "absent" } else { "other" };
    for operation in everything(&attacked.trace()) {
        if operation.get("container").is_none() {
            continue;
        }
        let answer = |name: &str| {
            let mut operation = operation.clone();
            operation["container"] = json!(name);
            let (code, message) = attacked.helper.run(&operation).refusal();
            (code, message.replace(name, "NAME"))
        };
        let hidden = answer("vault");
        assert_eq!(hidden, answer(absent), "{operation}");
        assert_eq!(hidden.0, "no_such_container", "{operation}");
    }
    attacked.assert_unharmed();
}

#[test]
fn each_word_of_the_policy_holds_for_a_container_that_runs() {
    let Some(mut own) = Containers::new() else {
        return;
    };
    own.make("wren");
    let policy = own.lxcpath().join("policy.toml");
    let asked = |text: &str| {
        fs::write(&policy, text).unwrap();
        fs::set_permissions(&policy, Permissions::from_mode(0o644)).unwrap();
        let helper = Helper::start_as(own.lxcpath(), |command| {
            command.arg("--policy").arg(&policy);
        });
        let about = |what: &str| json!({ "do": what, "container": "wren" });
        // In this order: the last one needs a running container.
        let asked = [
            about("container_start"),
            about("container_info"),
            container("wren", "id"),
        ];
        asked.map(|operation| {
            // Starting a running container may fail, but not because of the policy.
            let (code, _) = helper.run(&operation).refusal();
            if code.is_empty() {
                "ok".to_owned()
            } else {
                code
            }
        })
    };
    assert_eq!(asked(""), ["ok"; 3]);
    for (text, expected) in [
        ("lxc_writes = false", ["forbidden", "ok", "ok"]),
        ("lxc_reads = false", ["ok", "forbidden", "ok"]),
        ("container_shell = \"off\"", ["ok", "ok", "forbidden"]),
        ("host_shell = \"off\"", ["ok"; 3]),
        (
            "containers = [\"w\", \"wrens\", \"W*\"]",
            ["no_such_container"; 3],
        ),
    ] {
        assert_eq!(asked(text), expected, "{text}");
    }
}

#[test]
fn no_name_leads_out_of_the_containers() {
    let attacked = AttackedHelper::new("");
    let long = "x".repeat(65);
    let names = [
        "",
        ".",
        "..",
        "../outside",
        "../../etc",
        "web/../vault",
        "a/b",
        "/etc",
        "./web",
        ".link",
        "-n",
        "-P",
        "--help",
        "web\0",
        "\0",
        "web\n",
        "\nweb",
        "web ",
        " web",
        "we b",
        "web;id",
        "$(id)",
        "`id`",
        "*",
        "we?",
        "web%2f..",
        "ｗｅｂ",
        "wéb",
        "web\u{202e}",
        "🐦",
        "_web",
        "%s%n",
        "web\\..\\x",
        &long,
    ];
    for operation in everything(&attacked.trace()) {
        if operation.get("container").is_none() {
            continue;
        }
        for name in names {
            let mut operation = operation.clone();
            operation["container"] = json!(name);
            let answer = attacked.send(&frame(request(&operation).to_string()));
            assert_eq!(answer, b"", "{operation}");
        }
    }
    let very_long = json!({ "do": "container_start", "container": "x".repeat(200_000) });
    assert_eq!(attacked.send(&frame(request(&very_long).to_string())), b"");
    attacked.assert_unharmed();
}

/// Returns bytes that are not a frame of a request, or hold no request, or more than one.
fn no_frames(good: &str) -> Vec<Vec<u8>> {
    let most = usize::try_from(FRAME_BYTES).unwrap();
    let longer = [&[1], &(FRAME_BYTES + 1).to_be_bytes()[..], &[b' '; 100]].concat();
    let bytes = good.as_bytes();
    let utf16 = good.encode_utf16().flat_map(u16::to_le_bytes);
    let mut bad = vec![
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
        vec![0; 64],
        vec![0xff; 64],
        vec![1, 0, 0, 0, 0],
        longer,
        [&[1, 0xff, 0xff, 0xff, 0xff], &[b'{'; 100][..]].concat(),
        frame(vec![b' '; most]),
        frame(vec![b'['; most]),
        frame("{\"a\":".repeat(most / 5)),
        frame(utf16.collect::<Vec<u8>>()),
        frame([b"\xef\xbb\xbf", bytes].concat()),
        frame([bytes, b"\0"].concat()),
        frame([bytes, bytes].concat()),
        frame(good.replace("hostile", "\\ud800")),
        frame([&bytes[..20], b"\xff\xfe", &bytes[20..]].concat()),
        frame(good.replacen('{', "{\"reference\":\"a\",", 1)),
        // A second request after a valid one, and parts of a second one.
        [
            frame(request(&json!({ "do": "ping" })).to_string()),
            frame(good),
        ]
        .concat(),
        [frame(good), vec![0]].concat(),
    ];
    bad.extend((0..=255).filter(|kind| *kind != 1).map(|kind| {
        let mut frame = frame(good);
        frame[0] = kind;
        frame
    }));
    let shapes = [
        "null",
        "true",
        "7",
        "\"ping\"",
        "[]",
        "{}",
        "[{\"do\":\"ping\"}]",
    ];
    bad.extend(shapes.map(frame));
    bad
}

/// Returns invalid parts of a request, and their places.
fn wrong_parts() -> Vec<(&'static str, Value)> {
    let command =
        |program: Value| json!({ "do": "host_command", "command": { "program": program } });
    let limits =
        |timeout: Value| json!({ "timeout_ms": timeout, "output_bytes": 1, "processes": 1 });
    vec![
        ("operation", json!("ping")),
        ("operation", json!({ "do": "shell_everything" })),
        ("operation", json!({ "do": ["ping"] })),
        ("operation", json!({})),
        ("operation", json!({ "do": "host_command" })),
        ("operation", json!({ "do": "host_command", "command": {} })),
        ("operation", command(json!({ "shell": ["id"] }))),
        (
            "operation",
            command(json!({ "shell": "id", "argv": ["id"] })),
        ),
        ("operation", command(json!({ "exec": "id" }))),
        (
            "operation",
            json!({ "do": "container_stop", "container": "web", "grace_s": -1 }),
        ),
        (
            "operation",
            json!({ "do": "container_start", "container": ["web"] }),
        ),
        (
            "operation",
            json!({ "do": "ping", "command": { "program": { "shell": "id" } } }),
        ),
        ("limits", json!({})),
        ("limits", json!(null)),
        ("limits", limits(json!(-1))),
        ("limits", limits(json!(1e30))),
        (
            "limits",
            json!({ "timeout_ms": 1, "output_bytes": 1, "processes": 1, "more": 1 }),
        ),
        ("reference", json!(null)),
        ("reference", json!({ "a": 1 })),
        ("uid", json!(0)),
    ]
}

/// Returns invalid deeds.
fn wrong_deeds() -> Vec<(&'static str, Value)> {
    let deed = |deed: Value| json!({ "do": "container_deed", "container": "web", "deed": deed });
    let wrong = [
        json!({ "what": "shell" }),
        json!({ "what": "freeze", "force": true }),
        json!({ "what": "restore", "snapshot": "ALL" }),
        json!({ "what": "restore", "snapshot": "snap0/../../web" }),
        json!({ "what": "forget", "snapshot": "-d" }),
        json!({ "what": "clone", "to": "../vault" }),
        json!({ "what": "clone", "to": "-p/tmp" }),
        json!({ "what": "configure", "changes": { "hook": "/x" } }),
        json!({ "what": "read_file", "path": "etc", "offset": 0, "bytes": 1 }),
        json!({ "what": "log", "log": "/etc/shadow", "bytes": 1 }),
    ];
    let create = json!({ "do": "container_create", "name": "-t", "template": "busybox" });
    let all = wrong.map(deed).into_iter().chain([create]);
    all.map(|operation| ("operation", operation)).collect()
}

#[test]
fn what_is_no_request_is_not_answered() {
    let attacked = AttackedHelper::new("");
    let good = request(&attacked.trace());
    let mut bad = no_frames(&good.to_string());
    let wrong = wrong_parts().into_iter().chain(wrong_deeds());
    bad.extend(wrong.map(|(at, wrong)| {
        let mut request = good.clone();
        request[at] = wrong;
        frame(request.to_string())
    }));
    for bytes in bad {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned();
        assert_eq!(attacked.send(&bytes), b"", "{shown}");
    }
    attacked.assert_unharmed();
}

#[test]
fn half_a_request_is_none_wherever_it_is_cut() {
    let attacked = AttackedHelper::new(HOST_SHELL);
    let whole = frame(request(&attacked.trace()).to_string());
    for length in 0..whole.len() {
        assert_eq!(attacked.send(&whole[..length]), b"", "{length} bytes");
    }
    attacked.assert_unharmed();
    // The complete request creates the canary, so its absence proves something.
    let done = attacked.helper.run(&attacked.trace());
    assert_eq!(done.ending, json!({ "exited": { "code": 0 } }));
    assert!(attacked.canary.exists());
}

#[test]
fn a_command_that_cannot_be_one_is_not_begun() {
    let attacked = AttackedHelper::new(HOST_SHELL);
    let trace = attacked.trace();
    let argv = |argv: Value| json!({ "argv": argv });
    let touch = |name: &str| json!(["touch", attacked.canary, name]);
    let nul = format!("touch {}\0", attacked.canary.display());
    for (at, value) in [
        ("program", argv(json!([]))),
        ("program", argv(json!([""]))),
        ("program", argv(touch("a\0b"))),
        ("program", argv(json!(vec!["x"; 5000]))),
        ("program", json!({ "shell": nul })),
        ("program", json!({ "shell": "" })),
        ("user", json!("")),
        ("user", json!("root:x")),
        ("user", json!("root\n")),
        ("user", json!("../root")),
        ("user", json!("-1")),
        ("user", json!("4294967295")),
        ("user", json!("4294967296")),
        ("cwd", json!("")),
        ("cwd", json!("tmp")),
        ("cwd", json!("../../tmp")),
        ("cwd", json!("/tmp\0")),
        ("cwd", json!(format!("/{}", "x".repeat(5000)))),
        (
            "cwd",
            json!(
                "/nonexistent/\u{1b}[2J\n2026-01-01T00:00:00Z  INFO forged operation=\"host_command\""
            ),
        ),
        ("env", json!({ "": "x" })),
        ("env", json!({ "A=B": "x" })),
        ("env", json!({ "LD PRELOAD": "x" })),
        ("env", json!({ "A\0": "x" })),
        ("env", json!({ "A": "x\0" })),
    ] {
        let mut operation = trace.clone();
        operation["command"][at] = value;
        let (code, message) = attacked.helper.run(&operation).refusal();
        assert_eq!(code, "bad_command", "{operation}: {message}");
    }
    // One line per operation, whatever text it contains.
    for line in attacked.log().lines() {
        assert!(
            line.starts_with("20") && !line.contains('\u{1b}'),
            "{line:?}"
        );
        assert!(
            !line
                .split_once("Z ")
                .unwrap()
                .1
                .trim_start()
                .starts_with("INFO forged"),
            "{line}"
        );
    }
    attacked.assert_unharmed();
}

#[test]
fn a_client_of_another_user_gets_nothing() {
    if !is_root() {
        return skip("becoming another user needs root");
    }
    if Command::new("python3").arg("--version").output().is_err() {
        return skip("there is no python3 to be the client of another user");
    }
    let attacked = AttackedHelper::new("");
    // The socket's mode already keeps other users out.
    fs::set_permissions(attacked.helper.socket(), Permissions::from_mode(0o666)).unwrap();
    let script = "import os, socket, sys\n\
                  s = socket.socket(socket.AF_UNIX)\n\
                  s.connect(sys.argv[1])\n\
                  got = b''\n\
                  try:\n\
                  \x20   s.sendall(sys.stdin.buffer.read())\n\
                  \x20   got = s.recv(1000)\n\
                  except (BrokenPipeError, ConnectionResetError):\n\
                  \x20   pass\n\
                  print(os.geteuid(), len(got))\n";
    let ask = |uid: u32, operation: &Value| {
        let mut client = Command::new("python3");
        client
            .args(["-c", script])
            .arg(attacked.helper.socket())
            .uid(uid)
            .gid(uid);
        client
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut client = client.spawn().unwrap();
        let bytes = frame(request(operation).to_string());
        client.stdin.take().unwrap().write_all(&bytes).unwrap();
        let output = client.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    for uid in [65_534, 1] {
        for operation in [attacked.trace(), json!({ "do": "ping" })] {
            assert_eq!(ask(uid, &operation), format!("{uid} 0\n"));
        }
    }
    let log = attacked.log();
    for uid in ["65534", "1"] {
        assert!(log.contains(&format!("uid={uid} ")), "{log}");
    }
    attacked.assert_unharmed();
    // The same client gets a response as the right user.
    assert_ne!(ask(0, &json!({ "do": "ping" })), "0 0\n");
}

#[test]
fn those_who_say_nothing_or_hand_over_descriptors_hold_up_nobody_for_long() {
    let attacked = AttackedHelper::new(NOTHING);
    let before = descriptors(attacked.helper.pid());
    let half = [&[1], &FRAME_BYTES.to_be_bytes()[..], &[b' '; 1000]].concat();
    let mut waiting = Vec::new();
    // The maximum number of connections sends nearly all of the longest frame; the others wait to be accepted.
    for number in 0..150 {
        let mut stream = attacked.helper.connect();
        // The helper may already have closed this one.
        let _ = stream.write_all(&half);
        if number < 80 {
            let _ = stream.write_all(&" ".repeat(250_000).into_bytes());
        }
        hand_over(&stream, 50);
        waiting.push(stream);
    }
    // They are disconnected one after the other, and then there is room.
    assert!(attacked.serves());
    drop(waiting);
    wait_until("what was handed over is closed", IN_TIME, || {
        descriptors(attacked.helper.pid()) <= before
    });
    attacked.assert_unharmed();
}

/// Sends some bytes with this number of open files.
fn hand_over(stream: &UnixStream, count: usize) {
    let file = File::open("/dev/null").unwrap();
    let files = vec![file.as_raw_fd(); count];
    let rights = [ControlMessage::ScmRights(&files)];
    let bytes = [IoSlice::new(b"  ")];
    // The helper may have closed the connection already.
    let _ = sendmsg::<()>(
        stream.as_raw_fd(),
        &bytes,
        &rights,
        MsgFlags::MSG_NOSIGNAL,
        None,
    );
}

#[test]
fn nobody_fills_the_log() {
    let attacked = AttackedHelper::new(NOTHING);
    let before = attacked.log().len();
    let unknown = json!({ "do": "x".repeat(100_000) });
    for _ in 0..200 {
        assert_eq!(attacked.send(&frame(request(&unknown).to_string())), b"");
        assert_eq!(
            attacked.helper.run(&attacked.trace()).refusal().0,
            "forbidden"
        );
    }
    let log = attacked.log();
    // The limit for one minute, or for some minutes on a slow machine; without the limit there would be 200 of each.
    let of = |what: &str| log.lines().filter(|line| line.contains(what)).count();
    assert!(
        of("no valid request") > 0 && of("host_command") > 0,
        "{log}"
    );
    assert!(log.len() - before < 60_000, "{} bytes", log.len());
    attacked.assert_unharmed();
}

/// Returns a random request: noise, noise with a frame's header, or a valid request with damaged parts.
fn random_frame(rng: &mut Rng, good: &[Vec<u8>]) -> Vec<u8> {
    let noise = |rng: &mut Rng, most: usize| -> Vec<u8> {
        let length = rng.below(most);
        (0..length).map(|_| rng.next().to_be_bytes()[0]).collect()
    };
    match rng.below(8) {
        0 => noise(rng, 64),
        1 => frame(noise(rng, 300)),
        2 => {
            let mut bytes = frame(noise(rng, 40));
            bytes[1 + rng.below(4)] = rng.next().to_be_bytes()[0];
            bytes
        }
        3 => {
            let most = rng.pick(&[100, 10_000, 300_000]);
            frame(vec![rng.pick(b"[{\"0 \\"); rng.below(most)])
        }
        _ => {
            let mut payload = good[rng.below(good.len())][5..].to_vec();
            for _ in 0..rng.below(4) {
                damage(rng, &mut payload, good);
            }
            frame(payload)
        }
    }
}

fn damage(rng: &mut Rng, bytes: &mut Vec<u8>, good: &[Vec<u8>]) {
    let at = rng.below(bytes.len() + 1);
    match rng.below(6) {
        0 => bytes.truncate(at),
        1 => bytes.insert(at, rng.next().to_be_bytes()[0]),
        2 => bytes.insert(at, rng.pick(b"{}[]\",:\\/.-\0 ")),
        3 if at < bytes.len() => bytes[at] ^= 1 << rng.below(8),
        4 if at < bytes.len() => drop(bytes.remove(at)),
        _ => {
            let other = &good[rng.below(good.len())][5..];
            let from = rng.below(other.len());
            bytes.truncate(at);
            bytes.extend(&other[from..]);
        }
    }
}

/// Returns whether a response is empty, an error, or that of a ping.
fn gives_nothing(mut answer: &[u8]) -> bool {
    let mut kinds = Vec::new();
    let mut last = Value::Null;
    while let Some((&[kind, a, b, c, d], rest)) = answer.split_first_chunk::<5>() {
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        let (payload, rest) = rest.split_at(length.min(rest.len()));
        kinds.push(kind);
        last = serde_json::from_slice(payload).unwrap_or_default();
        answer = rest;
    }
    match kinds[..] {
        // Sent to a client that does not read: it may be lost.
        [] | [2] => true,
        [2, 5] => last.get("refused").is_some() || last == json!({ "exited": { "code": 0 } }),
        _ => false,
    }
}

#[test]
fn frames_of_chance_get_nothing() {
    let seed = Rng::seed("GATEWREN_SEED");
    println!("GATEWREN_SEED={seed}");
    let frames = std::env::var("GATEWREN_HOSTILE_FRAMES");
    let frames = frames.map_or(FRAMES, |text| text.parse().unwrap());
    let mut rng = Rng::new(seed);
    let attacked = AttackedHelper::new(NOTHING);
    let good: Vec<Vec<u8>> = everything(&attacked.trace())
        .iter()
        .map(|operation| frame(request(operation).to_string()))
        .collect();
    let before = descriptors(attacked.helper.pid());
    let mut open = Vec::new();
    let mut answered = 0;
    for number in 0..frames {
        let bytes = random_frame(&mut rng, &good);
        if rng.one_in(100) {
            // Some clients send their bytes and stay connected, a few at a time.
            let mut stream = attacked.helper.connect();
            let _ = stream.write_all(&bytes);
            open.push(stream);
            open.drain(..open.len().saturating_sub(8));
            continue;
        }
        let answer = attacked.send(&bytes);
        answered += usize::from(!answer.is_empty());
        let sent = String::from_utf8_lossy(&bytes);
        let got = String::from_utf8_lossy(&answer);
        assert!(
            gives_nothing(&answer),
            "frame {number}: {sent:.300}\n{got:.300}"
        );
    }
    drop(open);
    println!("{frames} frames, {answered} of them answered");
    assert!(
        answered * 1000 > frames,
        "too few come as far as the owner's file"
    );
    wait_until("what was opened is closed", IN_TIME, || {
        descriptors(attacked.helper.pid()) <= before
    });
    attacked.assert_unharmed();
}

#[test]
fn a_policy_that_others_could_replace_is_none() {
    let home = Directory::new();
    fs::set_permissions(&home.0, Permissions::from_mode(0o755)).unwrap();
    let folder = home.join("etc");
    fs::create_dir(&folder).unwrap();
    let file = folder.join("helper.toml");
    fs::write(&file, NOTHING).unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    let start = |file: &Path| {
        let mut helper = Command::new(env!("CARGO_BIN_EXE_gatewren"));
        helper
            .args(["helper", "--lxcpath", "/nonexistent", "--policy"])
            .arg(file);
        // A valid socket, so that only the policy prevents the start.
        let _ = fs::remove_file(home.join("socket"));
        let socket = UnixListener::bind(home.join("socket")).unwrap();
        helper
            .args(["--socket-fd", "0"])
            .stdin(OwnedFd::from(socket));
        let output = helper.output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
    let said = start(&file);
    assert!(
        said.contains(&format!("run: chmod go-w {}", folder.display())),
        "{said}"
    );
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    if is_root() {
        chown(&folder, Some(65_534), None).unwrap();
        let said = start(&file);
        assert!(
            said.contains(&format!("run: chown root {}", folder.display())),
            "{said}"
        );
    }
    fs::remove_file(&file).unwrap();
    assert!(
        start(&file).contains("helper.toml"),
        "one that was named must be there"
    );
}
