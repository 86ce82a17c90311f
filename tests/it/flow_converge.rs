//! No change is lost: clients of both eras over writes, lost connections, pauses, and restarts of the server.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::support::client::{Client, runtime};
use crate::support::cores::core;
use crate::support::history::{History, connect, insert};
use crate::support::machine::IN_TIME;
use crate::support::rng::Rng;
use crate::support::server::{Directory, Server, server};
use crate::support::watcher::{Era, Heard, Watcher, Weather};

/// The number of clients.
const CLIENTS: usize = 24;

/// The resources that clients watch; writes are two levels deep.
const POINTERS: [&str; 12] = [
    "/public",
    "/public/tree",
    "/public/tree/a",
    "/public/tree/a/x",
    "/public/tree/b",
    "/public/tree/b/y",
    "/public/tree/c/z",
    "/public/tree/ab",
    "/public/tree/back",
    "/public/tree/list",
    "/public/tree/list/1",
    "/public/never",
];

const ERAS: [Era; 4] = [
    Era::Stateless,
    Era::Session("2025-11-25"),
    Era::Session("2025-06-18"),
    Era::Session("2025-03-26"),
];

/// Returns an operation on one branch of the tree: often one without effect, occasionally one that does not apply.
fn operation(rng: &mut Rng, branch: &str) -> Value {
    let leaf = rng.pick(&["x", "y", "z"]);
    let (above, path) = (
        format!("/public/tree/{branch}"),
        format!("/public/tree/{branch}/{leaf}"),
    );
    let value = rng.below(3);
    match rng.below(12) {
        0 => json!({ "op": "remove", "path": above }),
        1 => json!({ "op": "remove", "path": path }),
        2 => json!({ "op": "test", "path": path, "value": value }),
        3 => json!({ "op": "replace", "path": above, "value": { leaf: value } }),
        4 | 5 => json!({ "op": "add", "path": above, "value": { "x": 0, "y": value, "z": value } }),
        6 => json!({ "op": "add", "path": format!("/public/beside/{leaf}"), "value": value }),
        _ => json!({ "op": "add", "path": path, "value": value }),
    }
}

/// Returns an operation on a list, which may move all of its elements.
fn operation_on_list(rng: &mut Rng) -> Value {
    let list = "/public/tree/list";
    let value = rng.below(2);
    match rng.below(6) {
        0 => json!({ "op": "add", "path": list, "value": [value, 1, 0] }),
        1 => json!({ "op": "remove", "path": format!("{list}/0") }),
        2 => json!({ "op": "add", "path": format!("{list}/-"), "value": value }),
        3 => json!({ "op": "replace", "path": format!("{list}/1"), "value": value }),
        _ => json!({ "op": "add", "path": format!("{list}/0"), "value": value }),
    }
}

/// Returns a patch on some branches; occasionally it reverts its first operation at the end.
fn patch(rng: &mut Rng) -> Value {
    let mut operations = Vec::new();
    for branch in ["a", "b", "c", "ab"] {
        if rng.one_in(3) {
            operations.push(operation(rng, branch));
        }
    }
    if rng.one_in(4) {
        operations.push(operation_on_list(rng));
    }
    if rng.one_in(5) {
        let there = json!({ "op": "add", "path": "/public/tree/back", "value": [1] });
        let back = json!({ "op": "remove", "path": "/public/tree/back" });
        operations.extend([there, back]);
    }
    json!(operations)
}

/// Writers in other processes than the server, during the rough phase.
struct Writers {
    at_work: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Writers {
    fn start(directory: &Path, rng: &mut Rng) -> Self {
        let at_work = Arc::new(AtomicBool::new(true));
        let spawn = |work: fn(&Path, Rng, &AtomicBool), rng: &mut Rng| {
            let (directory, at_work) = (directory.to_owned(), at_work.clone());
            let rng = Rng::new(rng.next());
            thread::spawn(move || work(&directory, rng, &at_work))
        };
        let threads = vec![
            spawn(with_sqlite, rng),
            spawn(with_sqlite, rng),
            spawn(with_the_command, rng),
        ];
        Self { at_work, threads }
    }

    fn finish(self) -> Option<Self> {
        self.at_work.store(false, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().unwrap();
        }
        None
    }
}

fn with_sqlite(directory: &Path, mut rng: Rng, at_work: &AtomicBool) {
    let connection = connect(&directory.join("state.db"));
    while at_work.load(Ordering::Relaxed) {
        insert(&connection, &patch(&mut rng));
        // Some writes come at once; sometimes the next one follows a long pause.
        let pause = rng.pick(&[0, 0, 1, 5, 20, 20, 700]);
        thread::sleep(Duration::from_millis(pause));
    }
}

fn with_the_command(directory: &Path, mut rng: Rng, at_work: &AtomicBool) {
    while at_work.load(Ordering::Relaxed) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
        command.args(["state", "patch", "--as", "test", "--dir"]);
        let mut child = command
            .arg(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let patch = patch(&mut rng).to_string();
        // A patch that does not apply is rejected; this does not matter here.
        let _ = child.stdin.take().unwrap().write_all(patch.as_bytes());
        child.wait().unwrap();
        thread::sleep(Duration::from_millis(300));
    }
}

/// The server, restarted over the same state, and its clients.
struct Scene {
    home: Directory,
    server: Option<Server>,
    address: watch::Sender<Option<Client>>,
    rough: watch::Sender<bool>,
    clients: Vec<(String, Arc<Mutex<Heard>>, tokio::task::JoinHandle<()>)>,
    history: History,
}

impl Scene {
    fn new(rng: &mut Rng) -> Self {
        let home = Directory::new();
        let path: PathBuf = home.join("state.db");
        let mut scene = Self {
            home,
            server: None,
            address: watch::Sender::new(None),
            rough: watch::Sender::new(false),
            clients: Vec::new(),
            history: History::new(&path, POINTERS.map(str::to_owned)),
        };
        scene.start();
        insert(
            &connect(&path),
            &json!([
                { "op": "add", "path": "/public/tree", "value": {} },
                { "op": "add", "path": "/public/beside", "value": {} },
            ]),
        );
        for n in 0..CLIENTS {
            scene.add_client(n, rng);
        }
        scene
    }

