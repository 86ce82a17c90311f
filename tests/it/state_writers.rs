//! Other programs write the state at the same time as the server: nothing is lost, and every subscriber is notified.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::support::container::Containers;
use crate::support::cores::core;
use crate::support::machine::{skip, wait_until};
use crate::support::server::{Directory, Server, has_sqlite3, server};
use crate::support::state::{command, said};
use crate::support::stream::{Next, Stream};

/// The number of revisions of all writers, unless `GATEWREN_FOREIGN_REVISIONS` is set.
const REVISIONS: u64 = 10_000;

const WRITERS: [&str; 4] = ["ada", "bob", "cleo", "dan"];

/// Each writer's revision with a multiple of this number does not apply; `writer.py` has the same number.
const REFUSED_EVERY: u64 = 50;

/// The time limit for other processes, on a slow and busy machine.
const PATIENCE: Duration = Duration::from_mins(15);

/// The container that changes during the test.
const STIRRED: &str = "stirred";

const ALL: &str = "gatewren:///public/writers";

fn each() -> u64 {
    let wanted = std::env::var("GATEWREN_FOREIGN_REVISIONS");
    wanted.map_or(REVISIONS, |text| text.parse().unwrap()) / 4
}

fn writers(server: &Server) -> Vec<Child> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/state/writer.py");
    let start = |name: &&str| {
        let mut python = Command::new("python3");
        python.arg(&script).args([server.text("state_db"), *name]);
        python.arg(each().to_string()).spawn().unwrap()
    };
    WRITERS.iter().map(start).collect()
}

/// Reads a stream up to the revision `last`, and returns the revisions in order of arrival.
fn follow(mut stream: Stream, uri: &'static str, last: &'static Last) -> JoinHandle<Vec<u64>> {
    thread::spawn(move || {
        let begun = Instant::now();
        let mut told = Vec::new();
        loop {
            if let Next::Event(event) = stream.next(Duration::from_millis(200))
                && !event.data.is_empty()
            {
                let message = event.json();
                assert_eq!(message["params"]["uri"], uri, "{message}");
                let revision = &message["params"]["_meta"]["gatewren/revision"];
                told.push(revision.as_u64().unwrap());
            }
            if told
                .last()
                .is_some_and(|told| last.is_reached_by(uri, *told))
            {
                return told;
            }
            assert!(begun.elapsed() < PATIENCE, "{uri}: last told of {told:?}");
        }
    })
}

/// The last revision that each subscriber must receive, once the writers have ended.
#[derive(Default)]
struct Last(std::sync::Mutex<BTreeMap<String, u64>>);

impl Last {
    fn set(&self, uri: &str, revision: u64) {
        self.0.lock().unwrap().insert(uri.to_owned(), revision);
    }

    fn is_reached_by(&self, uri: &str, revision: u64) -> bool {
        let last = self.0.lock().unwrap();
        last.get(uri).is_some_and(|last| revision >= *last)
    }
}

/// Starts subscribers of both eras, to all writes and to one writer's part.
fn subscribers(server: &Server, last: &'static Last) -> Vec<JoinHandle<Vec<u64>>> {
    const ONE: &str = "gatewren:///public/writers/ada";
    let mut threads = Vec::new();
    for uri in [ALL, ONE] {
        for client in [server.client(), server.client().http2()] {
            let listen = client.modern("subscriptions/listen");
            let filter = json!({ "resourceSubscriptions": [uri] });
            let mut stream = listen.param("notifications", filter).open();
            let first = stream.message();
            assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
            threads.push(follow(stream, uri, last));
        }
        for version in ["2025-06-18", "2025-11-25"] {
            let session = server.client().session(version);
            session.subscribe(uri);
            threads.push(follow(session.stream(), uri, last));
        }
    }
    threads
}

/// `gatewren state watch`, writing to a file.
struct Watch {
    process: Child,
    file: PathBuf,
}

impl Watch {
    fn begin(server: &Server, home: &Directory) -> Self {
        let file = home.join("watched");
        let mut watch = command(
            server,
            &["watch", "/public/writers", "--since", "0", "--json"],
        );
        watch.stdout(Stdio::from(File::create(&file).unwrap()));
        let process = watch.spawn().unwrap();
        Self { process, file }
    }

    fn ids(&self) -> Vec<u64> {
        let lines = BufReader::new(File::open(&self.file).unwrap()).lines();
        // The last line may be incomplete.
        let rows = lines.filter_map(|line| serde_json::from_str::<Value>(&line.unwrap()).ok());
        rows.map(|row| row["id"].as_u64().unwrap_or_else(|| panic!("{row}")))
            .collect()
    }

