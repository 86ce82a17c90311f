//! A hostile root in a container: output without control characters, without data of the host, and of limited length.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{OpenOptionsExt as _, symlink};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::unistd::mkfifo;
use serde_json::{Value, json};

use crate::support::container::Containers;
use crate::support::helper::Helper;
use crate::support::machine::{SetOnDrop, skip};
use crate::support::server::{Directory, Server, server};

/// The maximum length of a response about a container, whatever the container contains.
const MAX_ANSWER_BYTES: usize = 64 * 1024;

fn server_with(own: &Containers) -> Server {
    server().policy("admin").lxcpath(own.lxcpath()).start()
}

/// Returns whether a character controls a terminal or changes the order of the text.
fn is_obeyed(c: char) -> bool {
    let control = c.is_control() && c != '\n' && c != '\t';
    control || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Collects every text in a value, names included.
fn texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(list) => list.iter().for_each(|entry| texts(entry, found)),
        Value::Object(fields) => {
            for (name, field) in fields {
                found.push(name.clone());
                texts(field, found);
            }
        }
        _ => {}
    }
}

/// Returns a response's result, and asserts that it is short and free of such characters.
fn plain(result: Value) -> Value {
    let mut found = Vec::new();
    texts(&result, &mut found);
    for text in found {
        assert!(!text.contains(is_obeyed), "{text:?}");
    }
    assert!(result.to_string().len() < MAX_ANSWER_BYTES, "it is long");
    result
}

#[test]
fn what_a_container_says_of_itself_is_plain_and_short_and_its_own() {
    let Some(mut own) = Containers::new() else {
        return;
    };
    let root = own.make("alpha");
    let secret = Directory::new();
    fs::write(secret.join("shadow"), "NAME=outside\nID=outside\n").unwrap();
    let server = server_with(&own);
    let file = root.join("etc/os-release");
    let info = || {
        let info = server
            .client()
            .call("container_info", json!({ "container": "alpha" }));
        plain(info.send().result())["structuredContent"].clone()
    };
    fs::remove_file(&file).unwrap();
    fs::write(
        &file,
        "NAME=\"\u{1b}]0;x\u{7}\u{1b}[2Jmine\u{202e}\u{9b}1m\"\nID=mine\n",
    )
    .unwrap();
    assert!(
        info()["os"]["name"].as_str().unwrap().contains("mine"),
        "{}",
        info()
    );
    fs::write(&file, format!("NAME={}\nID=mine\n", "x".repeat(1 << 20))).unwrap();
    info();
    fs::write(&file, [0xff; 4096]).unwrap();
    info();
    for outside in ["/etc/shadow", "../../../../../../../../../../etc/shadow"] {
        fs::remove_file(&file).unwrap();
        symlink(outside, &file).unwrap();
        // Nothing of the host: either the container's own default or nothing.
        let text = info().to_string();
        assert!(!text.contains("root:"), "{text}");
    }
    fs::remove_file(&file).unwrap();
    symlink(secret.join("shadow"), &file).unwrap();
    assert!(!info().to_string().contains("outside"));
}

#[test]
fn a_pipe_or_a_device_in_the_place_of_a_file_is_refused_unopened() {
    const ROUNDS: usize = 50;
    let Some(mut own) = Containers::new() else {
        return;
    };
    let root = own.make("alpha");
    let helper = Helper::start(own.lxcpath());
    let about = |what: &str| json!({ "do": format!("container_{what}"), "container": "alpha" });
    let is_refused = || {
        let (code, message) = helper.run(&about("os_release")).refusal();
        assert_eq!(code, "failed");
        let expected = "cannot read /etc/os-release of the container: not a regular file";
        assert_eq!(message, expected);
    };
    for running in [false, true] {
        if running {
            let started = helper.run(&about("start"));
            assert_eq!(started.ending, json!({ "exited": { "code": 0 } }));
        }
        let file = root.join("etc/os-release");
        fs::remove_file(&file).unwrap();
        mkfifo(&file, Mode::S_IRWXU).unwrap();
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            // This open succeeds only while a reader has the pipe open (fifo(7)).
            let writer = scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let mut options = OpenOptions::new();
                    let options = options.write(true).custom_flags(OFlag::O_NONBLOCK.bits());
                    let refused = options.open(&file).map(drop).unwrap_err();
                    assert_eq!(refused.raw_os_error(), Some(Errno::ENXIO as i32));
                }
            });
            let stop = SetOnDrop(&stop);
            for _ in 0..ROUNDS {
                is_refused();
            }
            drop(stop);
            writer.join().unwrap();
        });
        fs::remove_file(&file).unwrap();
        // A number for local use, without a driver: opening it would fail with another error.
        let device = makedev(60, 0);
        if mknod(&file, SFlag::S_IFCHR, Mode::S_IRWXU, device) == Err(Errno::EPERM) {
            return skip("no device can be made in this container");
        }
        is_refused();
    }
}

