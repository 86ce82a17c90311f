//! A demo: every page has content and names the demo, and nothing of the host is reached.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::owner_page::{form, get, proof, set_up, tell};
use crate::support::client::Client;
use crate::support::machine::{install_program, is_root, runs, skip};
use crate::support::server::{Directory, Server, server};

/// The user and group "nobody".
const NOBODY: u32 = 65_534;

const NOTICE: &str = "Demo: nothing here is real.";

/// The words of a page without content.
const EMPTY: [&str; 8] = [
    "There are no containers",
    "There are no new alerts",
    "There are no agents yet",
    "The log contains no changes",
    "The log is empty",
    "No calls match",
    "No changes are pending",
    "Not available:",
];

fn demo(home: &Directory) -> Server {
    server().directory(&home.0).option("--demo").start()
}

fn owner(server: &Server, client: &Client) -> String {
    set_up(client, server.said["owner_code"].as_str().unwrap())
}

#[test]
fn every_page_of_a_demo_has_content_and_says_that_nothing_is_real() {
    let home = Directory::new();
    let server = demo(&home);
    assert_eq!(server.said["demo"], true);
    let client = server.client();
    let cookie = owner(&server, &client);
    let mut paths: Vec<String> = ["home", "inbox", "containers", "agents", "activity"]
        .map(|page| format!("/owner/{page}"))
        .into();
    let links = |path: &str, prefix: &str| -> Vec<String> {
        let page = get(&client, path, &cookie).body;
        let found = page.split("href=\"").skip(1);
        let found = found.filter_map(|rest| rest.split('"').next());
        let found = found.filter(|link| link.starts_with(prefix) && !link.contains("/new"));
        found.map(str::to_owned).collect()
    };
    let containers = links("/owner/containers", "/owner/containers/");
    assert_eq!(containers.len(), 9, "{containers:?}");
    paths.extend(containers);
    paths.extend(
        links("/owner/agents", "/owner/agents/agent_")
            .into_iter()
            .take(4),
    );
    for path in &paths {
        let page = get(&client, path, &cookie);
        assert_eq!(page.status, 200, "{path}");
        assert!(page.body.contains(NOTICE), "{path}");
        for words in EMPTY {
            assert!(!page.body.contains(words), "{path}: {words}");
        }
    }
    for container in ["nextcloud", "jellyfin", "pihole", "homeassistant", "gitea"] {
        let page = get(&client, &format!("/owner/containers/{container}"), &cookie).body;
        assert!(!page.contains("None."), "{container}");
    }
    let inbox = get(&client, "/owner/inbox", &cookie).body;
    assert_eq!(inbox.matches("<article").count(), 5);
    assert_eq!(inbox.matches("class=\"request loses").count(), 1);
    let first = get(&client, "/owner/home", &cookie).body;
    assert!(first.matches("class=\"area\"").count() >= 5, "{first}");
    let verified = tell(&home, &["audit", "verify"]).unwrap();
    assert_eq!(verified["intact"], true, "{verified}");
}

#[test]
fn a_demo_tells_clients_so_and_runs_nothing() {
    let home = Directory::new();
    let server = demo(&home);
    let client = server.client();
    let met = client.modern("server/discover").send().json();
    let instructions = met["result"]["instructions"].as_str().unwrap();
    assert!(instructions.contains("Demo: nothing here is real"), "{met}");
    assert!(met.to_string().contains("gatewren (demo)"), "{met}");
    let call = |tool: &str, arguments: Value| client.call(tool, arguments).send().json();
    for (tool, arguments) in [
        ("container_list", json!({})),
        ("container_start", json!({ "container": "gitea" })),
        ("server_info", json!({})),
        ("server_metrics", json!({})),
    ] {
        let answer = call(tool, arguments);
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        assert!(answer.to_string().contains("This is a demo"), "{answer}");
    }
    let status = json!({ "pointer": "/public/packageData/gitea/status" });
    let answer = call("state_get", status);
    assert_eq!(answer["result"]["structuredContent"]["value"], "stopped");

    let cookie = owner(&server, &client);
    let page = get(&client, "/owner/containers/gitea", &cookie);
    let proof = proof(&page);
    let fields = [("proof", proof.as_str()), ("do", "start")];
    let start = form(&client, "/owner/containers/gitea", &fields);
    let answer = start.header("cookie", &cookie).send();
    assert!(answer.body.contains("this is a demo"), "{answer:?}");
}