    /// Ends it with SIGINT, as Ctrl-C does.
    fn end(&mut self) -> Vec<u64> {
        let pid = Pid::from_raw(self.process.id().try_into().unwrap());
        kill(pid, Signal::SIGINT).unwrap();
        assert_eq!(self.process.wait().unwrap().code(), Some(0));
        self.ids()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts and stops a container, so that the observer writes too.
fn stir(containers: &Containers, until: &mut dyn FnMut() -> bool) {
    let mut runs = false;
    while !until() || runs {
        let (tool, how) = if runs {
            ("lxc-stop", "-k")
        } else {
            ("lxc-start", "-d")
        };
        containers.tool(tool, STIRRED, &[how]);
        if runs {
            containers.until_stopped(STIRRED);
        }
        runs = !runs;
    }
}

fn newest_read(server: &Server) -> u64 {
    let read = server
        .client()
        .call("state_get", json!({ "pointer": "/public/writers" }));
    read.send().data()["revision"].as_u64().unwrap()
}

fn newest_written(server: &Server) -> u64 {
    let newest: Value = serde_json::from_str(&said(server, &["get", "--json"])).unwrap();
    newest["revision"].as_u64().unwrap()
}

/// Returns the log as `export` prints it, and asserts that its numbers have no gap from the first on.
fn log(server: &Server) -> Vec<Value> {
    let text = said(server, &["export", "--log"]);
    let rows: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for (row, id) in rows.iter().zip(1_u64..) {
        assert_eq!(row["id"], id, "no number is missing");
    }
    rows
}

fn is_written_by(row: &Value, name: &str) -> bool {
    row["actor"] == format!("local:{name}") && row.get("refused").is_none()
}

#[test]
#[ignore = "long: four programs write 10,000 revisions"]
fn four_programs_write_ten_thousand_revisions_and_nothing_is_lost() {
    let _core = core();
    if !has_sqlite3() {
        return;
    }
    if Command::new("python3").arg("--version").output().is_err() {
        return skip("there is no program python3");
    }
    let home = Directory::new();
    let mut containers = Containers::new();
    let mut builder = server().policy("admin");
    if let Some(containers) = &mut containers {
        containers.make(STIRRED);
        builder = builder.lxcpath(containers.lxcpath());
    }
    let server = builder.start();
    server.put("writers", &json!({ "shared": {} }));

    let last: &'static Last = Box::leak(Box::default());
    let subscribers = subscribers(&server, last);
    let mut watch = Watch::begin(&server, &home);
    let mut writers = writers(&server);
    let mut all_ended = || writers.iter_mut().all(|w| w.try_wait().unwrap().is_some());
    if let Some(containers) = &containers {
        stir(containers, &mut all_ended);
    }
    wait_until("the writers end", PATIENCE, all_ended);
    assert!(writers.iter_mut().all(|w| w.wait().unwrap().success()));

    wait_until("the server has read everything", PATIENCE, || {
        newest_read(&server) >= newest_written(&server)
    });
    let rows = log(&server);
    nothing_is_lost(&rows);
    let newest = |name: &str| rows.iter().rfind(|row| is_written_by(row, name)).unwrap();
    let newest = |name: &&str| newest(name)["id"].as_u64().unwrap();
    let end = WRITERS.iter().map(newest).max().unwrap();
    last.set(ALL, end);
    last.set("gatewren:///public/writers/ada", newest(&"ada"));
    for subscriber in subscribers {
        let told = subscriber.join().unwrap();
        assert!(told.is_sorted(), "{told:?}");
    }
    wait_until("`watch` has the last one", PATIENCE, || {
        watch.ids().last() == Some(&end)
    });
    let watched = watch.end();
    let theirs = rows.iter().filter(|row| {
        row["id"] == watched[0] || WRITERS.iter().any(|name| is_written_by(row, name))
    });
    let theirs: Vec<u64> = theirs.map(|row| row["id"].as_u64().unwrap()).collect();
    assert_eq!(watched, theirs, "each revision that applies, once");
    all_agree(&server);
}

/// Asserts that each revision of each writer is in the log once, and that those that do not apply are marked.
fn nothing_is_lost(rows: &[Value]) {
    let causes: Vec<&str> = rows
        .iter()
        .filter_map(|row| row["cause"].as_str())
        .collect();
    let found: BTreeSet<&str> = causes.iter().copied().collect();
    for name in WRITERS {
        for number in 0..each() {
            let cause = format!("{name}:{number}");
            assert!(found.contains(cause.as_str()), "{cause} is lost");
        }
    }
    let theirs = causes.iter().filter(|cause| cause.contains(':')).count();
    assert_eq!(theirs as u64, 4 * each());
    let refused = rows
        .iter()
        .filter(|row| row.get("refused").is_some())
        .count();
    assert_eq!(refused as u64, 4 * (each() / REFUSED_EVERY));
}

/// Asserts that the server, the file and a replay of the log have the same document, and that the file is intact.
fn all_agree(server: &Server) {
    let report: Value = serde_json::from_str(&said(server, &["check", "--json"])).unwrap();
    assert_eq!(report["sound"], true, "{report}");
    let exported: Value = serde_json::from_str(&said(server, &["export"])).unwrap();
    let document = &exported["document"]["public"]["writers"];
    let read = server
        .client()
        .call("state_get", json!({ "pointer": "/public/writers" }));
    let read = read.send().data();
    assert_eq!(&read["value"], document);
    for name in WRITERS {
        let (count, mut number) = (each(), each() - 1);
        if count.is_multiple_of(REFUSED_EVERY) {
            number -= 1;
        }
        assert_eq!(document[name]["number"], number, "{name}");
    }
}
