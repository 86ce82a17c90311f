//! A full disk: writers get an error, readers continue, and no committed revision is lost.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rusqlite::Connection;
use serde_json::json;

use gatewren_base::sys::{Scratch, skip};

use super::author::Author;
use super::changes::RevisionsSince;
use super::error::StateError;
use super::integrity::ReplayedDatabase;
use super::log::StateLogRetention;
use super::patch::Patch;
use super::pointer::Pointer;
use super::store::State;

/// The size of the disk.
const MEBIBYTES: u64 = 3;

/// A small temporary file system; unmounted on drop.
struct Disk(Scratch);

impl Disk {
    /// Returns `None`, after reporting a skip, where no file system can be mounted.
    fn new() -> Option<Self> {
        let disk = Self(Scratch::new());
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={MEBIBYTES}m"), "tmpfs"]);
        let mounted = mount.arg(disk.0.path()).output();
        if mounted.is_ok_and(|mounted| mounted.status.success()) {
            return Some(disk);
        }
        skip("a small file system cannot be mounted here: that needs root");
        None
    }

    fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Fills all the free space.
    fn fill(&self) {
        let mut file = fs::File::create(self.join("filling")).unwrap();
        while file.write_all(&[b'x'; 4096]).is_ok() {}
    }

    fn make_room(&self) {
        fs::remove_file(self.join("filling")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily: a failing test may still have files open there.
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).output();
    }
}

fn open(path: &Path) -> Result<State, StateError> {
    let retention = StateLogRetention {
        snapshot_every: 7,
        ..StateLogRetention::default()
    };
    State::open_keeping(path, retention)
}

async fn write(state: &State, n: u64) -> Result<u64, StateError> {
    let patch = json!([{"op": "add", "path": "/public/n", "value": [n, "x".repeat(5000)]}]);
    let patch = Patch::from_value(patch).unwrap();
    state.apply(&Author::observer(), patch).await
}

/// Writes until a write fails. Returns the newest revision and the error.
async fn write_until_refused(state: &State, from: u64) -> (u64, StateError) {
    let mut newest = from;
    loop {
        match write(state, newest + 1).await {
            Ok(id) => newest = id,
            Err(why) => return (newest, why),
        }
        assert!(newest < from + 2000, "there is still room");
    }
}

/// Asserts that readers still see exactly the committed revisions, and that another program's write fails too.
fn is_of(state: &State, newest: u64) {
    assert_eq!(state.document().revision, newest);
    let changes = state.changes_since(newest - 1, &Pointer::root(), 9);
    assert!(matches!(changes, Ok(RevisionsSince::Revisions { upto, .. }) if upto == newest));
    let insert = "INSERT INTO revision (at_ms, actor, patch) VALUES (1, 'local:test', ?1)";
    let large = json!(["x".repeat(100_000)]).to_string();
    let other = Connection::open(state.path()).unwrap();
    assert!(other.execute(insert, [large]).is_err());
}

/// Reopens like a daemon that is started on the full disk. It may fail with an error, but must not damage anything.
fn reopen_state(state: State, disk: &Disk) -> State {
    let path = state.path().to_owned();
    drop(state);
    match open(&path) {
        Ok(state) => state,
        Err(why) => {
            assert_eq!(why, StateError::Full(path.clone()));
            disk.make_room();
            open(&path).unwrap()
        }
    }
}

#[tokio::test]
async fn writers_are_refused_and_nothing_is_lost() {
    let Some(disk) = Disk::new() else {
        return;
    };
    let path = disk.join("state.db");
    let mut state = open(&path).unwrap();
    let mut newest = 0;
    for round in 0..3 {
        for n in 0..10 {
            newest = write(&state, 1000 * round + n).await.unwrap();
        }
        disk.fill();
        // The write-ahead log may still have free space inside.
        let why;
        (newest, why) = write_until_refused(&state, newest).await;
        assert_eq!(why, StateError::Full(path.clone()));
        assert!(
            why.to_string()
                .ends_with("the disk is full: free some space")
        );
        is_of(&state, newest);
        if round == 1 {
            state = reopen_state(state, &disk);
            assert_eq!(state.document().revision, newest);
        }
        if disk.join("filling").exists() {
            disk.make_room();
        }
        newest += 1;
        assert_eq!(write(&state, 0).await, Ok(newest), "there is room again");
    }
    let document = state.document();
    drop(state);
    let found = ReplayedDatabase::of(&path);
    assert_eq!(found.newest(), &(newest, document.root.clone()));
}
