//! Checks whether the last runs of schedules succeeded.

use super::finding::Finding;
use gatewren_base::sys::exact_line;
use gatewren_store::vault::Vault;

/// Returns a finding about all schedules.
pub fn look(vault: &Vault) -> Finding {
    const CHECK: &str = "schedules";
    let all = match vault.schedules().list() {
        Ok(all) => all,
        Err(cause) => return Finding::problem(CHECK, cause.to_string(), "gatewren audit verify"),
    };
    let failing = all.iter().find(|one| one.is_active() && one.failing);
    if let Some(one) = failing {
        let seen = format!(
            "the last run of the schedule {} ({}) failed",
            one.id,
            exact_line(&one.tool)
        );
        return Finding::warning(CHECK, seen, format!("gatewren schedule show {}", one.id));
    }
    let active = all.iter().filter(|one| one.is_active()).count();
    Finding::good(CHECK, format!("{active} active schedules; none is failing"))
}
