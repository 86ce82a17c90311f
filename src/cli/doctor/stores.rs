//! Checks the stores: the state database, the vault, and the chain of the audit.

use std::path::Path;

use super::finding::Finding;
use gatewren_store::state::checkup;
use gatewren_store::vault::{AuditReader, ChainVerification};

/// Checks both, while the server runs.
pub fn look(vault: &Path) -> Vec<Finding> {
    let mut found = vec![state(&vault.with_file_name("state.db")), audit(vault)];
    found.extend(exact(vault));
    found
}

fn state(file: &Path) -> Finding {
    let remedy = format!("gatewren state check --dir {}", shown_directory(file));
    match checkup(file) {
        Ok(checkup) if checkup.is_sound() => {
            let newest = checkup.kept.as_ref().map_or(0, |kept| kept.newest);
            Finding::good(
                "state",
                format!("the document is valid, at revision {newest}"),
            )
        }
        Ok(checkup) => {
            let first = checkup.problems.first().cloned().unwrap_or_default();
            let seen = format!("{} problems: {first}", checkup.problems.len());
            Finding::problem("state", seen, remedy)
        }
        Err(cause) => Finding::problem("state", cause.to_string(), remedy),
    }
}

fn audit(vault: &Path) -> Finding {
    let remedy = format!("gatewren audit verify --dir {}", shown_directory(vault));
    match AuditReader::open(vault).and_then(|audit| audit.verify()) {
        Ok(ChainVerification::Intact { rows, .. }) => {
            Finding::good("audit", format!("all {rows} rows are intact"))
        }
        Ok(ChainVerification::Broken { seq, fault }) => {
            let seen = format!(
                "row {seq} is {}: it and all later rows are unverified",
                fault.as_str()
            );
            Finding::problem("audit", seen, remedy)
        }
        Err(cause) => Finding::problem("audit", cause.to_string(), remedy),
    }
}

/// Checks whether the sealed arguments can be opened; empty if all can.
fn exact(vault: &Path) -> Vec<Finding> {
    let remedy = format!("gatewren audit verify --dir {}", shown_directory(vault));
    match AuditReader::open(vault).and_then(|audit| audit.count_sealed_arguments()) {
        Ok(counts) if counts.is_whole() => counts
            .words()
            .into_iter()
            .map(|seen| {
                Finding::warning("exact", seen, "keep the owner's password in a safe place")
            })
            .collect(),
        Ok(counts) => counts
            .words()
            .into_iter()
            .map(|seen| Finding::problem("exact", seen, remedy.clone()))
            .collect(),
        Err(cause) => vec![Finding::problem("exact", cause.to_string(), remedy)],
    }
}

fn shown_directory(file: &Path) -> String {
    file.parent()
        .unwrap_or(Path::new("."))
        .display()
        .to_string()
}
