//! What `gatewren doctor` found when it last ran, for the owner's page.

use serde::{Deserialize, Serialize};

use crate::vault::error::VaultError;
use crate::vault::shared::SharedVault;

/// The key in the table `meta`.
const KEY: &str = "doctor_report";

/// The most findings that are kept; the first ones.
const MAX_FINDINGS: usize = 32;

/// The most characters of each text; longer ones are cut, with a mark.
const MAX_CHARACTERS: usize = 400;

/// A finding that needs attention.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoctorFinding {
    /// Whether something does not work. Otherwise it works, but needs attention.
    pub is_problem: bool,
    /// What was seen.
    pub seen: String,
    /// What to do.
    pub remedy: Option<String>,
}

/// The findings of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoctorReport {
    /// When it ended, in milliseconds since 1970.
    pub at_ms: u64,
    /// The findings that need attention, in the order of the checks.
    pub findings: Vec<DoctorFinding>,
}

/// Access to the report of the last run.
pub struct DoctorReportTable<'a>(&'a SharedVault);

impl<'a> DoctorReportTable<'a> {
    pub(in crate::vault) fn new(shared: &'a SharedVault) -> Self {
        Self(shared)
    }

    /// Stores this report instead of the earlier one.
    pub async fn keep(&self, mut report: DoctorReport) -> Result<(), VaultError> {
        report.findings.truncate(MAX_FINDINGS);
        for finding in &mut report.findings {
            shorten(&mut finding.seen);
            finding.remedy.iter_mut().for_each(shorten);
        }
        let doing = "store what doctor found";
        self.0.keep_value(doing, KEY, &report).await
    }

    /// Returns the report of the last run. `None` before the first, or if a newer version has written a format that
    /// is unknown here.
    pub fn last(&self) -> Result<Option<DoctorReport>, VaultError> {
        self.0.kept_value("read what doctor found", KEY)
    }
}

fn shorten(text: &mut String) {
    if let Some((at, _)) = text.char_indices().nth(MAX_CHARACTERS) {
        text.truncate(at);
        text.push('…');
    }
}

#[cfg(test)]
mod tests {
    use super::super::doctor_report::*;
    use crate::vault::store::Vault;
    use gatewren_base::sys::Scratch;

    #[tokio::test]
    async fn the_last_run_counts_and_is_bounded() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        assert_eq!(vault.doctor_report().last().unwrap(), None);
        let report = |seen: &str, count| DoctorReport {
            at_ms: 7,
            findings: vec![
                DoctorFinding {
                    is_problem: true,
                    seen: seen.to_owned(),
                    remedy: None,
                };
                count
            ],
        };
        let table = vault.doctor_report();
        table.keep(report("a", 2)).await.unwrap();
        table.keep(report("b", 1)).await.unwrap();
        assert_eq!(table.last().unwrap(), Some(report("b", 1)));
        table.keep(report(&"ä".repeat(500), 99)).await.unwrap();
        let cut = format!("{}…", "ä".repeat(MAX_CHARACTERS));
        assert_eq!(table.last().unwrap(), Some(report(&cut, MAX_FINDINGS)));
    }
}
