//! A full disk under the whole server: it keeps running, explains its errors, and loses nothing.

use std::fs::{self, File};
use std::io::Write as _;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::machine::skip;
use crate::support::server::{Directory, Server, has_sqlite3, server};

/// The most calls or writes that fit into the free pages inside the databases.
const MOST_TRIED: u64 = 2000;

/// A small file system, unmounted on drop.
struct Disk(Directory);

impl Disk {
    /// Skips the test and returns `None` where none can be mounted.
    fn new() -> Option<Self> {
        let disk = Self(Directory::new());
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"]);
        let mounted = mount.arg(&disk.0.0).output();
        if mounted.is_ok_and(|mounted| mounted.status.success()) {
            return Some(disk);
        }
        skip("a small file system cannot be mounted here: that needs root");
        None
    }

    fn fill(&self) {
        let mut file = File::create(self.0.join("filling")).unwrap();
        while file.write_all(&[b'x'; 4096]).is_ok() {}
    }

    fn make_room(&self) {
        fs::remove_file(self.0.join("filling")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily: the server may still have files open there.
        let _ = Command::new("umount").arg("-l").arg(&self.0.0).output();
    }
}

/// Returns the output of SQLite's shell for a database.
fn asked(database: &str, sql: &str) -> Result<String, String> {
    let mut shell = Command::new("sqlite3");
    shell.args(["-bail", "-cmd", ".timeout 60000", database, sql]);
    let output = shell.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap().trim().to_owned();
    if output.status.success() && output.stderr.is_empty() {
        Ok(text(output.stdout))
    } else {
        Err(text(output.stderr))
    }
}

fn write(server: &Server, n: u64) -> Result<(), String> {
    let patch = json!([{"op": "add", "path": "/public/n", "value": [n, "x".repeat(5000)]}]);
    let sql = format!(
        "INSERT INTO revision (at_ms, actor, patch) VALUES (unixepoch() * 1000, 'local:test', '{patch}')"
    );
    asked(server.text("state_db"), &sql).map(|_| ())
}

fn call(server: &Server) -> Result<Value, String> {
    let long = "x".repeat(1000);
    let answer = server
        .client()
        .call("system_shell", json!({ "command": format!("echo {long}") }))
        .send();
    assert!(matches!(answer.status, 200 | 500), "{answer:?}");
    let result = answer.rpc();
    let failed = result.get("error").is_some() || result["result"]["isError"] == json!(true);
    if failed {
        Err(result.to_string())
    } else {
        Ok(result)
    }
}

#[test]
fn the_server_goes_on_refuses_what_it_cannot_write_and_loses_nothing() {
    let Some(disk) = Disk::new() else {
        return;
    };
    if !has_sqlite3() {
        return;
    }
    let directory = disk.0.join("state");
    let start = || server().policy("admin").directory(&directory).start();
    let server = start();
    write(&server, 0).unwrap();
    call(&server).unwrap();

    disk.fill();
    let mut written = 0;
    let refused = (1..MOST_TRIED).find_map(|n| {
        let refused = write(&server, n).err();
        written = if refused.is_none() { n } else { written };
        refused
    });
    let refused = refused.expect("another program is refused at last");
    assert!(refused.contains("full"), "{refused}");
    let refused = (0..MOST_TRIED).find_map(|_| call(&server).err());
    let refused = refused.expect("a call that cannot be written down is not run at last");
    assert!(refused.contains("reference"), "{refused}");

    // It logs the error, and still answers calls that need no write.
    let log = server.log();
    let said = "of a call to the audit";
    assert!(log.contains(said) && log.contains("full"), "{log}");
    assert_eq!(server.client().modern("tools/list").send().status, 200);

    disk.make_room();
    call(&server).unwrap();
    write(&server, written + 1).unwrap();
    let database = server.text("state_db").to_owned();
    drop(server);

    let gaps = "SELECT max(id) - min(id) + 1 - count(*) FROM revision";
    assert_eq!(asked(&database, gaps), Ok("0".to_owned()));
    assert_eq!(
        asked(&database, "PRAGMA integrity_check"),
        Ok("ok".to_owned())
    );
    let server = start();
    let found = server
        .client()
        .call("state_get", json!({ "pointer": "/public/n/0" }));
    let found = found.send().result();
    assert_eq!(
        found["structuredContent"]["value"],
        json!(written + 1),
        "{found}"
    );
    let audit = Command::new(env!("CARGO_BIN_EXE_gatewren"))
        .args(["audit", "verify", "--dir"])
        .arg(&directory)
        .output()
        .unwrap();
    assert!(audit.status.success(), "{audit:?}");
}
