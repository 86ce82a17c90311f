//! Attacks on the vault's file, found by comparing the audit with the helper's log.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use nix::sys::signal::Signal;
use ring::digest::{SHA256, digest};
use rusqlite::Connection;
use rusqlite::types::Value as Cell;
use serde_json::{Value, json};

use crate::support::server::{Directory, Server, server};

fn verify(home: &Path, anchors: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
    command.args(["audit", "verify", "--json", "--anchors"]);
    command.arg(anchors).arg("--dir").arg(home);
    command.output().unwrap()
}

/// Returns the exit code and the result of comparing the anchors.
fn found(home: &Path, anchors: &Path) -> (Option<i32>, Value) {
    let output = verify(home, anchors);
    let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output.status.code(), told["anchors"].clone())
}

/// Returns what `audit verify` prints without the helper's log: the chain itself is intact.
fn verify_alone(home: &Path) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
    let command = command.args(["audit", "verify", "--dir"]).arg(home);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns a server's state after 20 commands, and the helper's log of them in the form of `journalctl -o json`.
fn noted(home: &Directory) -> (PathBuf, PathBuf) {
    let directory = home.join("state");
    let mut server = server().policy("admin").directory(&directory).start();
    let client = server.client();
    for n in 0..20 {
        let command = json!({ "command": format!("echo {n}") });
        client.call("system_shell", command).send().data();
    }
    let export = export(&server);
    server.signal(Signal::SIGTERM);
    server.ended();
    let anchors = home.join("helper.jsonl");
    std::fs::write(&anchors, export).unwrap();
    (directory, anchors)
}

/// Returns the helper's log lines that name a row of the audit.
fn export(server: &Server) -> String {
    let between = |line: &str, begin: &str, end: char| {
        let (_, rest) = line.split_once(begin)?;
        Some(rest.split(end).next()?.to_owned())
    };
    let log = server.log();
    let lines = log.lines().filter_map(|line| {
        let seq = between(line, "audit_seq=", ' ')?;
        let sha256 = between(line, "audit_sha256=\"", '"')?;
        assert!(line.contains("operation=\"host_command\""), "{line}");
        let fields = json!({ "__REALTIME_TIMESTAMP": "1700000000000000", "_UID": "0",
            "_SYSTEMD_UNIT": "gatewren-helper.service",
            "GATEWREN_AUDIT_SEQ": seq, "GATEWREN_AUDIT_SHA256": sha256 });
        Some(format!("{fields}\n"))
    });
    lines.collect()
}

/// Changes the vault without its triggers, and restores them.
fn without_triggers(home: &Path, work: impl Fn(&Connection)) {
    let vault = Connection::open(home.join("vault.db")).unwrap();
    let triggers =
        "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name LIKE 'audit%'";
    let triggers: Vec<(String, String)> = vault
        .prepare(triggers)
        .unwrap()
        .query_map([], |row| row.try_into())
        .unwrap()
        .map(Result::unwrap)
        .collect();
    for (name, _) in &triggers {
        vault
            .execute_batch(&format!("DROP TRIGGER {name}"))
            .unwrap();
    }
    work(&vault);
    for (_, sql) in &triggers {
        vault.execute_batch(sql).unwrap();
    }
}

#[test]
fn an_audit_that_nobody_touched_agrees_with_the_helpers_log() {
    let home = Directory::new();
    let (directory, anchors) = noted(&home);
    let (code, told) = found(&directory, &anchors);
    assert_eq!(code, Some(0));
    assert_eq!(told, json!({ "good": 20, "trimmed": 0, "first": null }));
    let missing = verify(&directory, &home.join("absent"));
    assert_eq!(missing.status.code(), Some(1));
}

#[test]
fn rows_that_were_cut_off_the_end_are_found() {
    let home = Directory::new();
    let (directory, anchors) = noted(&home);
    without_triggers(&directory, |vault| {
        let cut = "DELETE FROM audit WHERE seq > 20; UPDATE sqlite_sequence SET seq = 20 WHERE name = 'audit'";
        vault.execute_batch(cut).unwrap();
    });
    let told = verify_alone(&directory);
    let (code, found) = found(&directory, &anchors);
    assert_eq!(
        code,
        Some(4),
        "{found}, and without the helper's log: {told}"
    );
    assert_eq!(
        found["first"],
        json!({ "row": 21, "at": "2023-11-14T22:13:20.000Z", "fault": "cut" })
    );
    assert!(
        told.contains("not whether rows are missing at the end"),
        "{told}"
    );
}

/// Returns the hash of a row, as the man page describes it.
fn hash(previous: &[u8], row: &[Cell]) -> Vec<u8> {
    let mut data = b"gatewren audit 4\n".to_vec();
    data.extend_from_slice(previous);
    for cell in row {
        let (kind, bytes) = match cell {
            Cell::Null => (0, Vec::new()),
            Cell::Integer(number) => (1, number.to_be_bytes().to_vec()),
            Cell::Text(text) => (3, text.clone().into_bytes()),
            Cell::Blob(bytes) => (4, bytes.clone()),
            Cell::Real(number) => panic!("{number}"),
        };
        data.push(kind);
        data.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
        data.extend_from_slice(&bytes);
    }
    digest(&SHA256, &data).as_ref().to_vec()
}

#[test]
fn a_record_that_was_rewritten_with_every_hash_after_it_is_found() {
    const COLUMNS: &str = "seq, at_ms, call, kind, agent, session, request, address, tool, risk, arguments,
        arguments_sha256, target, decision, outcome, duration_ms, revision, token, space, mode, change,
        revision_before, exact, error";
    let home = Directory::new();
    let (directory, anchors) = noted(&home);
    without_triggers(&directory, |vault| {
        let harmless = "UPDATE audit SET tool = 'whoami', arguments = '{}' WHERE seq = 11";
        vault.execute_batch(harmless).unwrap();
        let mut rows = vault
            .prepare(&format!("SELECT {COLUMNS} FROM audit ORDER BY seq"))
            .unwrap();
        let rows = rows.query_map([], |row| (0..24).map(|at| row.get(at)).collect());
        let rows: Vec<Vec<Cell>> = rows.unwrap().map(Result::unwrap).collect();
        let mut previous = vec![0; 32];
        for row in rows {
            let sha256 = hash(&previous, &row);
            let update = "UPDATE audit SET previous_sha256 = ?1, sha256 = ?2 WHERE seq = ?3";
            vault
                .execute(update, (&previous, &sha256, &row[0]))
                .unwrap();
            previous = sha256;
        }
    });
    let told = verify_alone(&directory);
    let (code, found) = found(&directory, &anchors);
    assert_eq!(
        code,
        Some(4),
        "{found}, and without the helper's log: {told}"
    );
    assert_eq!(
        (
            &found["first"]["row"],
            &found["first"]["fault"],
            &found["good"]
        ),
        (&json!(11), &json!("rewritten"), &json!(5))
    );
}