#[test]
fn the_directories_of_demos_and_of_others_are_kept_apart() {
    let run = |home: &Directory, options: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
        command.args(["try", "--json", "--listen", "127.0.0.1:0", "--dir"]);
        let output = command.arg(&home.0).args(options).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let home = Directory::new();
    let first = demo(&home);
    let authority = fs::read(home.join("tls/ca.pem")).unwrap();
    drop(first);
    let refused = run(&home, &[]);
    assert!(refused.contains("invented state"), "{refused}");
    // Each start begins again, and clients still trust it.
    let second = demo(&home);
    let client = second.client();
    owner(&second, &client);
    assert_eq!(fs::read(home.join("tls/ca.pem")).unwrap(), authority);

    let other = Directory::new();
    drop(server().directory(&other.0).start());
    let vault = fs::read(other.join("vault.db")).unwrap();
    let refused = run(&other, &["--demo"]);
    assert!(refused.contains("no demo"), "{refused}");
    assert_eq!(fs::read(other.join("vault.db")).unwrap(), vault);
}

/// The calls of the kernel that start a program or change a file.
const TRACED: &str = "trace=execve,execveat,?open,openat,openat2,?creat,?mkdir,mkdirat,?unlink,unlinkat,?rename,renameat,\
                      renameat2,connect";

#[test]
fn a_demo_without_root_starts_nothing_and_writes_only_in_its_directory() {
    if !runs(&["strace", "-V"]) {
        return skip("strace is not installed");
    }
    let home = Directory::new();
    let (state, trace) = (home.join("state"), home.join("trace"));
    let program = home.join("gatewren");
    install_program(Path::new(env!("CARGO_BIN_EXE_gatewren")), &program);
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-s", "300", "-e", TRACED, "-o"]);
    command.arg(&trace).arg(&program);
    command.args([
        "try",
        "--demo",
        "--json",
        "--listen",
        "127.0.0.1:0",
        "--dir",
    ]);
    command
        .arg(&state)
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    if is_root() {
        std::os::unix::fs::chown(&home.0, Some(NOBODY), Some(NOBODY)).unwrap();
        command.uid(NOBODY).gid(NOBODY);
    }
    let mut running = command.spawn().unwrap();
    let mut line = String::new();
    let mut output = BufReader::new(running.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    let said: Value = serde_json::from_str(&line).unwrap();
    let pid = said["pid"].as_u64().unwrap().to_string();
    assert!(Command::new("kill").arg(&pid).status().unwrap().success());
    running.wait().unwrap();

    let trace = fs::read_to_string(&trace).unwrap();
    let inside = state.to_str().unwrap();
    let started = trace.matches("execve(").count() + trace.matches("execveat(").count();
    assert_eq!(started, 1, "it starts no program:\n{trace}");
    let writes = |line: &&str| {
        let opens = line.contains("open") || line.contains("creat(");
        !opens
            || ["O_WRONLY", "O_RDWR", "O_CREAT", "creat("]
                .iter()
                .any(|word| line.contains(word))
    };
    let written = trace.lines().filter(|line| line.contains('"'));
    let written = written
        .filter(|line| !line.contains("execve("))
        .filter(writes);
    for line in written {
        let is_known = line.contains(inside)
            || line.contains("/dev/null")
            // The socket that answers instead of the helper, by the descriptor of its directory.
            || line.contains("/proc/self/fd/");
        assert!(is_known, "{line}");
    }
}
