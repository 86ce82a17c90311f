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
    house: &Arc<HelperContext>,
    pump: &mut OutputRelay,
    operation: &Operation,
) -> Result<OperationEnd, OperationRefusal> {
    match operation {
        Operation::HostView {} => print(pump, || Ok(facts::view())).await,
        Operation::HostSpace { places } => {
            let places = places.clone();
            print(pump, move || Ok(facts::spaces(&places))).await
        }
        Operation::HostPrograms { sockets } => {
            let sockets = sockets.clone();
            print(pump, move || Ok(facts::programs(&sockets))).await
        }
        Operation::HostProcesses { order, most } => {
            let (order, most, policy) = (*order, *most, house.policy.now());
            print(pump, move || Ok(processes::seen(order, most, &policy))).await
        }
        Operation::HostFileList(_)
        | Operation::HostFileSearch(_)
        | Operation::HostFileRead(_)
        | Operation::HostFileWrite(_) => files::perform(house, pump, operation).await,
        Operation::HostProbe(asked) => probes::probe(pump, asked).await,
        Operation::HostFirewall {} => probes::firewall(house, pump).await,
        Operation::HostDiskUsage(_)
        | Operation::HostSmart { .. }
        | Operation::HostPools {}
        | Operation::HostBtrfs { .. } => storage::perform(house, pump, operation).await,
        Operation::SshKeys { deed } => ssh_keys::perform(house, pump, deed).await,
        Operation::HostRepair(what) => repair::perform(house, pump, what).await,
        Operation::HostSetting { setting } => settings::perform(house, pump, setting).await,
        Operation::SetNameServers { servers } => name_servers::set(house, pump, servers).await,
        Operation::Wifi { deed } => wifi::perform(house, pump, deed).await,
        Operation::Firmware { deed } => firmware::perform(house, pump, deed).await,
        Operation::HostTunnels {} => tunnels::list(house, pump).await,
        Operation::HostTunnelUp { tunnel } => tunnels::switch(house, pump, (tunnel, "up")).await,
        Operation::HostTunnelDown { tunnel } => {
            tunnels::switch(house, pump, (tunnel, "down")).await
        }
        _ => Err(OperationRefusal::failed("unsupported operation")),
    }
}