#[test]
fn a_folder_that_is_no_container_by_its_name_is_none() {
    let Some(mut own) = Containers::new() else {
        return;
    };
    own.make("alpha");
    for name in [
        "-n",
        "a\u{1b}[2Jb",
        "new\nline",
        "right\u{202e}left",
        "a b",
        "...",
    ] {
        let folder = own.lxcpath().join(name);
        fs::create_dir(&folder).unwrap();
        fs::copy(own.lxcpath().join("alpha/config"), folder.join("config")).unwrap();
    }
    let server = server_with(&own);
    let client = server.client();
    let listed = plain(client.call("container_list", json!({})).send().result());
    let listed = &listed["structuredContent"]["containers"];
    let names: Vec<&str> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["alpha"], "{listed}");
    plain(
        client
            .call("state_get", json!({ "pointer": "/public/packageData" }))
            .send()
            .result(),
    );
    for name in ["-n", "../alpha", "a\u{1b}[2Jb", "new\nline", "."] {
        for tool in ["container_info", "container_start"] {
            let refused = client.call(tool, json!({ "container": name })).send();
            assert_eq!(refused.result()["isError"], true, "{tool} {name:?}");
        }
    }
}

/// An agent that may only operate once replaced a program of a container. A reading tool then ran it as root there.
#[test]
fn an_operator_places_no_program_in_a_container() {
    let Some(mut own) = Containers::new() else {
        return;
    };
    let root = own.make("alpha");
    fs::create_dir_all(root.join("bin")).unwrap();
    let server = server().policy("operate").lxcpath(own.lxcpath()).start();
    let client = server.client();
    let started = client.call("container_start", json!({ "container": "alpha" }));
    assert_eq!(started.send().result()["isError"], false);
    let write = json!({
        "container": "alpha", "path": "/bin/journalctl", "mode": "0755",
        "text": "#!/bin/sh\ntouch /tmp/was-run\n"
    });
    let denied = client.call("container_file_write", write).send();
    assert_eq!(denied.verdict(), (200, -32_602), "{}", denied.body);
    assert!(!root.join("bin/journalctl").exists());
    let logs = json!({ "container": "alpha", "limit": 1 });
    client.call("logs_query", logs).send();
    assert!(!root.join("tmp/was-run").exists());
    let inside = json!({ "container": "alpha", "command": "touch /tmp/was-run" });
    let proposed = client.call("container_shell", inside).send().data();
    assert_eq!(proposed["status"], "pending", "{proposed}");
    assert!(!root.join("tmp/was-run").exists());
}

#[test]
fn what_commands_print_is_shown_and_not_obeyed_and_cut() {
    let server = server().policy("admin").start();
    let client = server.client();
    let line = r"printf '\033[2J\033]0;title\007\302\233 1m\342\200\256 red\r'; head -c 50000000 /dev/zero | tr '\0' x";
    let answer = client
        .call("system_shell", json!({ "command": line, "timeout_s": 300 }))
        .send()
        .result();
    let text = answer["content"][0]["text"].as_str().unwrap();
    assert!(
        !text.contains(is_obeyed),
        "{:?}",
        text.chars().filter(|c| is_obeyed(*c)).collect::<Vec<_>>()
    );
    assert!(text.contains("^[[2J"), "it is shown");
    assert!(
        answer.to_string().len() < 1 << 20,
        "{}",
        answer.to_string().len()
    );
}
