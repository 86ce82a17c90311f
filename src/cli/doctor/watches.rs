//! Checks the agents' watches: those that have fired, and those that cannot be checked.

use std::fmt::Write as _;

use super::finding::Finding;
use gatewren_gate::owner_actions::sanitize;
use gatewren_store::vault::Vault;
use gatewren_tools::watches::WatchView;

/// The maximum number of watches in one line.
const SHOWN: usize = 5;

/// Looks at the watches; nothing without any.
pub fn look(vault: &Vault) -> Vec<Finding> {
    const CHECK: &str = "watches";
    let all = match vault.watches().list() {
        Ok(all) => all,
        Err(cause) => {
            let remedy = "systemctl status gatewren";
            return vec![Finding::problem(CHECK, cause.to_string(), remedy)];
        }
    };
    let views: Vec<WatchView> = all.iter().filter_map(WatchView::of).collect();
    let words = |is: fn(&WatchView) -> bool| {
        let found: Vec<&WatchView> = views.iter().filter(|view| is(view)).collect();
        let shown = found.iter().take(SHOWN).map(|view| sanitize(&view.watches));
        let mut text = shown.collect::<Vec<_>>().join("; ");
        if found.len() > SHOWN {
            let _ = write!(text, "; and {} more", found.len() - SHOWN);
        }
        (!found.is_empty()).then_some(text)
    };
    let mut found = Vec::new();
    if let Some(fired) = words(|view| view.phase == "fired") {
        let seen = format!("fired: {fired}");
        found.push(Finding::warning(CHECK, seen, "gatewren watch list --fired"));
    }
    if let Some(unchecked) = words(|view| view.unchecked) {
        let seen = format!("cannot be checked: {unchecked}");
        found.push(Finding::warning(CHECK, seen, "gatewren watch list"));
    }
    if found.is_empty() && !views.is_empty() {
        let seen = format!("{} watches; none has fired", views.len());
        found.push(Finding::good(CHECK, seen));
    }
    found
}
