//! `gatewren state check`: checks that the database follows its rules.

use std::path::Path;
use std::process::ExitCode;

use serde_json::json;

use super::super::console::output::{conclude, fail};
use gatewren_gate::owner_actions::sanitize;
use gatewren_store::state::{Checkup, checkup};

/// Exit code: the database breaks its rules. 1 means that it could not be checked, 2 a wrong command line.
const WRONG: u8 = 3;

/// Exits with 0 if all is well, with 3 if something is wrong, with 1 if the check failed.
pub fn run(file: &Path, json: bool) -> ExitCode {
    let checkup = match checkup(file) {
        Ok(checkup) => checkup,
        Err(error) => return fail(&error),
    };
    let sound = checkup.is_sound();
    let text = if json {
        json!({ "sound": sound, "file": file, "report": checkup }).to_string()
    } else {
        describe_checkup(file, &checkup)
    };
    match conclude(Ok(text)) {
        ExitCode::SUCCESS if !sound => ExitCode::from(WRONG),
        code => code,
    }
}

fn describe_checkup(file: &Path, checkup: &Checkup) -> String {
    let file = file.display();
    let mut lines = vec![if checkup.is_sound() {
        format!("{file}: valid")
    } else {
        format!("{file}: {} problems", checkup.problems.len())
    }];
    let line = |what: &str, text: &String| format!("  {what}: {}", sanitize(text));
    lines.extend(checkup.problems.iter().map(|text| line("problem", text)));
    lines.extend(checkup.remarks.iter().map(|text| line("note", text)));
    if let Some(kept) = &checkup.kept {
        lines.push(format!(
            "  revisions {} to {}: {} rows, {} that change nothing, {} bytes of patches",
            kept.floor, kept.newest, checkup.revisions, checkup.refused, checkup.patch_bytes
        ));
        lines.push(format!(
            "  {} snapshots, the document from revision {} on; now it has {} bytes",
            checkup.snapshots, kept.oldest_document, checkup.document_bytes
        ));
    }
    lines.push(format!(
        "  schema {}, database {}; {} bytes, and {} in its write-ahead log",
        checkup.schema, checkup.database, checkup.file_bytes, checkup.wal_bytes
    ));
    lines.join("\n")
}
