//! Checks the helper's policy: an invalid one is not in force.

use std::path::Path;

use super::finding::Finding;
use gatewren_base::config::HelperPolicy;

/// Checks this file; a host without it has the defaults.
pub fn look(file: &Path) -> Option<Finding> {
    const CHECK: &str = "helper.toml";
    if matches!(file.try_exists(), Ok(false)) {
        return None;
    }
    Some(match HelperPolicy::load(file) {
        Ok(_) => Finding::good(CHECK, "the helper's policy is valid"),
        Err(cause) => {
            let seen = format!(
                "{}. A running helper keeps its previous policy; a new one does not start",
                cause.summary()
            );
            let remedy = "correct the file, then: systemctl reload-or-restart gatewren-helper";
            Finding::problem(CHECK, seen, remedy)
        }
    })
}
