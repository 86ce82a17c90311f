//! Dispatches the operations on the host.

use std::sync::Arc;

use gatewren_wire::operations::{Operation, OperationEnd, OperationRefusal};

use crate::context::operation_context::OperationContext;
use crate::disk_space::{cleanup, container_report, host_report};
use crate::host::processes::ContainerCgroups;
use crate::host::{
    facts, files, firmware, processes, records, repair, settings, ssh_keys, storage,
};
use crate::network::{name_servers, probes, tunnels, wifi};
use crate::processes::printing::print;

/// Performs an operation on the host that is not a command.
pub async fn perform(
    context: &mut OperationContext<'_>,
    operation: &Operation,
) -> Result<OperationEnd, OperationRefusal> {
    match operation {
        Operation::HostView {} => print(context.relay, || Ok(facts::view())).await,
        Operation::HostSpace { places } => {
            let places = places.clone();
            print(context.relay, move || Ok(facts::spaces(&places))).await
        }
        Operation::HostPrograms { sockets } => {
            let sockets = sockets.clone();
            print(context.relay, move || Ok(facts::programs(&sockets))).await
        }
        Operation::HostProcesses { order, most } => {
            let (order, most, policy) = (*order, *most, context.helper.policy.now());
            let containers = ContainerCgroups::of(&context.helper.containers);
            let earlier = Arc::clone(&context.helper.process_times);
            print(context.relay, move || {
                let list = processes::list(order, most, &policy, &containers, &earlier);
                Ok(list)
            })
            .await
        }
        Operation::HostRecord { record } => records::host_record(context, *record).await,
        Operation::HostFileList(_)
        | Operation::HostFileSearch(_)
        | Operation::HostFileRead(_)
        | Operation::HostFileWrite(_) => files::perform(context, operation).await,
        Operation::HostProbe(probe) => probes::probe(context.relay, probe).await,
        Operation::HostFirewall {} => probes::firewall(context).await,
        Operation::HostDiskUsage(_)
        | Operation::HostSmart { .. }
        | Operation::HostPools {}
        | Operation::HostBtrfs { .. } => storage::perform(context, operation).await,
        Operation::HostDiskReport {} => host_report::report(context).await,
        Operation::ContainerDiskReport {} => container_report::report(context).await,
        Operation::DiskCleanup(order) => cleanup::perform(context, order).await,
        Operation::SshKeys { action } => ssh_keys::perform(context, action).await,
        Operation::HostRepair(what) => repair::perform(context, what).await,
        Operation::HostSetting { setting } => settings::perform(context, setting).await,
        Operation::SetNameServers { servers } => name_servers::set(context, servers).await,
        Operation::Wifi { action } => wifi::perform(context, action).await,
        Operation::Firmware { action } => firmware::perform(context, action).await,
        Operation::HostTunnels {} => tunnels::list(context).await,
        Operation::HostTunnelUp { tunnel } => tunnels::switch(context, tunnel, "up").await,
        Operation::HostTunnelDown { tunnel } => tunnels::switch(context, tunnel, "down").await,
        _ => Err(OperationRefusal::failed("unsupported operation")),
    }
}
