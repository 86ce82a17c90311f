//! Dispatches the operations on the host.

use std::sync::Arc;

use gatewren_wire::operations::{Operation, OperationEnd};

use crate::context::helper_context::HelperContext;
use crate::context::output_relay::OutputRelay;
use crate::context::refusal::OperationRefusal;
use crate::host::{facts, files, firmware, processes, repair, settings, ssh_keys, storage};
use crate::network::{name_servers, probes, tunnels, wifi};
use crate::processes::printing::print;

/// Performs an operation on the host that is not a command.
pub async fn perform(
    helper: &Arc<HelperContext>,
    relay: &mut OutputRelay,
    operation: &Operation,
) -> Result<OperationEnd, OperationRefusal> {
    match operation {
        Operation::HostView {} => print(relay, || Ok(facts::view())).await,
        Operation::HostSpace { places } => {
            let places = places.clone();
            print(relay, move || Ok(facts::spaces(&places))).await
        }
        Operation::HostPrograms { sockets } => {
            let sockets = sockets.clone();
            print(relay, move || Ok(facts::programs(&sockets))).await
        }
        Operation::HostProcesses { order, most } => {
            let (order, most, policy) = (*order, *most, helper.policy.now());
            print(relay, move || Ok(processes::seen(order, most, &policy))).await
        }
        Operation::HostFileList(_)
        | Operation::HostFileSearch(_)
        | Operation::HostFileRead(_)
        | Operation::HostFileWrite(_) => files::perform(helper, relay, operation).await,
        Operation::HostProbe(asked) => probes::probe(relay, asked).await,
        Operation::HostFirewall {} => probes::firewall(helper, relay).await,
        Operation::HostDiskUsage(_)
        | Operation::HostSmart { .. }
        | Operation::HostPools {}
        | Operation::HostBtrfs { .. } => storage::perform(helper, relay, operation).await,
        Operation::SshKeys { deed } => ssh_keys::perform(helper, relay, deed).await,
        Operation::HostRepair(what) => repair::perform(helper, relay, what).await,
        Operation::HostSetting { setting } => settings::perform(helper, relay, setting).await,
        Operation::SetNameServers { servers } => name_servers::set(helper, relay, servers).await,
        Operation::Wifi { deed } => wifi::perform(helper, relay, deed).await,
        Operation::Firmware { deed } => firmware::perform(helper, relay, deed).await,
        Operation::HostTunnels {} => tunnels::list(helper, relay).await,
        Operation::HostTunnelUp { tunnel } => tunnels::switch(helper, relay, (tunnel, "up")).await,
        Operation::HostTunnelDown { tunnel } => {
            tunnels::switch(helper, relay, (tunnel, "down")).await
        }
        _ => Err(OperationRefusal::failed("unsupported operation")),
    }
}
