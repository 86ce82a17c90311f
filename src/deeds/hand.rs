//! What the owner does stands in the audit: before it is done, and how it went.

use std::fmt::Display;

use serde_json::Value;

use crate::vault::{Deed as Entry, Vault};

/// Whose hand it is: at the box, or signed in on the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hand {
    /// Who, such as `local:root` or `owner`.
    pub by: String,
    /// Where from: an address, or `local`.
    pub from: String,
}

/// What is about to be done.
pub struct Deed<'a> {
    /// The command, such as `agent add`; the page uses the same words.
    pub command: &'static str,
    /// What belongs to it; no token stands in it.
    pub what: Value,
    /// What it is about, such as an agent's id, or the name that a new one is to have.
    pub target: Option<&'a str>,
    /// The change of the inbox that it decides on.
    pub change: Option<&'a str>,
}

impl Hand {
    /// Does it, between its two rows; what cannot be written down is not done.
    pub async fn recorded<T, E: Display>(
        &self,
        vault: &Vault,
        deed: Deed<'_>,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, String> {
        let work = async { work.await.map(|done| (done, "ok")) };
        self.recorded_as(vault, deed, work).await
    }

    /// The same for what has its own word for how it went.
    pub async fn recorded_as<T, E: Display>(
        &self,
        vault: &Vault,
        deed: Deed<'_>,
        work: impl Future<Output = Result<(T, &'static str), E>>,
    ) -> Result<T, String> {
        let entry = Entry {
            by: &self.by,
            from: &self.from,
            what: deed.command,
            arguments: &deed.what,
            target: deed.target,
            change: deed.change,
        };
        let undertaking = vault.audit().undertake(entry).await;
        let undertaking = undertaking.map_err(|e| e.to_string())?;
        let done = work.await;
        let status = done.as_ref().map_or("failed", |(_, word)| word);
        // It is done; that only its beginning is on record says so too.
        let _ = vault.audit().done(undertaking, status);
        done.map(|(value, _)| value).map_err(|e| e.to_string())
    }
}
