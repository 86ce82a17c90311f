//! Pairing: a client that presents a code from the owner becomes a new agent.

use std::net::IpAddr;

use serde_json::json;

use super::agent_changes::whole;
use super::owner_context::{OwnerCommand, OwnerContext};
use crate::auth::{AgentSpec, name_of_pairing, open_pairing, redeem_pairing};
use gatewren_base::sys::Secret;
use gatewren_store::vault::{Agent, Vault, VaultError};

/// Why a code is not exchanged.
pub enum PairingRefusal {
    /// It is wrong, used or expired.
    BadCode,
    /// Another agent has got the name since then; the text names it. The code stays valid.
    NameTaken(String),
}

/// Creates a code for a new agent; returns it with its expiry, in milliseconds since 1970.
pub async fn pair(owner: &OwnerContext<'_>, admission: AgentSpec) -> Result<(Secret, u64), String> {
    let name = admission.name.clone();
    let command = OwnerCommand {
        command: "pair",
        target: Some(&name),
        what: whole(&admission),
        change: None,
    };
    let open = async {
        let opened = open_pairing(owner.vault, admission).await;
        opened.map_err(|e| e.to_string())?.ok_or_else(|| {
            "too many pairing codes are open; each expires after 5 minutes, so try again then"
                .to_owned()
        })
    };
    owner.run_audited(command, open).await
}

/// Redeems a code presented from the address `from`, and creates the agent as the owner requested. An invalid code is
/// not recorded, as strangers could otherwise fill the audit.
pub async fn redeem(
    vault: &Vault,
    code: &str,
    from: IpAddr,
) -> Result<Result<(Agent, Secret), PairingRefusal>, String> {
    let name = name_of_pairing(vault, code).map_err(|e| e.to_string())?;
    let Some(name) = name else {
        return Ok(Err(PairingRefusal::BadCode));
    };
    let owner = OwnerContext {
        vault,
        by: "pairing".to_owned(),
        from: from.to_string(),
    };
    let command = OwnerCommand {
        command: "pair redeem",
        target: Some(&name),
        what: json!({ "name": name }),
        change: None,
    };
    let redeem = async {
        match redeem_pairing(vault, code).await {
            Ok(Some(made)) => Ok((Ok(made), "ok")),
            Ok(None) => Ok((Err(PairingRefusal::BadCode), "late")),
            Err(VaultError::AgentNameTaken(holder)) => {
                let taken = PairingRefusal::NameTaken(holder.to_string());
                Ok((Err(taken), "failed"))
            }
            Err(cause) => Err(cause),
        }
    };
    owner.run_audited_as(command, redeem).await
}
