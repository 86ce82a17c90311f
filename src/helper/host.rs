//! Dispatches the operations on the host.

use std::sync::Arc;

use gatewren_wire::exec::{Ending, Operation};

use super::{
    firmware, host_files, host_network, host_settings, host_storage, host_view, house::House,
    name_servers, printing::print, processes, pump::Pump, refusal::Refusal, repair, ssh_keys,
    tunnels, wifi,
};

/// Performs an operation on the host that is not a command.
pub async fn perform(
    house: &Arc<House>,
    pump: &mut Pump,
    operation: &Operation,
) -> Result<Ending, Refusal> {
    match operation {
        Operation::HostView {} => print(pump, || Ok(host_view::view())).await,
        Operation::HostSpace { places } => {
            let places = places.clone();
            print(pump, move || Ok(host_view::spaces(&places))).await
        }
        Operation::HostPrograms { sockets } => {
            let sockets = sockets.clone();
            print(pump, move || Ok(host_view::programs(&sockets))).await
        }
        Operation::HostProcesses { order, most } => {
            let (order, most, policy) = (*order, *most, house.policy.now());
            print(pump, move || Ok(processes::seen(order, most, &policy))).await
        }
        Operation::HostFileList(_)
        | Operation::HostFileSearch(_)
        | Operation::HostFileRead(_)
        | Operation::HostFileWrite(_) => host_files::perform(house, pump, operation).await,
        Operation::HostProbe(asked) => host_network::probe(pump, asked).await,
        Operation::HostFirewall {} => host_network::firewall(house, pump).await,
        Operation::HostDiskUsage(_)
        | Operation::HostSmart { .. }
        | Operation::HostPools {}
        | Operation::HostBtrfs { .. } => host_storage::perform(house, pump, operation).await,
        Operation::SshKeys { deed } => ssh_keys::perform(house, pump, deed).await,
        Operation::HostRepair(what) => repair::perform(house, pump, what).await,
        Operation::HostSetting { setting } => host_settings::perform(house, pump, setting).await,
        Operation::SetNameServers { servers } => name_servers::set(house, pump, servers).await,
        Operation::Wifi { deed } => wifi::perform(house, pump, deed).await,
        Operation::Firmware { deed } => firmware::perform(house, pump, deed).await,
        Operation::HostTunnels {} => tunnels::list(house, pump).await,
        Operation::HostTunnelUp { tunnel } => tunnels::switch(house, pump, (tunnel, "up")).await,
        Operation::HostTunnelDown { tunnel } => {
            tunnels::switch(house, pump, (tunnel, "down")).await
        }
        _ => Err(Refusal::failed("unsupported operation")),
    }
}
