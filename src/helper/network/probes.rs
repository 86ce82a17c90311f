//! Network information that only root can get.
//!
//! These are probes of other hosts, which the front may not contact, and the firewall's rules.

use std::sync::Arc;

use gatewren_wire::operations::{Ending, HostProbe};

use crate::context::helper_context::House;
use crate::context::output_relay::Pump;
use crate::context::refusal::Refusal;
use crate::context::tools;
use crate::processes::commands::require_root;
use crate::processes::printing::print;

/// Checks whether another host responds.
pub async fn probe(pump: &mut Pump, asked: &HostProbe) -> Result<Ending, Refusal> {
    let asked = asked.clone();
    print(pump, move || {
        let probed = asked.run(true);
        let probed = probed.map_err(|e| Refusal::failed(format!("{}: {e}", asked.address)))?;
        // Plain numbers and strings always serialize.
        Ok(serde_json::to_vec(&probed).unwrap_or_default())
    })
    .await
}

/// Prints the firewall's rules as JSON from `nft`.
pub async fn firewall(house: &Arc<House>, pump: &mut Pump) -> Result<Ending, Refusal> {
    require_root()?;
    let tool = tools::Tool {
        name: "nft",
        args: ["--json", "list", "ruleset"].map(str::to_owned).into(),
    };
    tools::carry(&tool, pump, &house.strays).await
}
