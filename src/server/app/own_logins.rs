//! What the vault knows for `login_list` and `changes_since`: sign-ins at the owner's page, and what agents did.

use gatewren_base::sys::now_ms;
use gatewren_host::backends::{LoginEvent, LoginKind, LoginPeriod};
use gatewren_store::vault::{Vault, VaultError};
use gatewren_tools::toolsets::{ChangingCalls, ReadChangingCalls, ReadOwnLogins};

/// Returns a function that reads them from the vault.
pub fn own_logins(vault: Vault) -> ReadOwnLogins {
    Box::new(move |period| read(&vault, period).map_err(|cause| cause.to_string()))
}

fn read(vault: &Vault, period: LoginPeriod) -> Result<Vec<LoginEvent>, VaultError> {
    let until_ms = period.until_ms.unwrap_or_else(now_ms);
    let uses = vault.audit().agent_uses(period.since_ms, until_ms)?;
    let agents = uses.into_iter().map(|one| LoginEvent {
        count: one.calls,
        ..LoginEvent::new(one.first_ms, LoginKind::Agent, &one.name, true)
            .from(&one.address)
            .by("token")
    });
    let mut events: Vec<LoginEvent> = agents.collect();
    let logins = vault.logins().list()?;
    let owners = logins.iter().filter(|login| {
        login.agent.is_none() && (period.since_ms..=until_ms).contains(&login.created_ms)
    });
    events.extend(owners.map(|login| {
        LoginEvent::new(login.created_ms, LoginKind::OwnerPage, "owner", true)
            .from(&login.address)
            .by("password")
    }));
    Ok(events)
}

/// Returns a function that reads the calls that may have changed something.
pub fn changing_calls(vault: Vault) -> ReadChangingCalls {
    Box::new(move |since_ms, agent| {
        let calls = vault.audit().changing_calls(since_ms, agent);
        let calls = calls.map_err(|cause| cause.to_string())?.into_iter();
        Ok(calls
            .map(|one| ChangingCalls {
                agent: one.name,
                tool: one.tool,
                target: one.target,
                count: one.calls,
                last_ms: one.last_ms,
            })
            .collect())
    })
}
