//! What the owner does on the command line stands in the audit: before it is done, and how it went.

use std::fmt::Display;

use serde_json::Value;

use crate::sys::own_uid;
use crate::vault::{Deed as Entry, Vault};

/// What is about to be done.
pub struct Deed<'a> {
    /// The command, such as `agent add`.
    pub command: &'static str,
    /// What belongs to it; no token stands in it.
    pub what: Value,
    /// What it is about, such as an agent's id, or the name that a new one is to have.
    pub target: Option<&'a str>,
    /// The change of the inbox that it decides on.
    pub change: Option<&'a str>,
}

/// Does it, between its two rows; what cannot be written down is not done.
pub async fn recorded<T, E: Display>(
    vault: &Vault,
    deed: Deed<'_>,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, String> {
    let work = async { work.await.map(|done| (done, "ok")) };
    recorded_as(vault, deed, work).await
}

/// The same for what has its own word for how it went.
pub async fn recorded_as<T, E: Display>(
    vault: &Vault,
    deed: Deed<'_>,
    work: impl Future<Output = Result<(T, &'static str), E>>,
) -> Result<T, String> {
    let entry = Entry {
        by: &owner(),
        from: "local",
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

/// Who sits here: whoever may open the vault is the owner, and under `sudo` has a name of their own.
pub fn owner() -> String {
    let name = |name: &str| std::env::var(name).ok().filter(|name| !name.is_empty());
    let user = name("SUDO_USER").or_else(|| name("USER"));
    let user = user.unwrap_or_else(|| format!("uid {}", own_uid()));
    format!("local:{user}")
}
