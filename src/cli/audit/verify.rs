//! `gatewren audit verify`: checks that the audit is as it was written.

use std::process::ExitCode;

use serde_json::{Value, json};

use super::super::console::output::{conclude, fail};
use super::super::console::progress::Progress;
use super::anchors::GatheredAnchors;
use gatewren_base::sys::rfc3339;
use gatewren_store::vault::{
    AnchorComparison, AuditReader, ChainFault, ChainVerification, DiscrepancyKind,
    SealedArgumentsCount,
};

/// Exit code: a row is not as it was written. 1 means that the audit cannot be read, 2 a wrong command line.
const BROKEN: u8 = 3;

/// Exit code: the rows are consistent, but contradict the helper's log.
const CONTRADICTED: u8 = 4;

/// The results of all checks.
struct Found {
    chain: ChainVerification,
    exact: SealedArgumentsCount,
    anchors: Result<AnchorComparison, &'static str>,
}

/// Exits with 0 if every row is as it was written, with 3 if one is not. Exits with 4 if the rows contradict the
/// helper's log, with 1 if the audit cannot be read.
pub fn run(audit: &AuditReader, gathered: &GatheredAnchors, json: bool) -> ExitCode {
    let progress = Progress::begin("checking the rows of the audit");
    let found = look(audit, gathered);
    drop(progress);
    let found = match found {
        Ok(found) => found,
        Err(error) => return fail(&error),
    };
    let status = conclude(Ok(if json {
        found.as_json().to_string()
    } else {
        found.words()
    }));
    if matches!(found.chain, ChainVerification::Broken { .. }) || !found.exact.is_whole() {
        ExitCode::from(BROKEN)
    } else if matches!(&found.anchors, Ok(AnchorComparison { first: Some(_), .. })) {
        ExitCode::from(CONTRADICTED)
    } else {
        status
    }
}

fn look(
    audit: &AuditReader,
    gathered: &GatheredAnchors,
) -> Result<Found, gatewren_store::vault::VaultError> {
    Ok(Found {
        chain: audit.verify()?,
        exact: audit.count_sealed_arguments()?,
        anchors: match gathered {
            GatheredAnchors::Anchors(anchors) => Ok(audit.compare(anchors)?),
            GatheredAnchors::Nothing(why) => Err(why),
        },
    })
}

impl Found {
    fn as_json(&self) -> Value {
        let anchors = self.anchors.as_ref().ok().map(|compared| {
            json!({
                "good": compared.good, "trimmed": compared.trimmed,
                "first": compared.first.as_ref().map(|first| json!({
                    "row": first.seq, "at": rfc3339(first.at_ms), "fault": first.kind.as_str(),
                })),
            })
        });
        match &self.chain {
            ChainVerification::Intact { rows, trimmed } => json!({
                "intact": true, "rows": rows, "trimmed": trimmed, "exact": self.exact, "anchors": anchors,
            }),
            ChainVerification::Broken { seq, fault } => json!({
                "intact": false, "row": seq, "fault": fault.as_str(), "exact": self.exact, "anchors": anchors,
            }),
        }
    }

    fn words(&self) -> String {
        let mut lines = vec![chain_words(&self.chain)];
        lines.extend(self.exact.words());
        lines.push(match &self.anchors {
            Err(why) => {
                format!("the rows were checked, but not whether rows are missing at the end: {why}")
            }
            Ok(compared) => compared_words(compared),
        });
        lines.join("\n")
    }
}

fn compared_words(compared: &AnchorComparison) -> String {
    let AnchorComparison {
        good,
        trimmed,
        first,
    } = compared;
    let Some(first) = first else {
        let trimmed = match trimmed {
            0 => String::new(),
            some => format!("; {some} other rows in it have been trimmed since"),
        };
        return format!("{good} rows match the helper's log{trimmed}");
    };
    let (seq, at) = (first.seq, rfc3339(first.at_ms));
    let found = match first.kind {
        DiscrepancyKind::Cut => {
            format!(
                "rows are missing at the end: the helper logged row {seq} at {at}, and it does not exist"
            )
        }
        DiscrepancyKind::Rewritten => format!(
            "row {seq}, or an earlier one, was rewritten: the helper logged another hash for it at {at}"
        ),
    };
    format!(
        "{found}; {good} logged rows match. Unless you restored or removed the vault since then, it was tampered \
         with."
    )
}

fn chain_words(chain: &ChainVerification) -> String {
    match chain {
        ChainVerification::Intact { rows, trimmed: 0 } => format!("all {rows} rows are intact"),
        ChainVerification::Intact { rows, trimmed } => {
            format!("all {rows} rows are intact, and continue the {trimmed} trimmed rows")
        }
        ChainVerification::Broken {
            seq,
            fault: ChainFault::Checkpoint,
        } => format!(
            "the record of the rows that were trimmed up to row {seq} was altered: their content is unknown"
        ),
        ChainVerification::Broken {
            seq,
            fault: ChainFault::Exact,
        } => format!(
            "the sealed arguments of row {seq} are missing or were altered; see gatewren audit show {seq}"
        ),
        ChainVerification::Broken { seq, fault } => {
            let fault = fault.as_str();
            format!("row {seq} is {fault}: it and all later rows are unverified")
        }
    }
}