    fn add_client(&mut self, n: usize, rng: &mut Rng) {
        let mut pointers: Vec<&str> = (0..=rng.below(5)).map(|_| rng.pick(&POINTERS)).collect();
        pointers.sort_unstable();
        pointers.dedup();
        let era = ERAS[n % ERAS.len()];
        let watcher = Watcher::new(era, &pointers, Rng::new(rng.next()));
        let (name, heard) = (
            format!("client {n}, {era:?}, of {pointers:?}"),
            watcher.heard.clone(),
        );
        let weather = Weather {
            server: self.address.subscribe(),
            rough: self.rough.subscribe(),
        };
        let task = runtime().spawn(watcher.run(weather));
        self.clients.push((name, heard, task));
    }

    fn start(&mut self) {
        let server = server().directory(&self.home.0).start();
        self.address.send_replace(Some(server.client()));
        self.server = Some(server);
    }

    fn stop(&mut self, signal: Signal) {
        let mut server = self.server.take().unwrap();
        server.signal(signal);
        self.address.send_replace(None);
        server.ended();
    }

    /// Waits until every client knows the last change of everything that it watches.
    fn converges(&mut self) {
        let begun = Instant::now();
        self.history.read_on();
        for (name, heard, task) in &self.clients {
            let behind = || {
                let heard = heard.lock().unwrap();
                let newest = |at: &String| self.history.newest(at);
                let behind = |(at, known): (&String, &u64)| *known < newest(at);
                (heard.known.is_empty() || heard.known.iter().any(behind))
                    .then(|| format!("{heard:?}"))
            };
            while let Some(heard) = behind() {
                assert!(!task.is_finished(), "{name} has failed: {heard}");
                assert!(
                    begun.elapsed() < IN_TIME,
                    "{name} never heard of a change: {heard}, revision {}",
                    self.history.revision
                );
                thread::sleep(Duration::from_millis(20));
            }
        }
    }

    /// Asserts that clients were notified only of real changes, and only of watched ones. Returns the number of new
    /// updates.
    fn was_true(&mut self) -> usize {
        self.history.read_on();
        let mut count = 0;
        for (name, heard, _) in &self.clients {
            let mut heard = heard.lock().unwrap();
            assert!(heard.wrong.is_empty(), "{name}: {:?}", heard.wrong);
            for (pointer, revision) in heard.told.drain(..) {
                let true_ = self.history.changed(&pointer, revision);
                assert!(
                    true_,
                    "{name}: revision {revision} left {pointer} as it was"
                );
                count += 1;
            }
        }
        count
    }
}

/// Runs a round: writes, then perhaps a restart of the server, perhaps during more writes, then a calm phase.
fn round(scene: &mut Scene, rng: &mut Rng) {
    scene.rough.send_replace(true);
    let writers = Writers::start(&scene.home.0, rng);
    thread::sleep(Duration::from_millis(200 + rng.next() % 1200));
    // The last change before the server stops would be lost first.
    let (go_on, wait) = (rng.one_in(3), rng.one_in(3));
    let mut writers = Some(writers);
    if !go_on {
        writers = writers.and_then(Writers::finish);
    }
    if wait {
        thread::sleep(Duration::from_millis(rng.next() % 600));
    }
    let signal = rng.pick(&[
        Some(Signal::SIGKILL),
        Some(Signal::SIGKILL),
        Some(Signal::SIGTERM),
        None,
    ]);
    if let Some(signal) = signal {
        scene.stop(signal);
        scene.start();
    }
    if let Some(writers) = writers {
        writers.finish();
    }
    thread::sleep(Duration::from_millis(rng.next() % 600));
    scene.rough.send_replace(false);
}

/// `GATEWREN_ROUNDS` sets the number of rounds, and `GATEWREN_SEED` repeats the random choices.
#[test]
#[ignore = "long: clients are watched for a while"]
fn every_client_hears_of_the_last_change_whatever_happens() {
    let _core = core();
    let seed = Rng::seed("GATEWREN_SEED");
    println!("GATEWREN_SEED={seed}");
    let rounds = std::env::var("GATEWREN_ROUNDS").map_or(8, |text| text.parse().unwrap());
    let mut rng = Rng::new(seed);
    let mut scene = Scene::new(&mut rng);
    scene.converges();
    let mut told = 0;
    for _ in 0..rounds {
        round(&mut scene, &mut rng);
        scene.converges();
        told += scene.was_true();
    }
    for (_, _, task) in &scene.clients {
        task.abort();
    }
    let connections = scene.clients.iter();
    let connections: usize = connections.map(|c| c.1.lock().unwrap().connections).sum();
    println!(
        "{told} updates over {connections} connections, {} revisions",
        scene.history.revision
    );
    assert!(
        told >= CLIENTS && connections >= 2 * CLIENTS,
        "it was rough"
    );
}
