//! Network information that only root can get.
//!
//! These are probes of other hosts, which the front may not contact, and the firewall's rules.

use gatewren_wire::operations::{HostProbe, OperationEnd, OperationRefusal};

use crate::context::operation_context::OperationContext;
use crate::context::output_relay::OutputRelay;
use crate::context::tools;
use crate::processes::commands::require_root;
use crate::processes::printing::print;

/// Checks whether another host responds.
pub async fn probe(
    relay: &mut OutputRelay,
    asked: &HostProbe,
) -> Result<OperationEnd, OperationRefusal> {
    let asked = asked.clone();
    print(relay, move || {
        let probed = asked.run(true);
        let probed =
            probed.map_err(|e| OperationRefusal::failed(format!("{}: {e}", asked.address)))?;
        // Plain numbers and strings always serialize.
        Ok(serde_json::to_vec(&probed).unwrap_or_default())
    })
    .await
}

/// Prints the firewall's rules as JSON from `nft`.
pub async fn firewall(
    context: &mut OperationContext<'_>,
) -> Result<OperationEnd, OperationRefusal> {
    require_root()?;
    let tool = tools::HostTool::new("nft", ["--json", "list", "ruleset"]);
    context.run_tool(&tool).await
}
