//! Facts of an operation that are known without running it: name, read-only or not, container.

use super::{name::ContainerName, operation::Operation, ssh_keys::SshKeyAction};

impl Operation {
    /// The operation's name in the wire format and in the log.
    #[rustfmt::skip] // a table
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ping {} => "ping", Self::Bounds {} => "bounds",
            Self::HostView {} => "host_view", Self::HostSpace { .. } => "host_space",
            Self::HostPrograms { .. } => "host_programs", Self::HostCommand { .. } => "host_command",
            Self::ContainerCommand { .. } => "container_command", Self::ContainerList {} => "container_list",
            Self::ContainerInfo { .. } => "container_info", Self::ContainerConfig { .. } => "container_config",
            Self::ContainerOsRelease { .. } => "container_os_release", Self::ContainerVitals { .. } => "container_vitals",
            Self::ContainerDisk { .. } => "container_disk", Self::ContainerStart { .. } => "container_start",
            Self::ContainerStop { .. } => "container_stop", Self::ContainerDeed { deed, .. } => deed.name(),
            Self::ContainerCreate { .. } => "container_create", Self::ContainerEvents {} => "container_events",
            Self::Restart { .. } => "restart", Self::Shutdown { .. } => "shutdown",
            Self::CancelShutdown {} => "cancel_shutdown", Self::UpdateCheck { .. } => "update_check",
            Self::UpdateRefresh { .. } => "update_refresh", Self::UpdateApply(_) => "update_apply",
            Self::UpdateHistory { .. } => "update_history", Self::HostLog { .. } => "host_log",
            Self::ContainerLog { .. } => "container_log", Self::HostBoots {} => "host_boots",
            Self::ContainerBoots { .. } => "container_boots", Self::HostProcesses { .. } => "host_processes",
            Self::UnitChange { .. } => "unit_change", Self::ContainerUnitList { .. } => "container_unit_list",
            Self::ContainerUnit { .. } => "container_unit", Self::ContainerUnitChange { .. } => "container_unit_change",
            Self::JobStart { .. } => "job_start", Self::JobList { .. } => "job_list",
            Self::JobWait { .. } => "job_wait", Self::JobOutput { .. } => "job_output",
            Self::JobCancel { .. } => "job_cancel", Self::JobForget { .. } => "job_forget",
            Self::JobEnds {} => "job_ends", Self::HostFileList(_) => "host_file_list",
            Self::HostFileSearch(_) => "host_file_search", Self::HostFileRead(_) => "host_file_read",
            Self::HostFileWrite(_) => "host_file_write", Self::HostProbe(_) => "host_probe",
            Self::HostFirewall {} => "host_firewall", Self::HostDiskUsage(_) => "host_disk_usage",
            Self::HostSmart { .. } => "host_smart", Self::HostPools {} => "host_pools",
            Self::HostBtrfs { .. } => "host_btrfs", Self::HostRepair(_) => "host_repair",
            Self::HostSetting { setting } => setting.name(), Self::HostTunnels {} => "host_tunnels",
            Self::HostTunnelUp { .. } => "host_tunnel_up", Self::HostTunnelDown { .. } => "host_tunnel_down",
            Self::SshKeys { deed } => deed.name(), Self::Backup { deed } => deed.name(),
            Self::Wifi { deed } => deed.name(), Self::SetNameServers { .. } => "set_name_servers",
            Self::Firmware { deed } => deed.name(), Self::Mail(_) => "mail",
        }
    }

    /// Whether the operation is read-only.
    pub fn only_looks(&self) -> bool {
        if let Self::ContainerDeed { deed, .. } = self {
            return deed.only_looks();
        }
        if let Self::Backup { deed } = self {
            return deed.only_looks();
        }
        if let Self::Wifi { deed } = self {
            return deed.only_looks();
        }
        if let Self::Firmware { deed } = self {
            return deed.only_looks();
        }
        !matches!(
            self,
            Self::HostCommand { .. }
                | Self::ContainerCommand { .. }
                | Self::ContainerStart { .. }
                | Self::ContainerStop { .. }
                | Self::ContainerCreate { .. }
                | Self::Restart { .. }
                | Self::Shutdown { .. }
                | Self::CancelShutdown {}
                | Self::UpdateRefresh { .. }
                | Self::UpdateApply(_)
                | Self::UnitChange { .. }
                | Self::ContainerUnitChange { .. }
                | Self::JobStart { .. }
                | Self::JobCancel { .. }
                | Self::JobForget { .. }
                | Self::HostFileWrite(_)
                | Self::HostRepair(_)
                | Self::HostSetting { .. }
                | Self::HostTunnelUp { .. }
                | Self::HostTunnelDown { .. }
                | Self::SetNameServers { .. }
                | Self::Mail(_)
                | Self::SshKeys {
                    deed: SshKeyAction::Add { .. } | SshKeyAction::Remove { .. }
                }
        )
    }

    /// The container that the operation is about, if any.
    #[rustfmt::skip] // a complete table: the compiler demands an entry for every new operation
    pub fn container(&self) -> Option<&ContainerName> {
        match self {
            Self::ContainerCommand { container, .. }
            | Self::ContainerInfo { container }
            | Self::ContainerConfig { container }
            | Self::ContainerOsRelease { container }
            | Self::ContainerDisk { container }
            | Self::ContainerStart { container }
            | Self::ContainerStop { container, .. }
            | Self::ContainerDeed { container, .. }
            | Self::ContainerLog { container, .. }
            | Self::ContainerBoots { container }
            | Self::ContainerUnitList { container }
            | Self::ContainerUnit { container, .. }
            | Self::ContainerUnitChange { container, .. } => Some(container),
            Self::ContainerVitals { container }
            | Self::UpdateCheck { container }
            | Self::UpdateRefresh { container }
            | Self::UpdateHistory { container, .. } => container.as_ref(),
            Self::UpdateApply(order) => order.container.as_ref(),
            Self::Backup { deed } => deed.container(),
            Self::JobStart { operation, .. } => operation.container(),
            Self::Ping {} | Self::HostView {} | Self::HostSpace { .. }
            | Self::HostPrograms { .. } | Self::HostCommand { .. } | Self::ContainerList {}
            | Self::ContainerCreate { .. } | Self::ContainerEvents {} | Self::Bounds {}
            | Self::Restart { .. } | Self::Shutdown { .. } | Self::CancelShutdown {}
            | Self::HostLog { .. } | Self::HostBoots {} | Self::HostProcesses { .. }
            | Self::UnitChange { .. } | Self::JobList { .. } | Self::JobWait { .. }
            | Self::JobOutput { .. } | Self::JobCancel { .. } | Self::JobForget { .. }
            | Self::JobEnds {} | Self::HostFileList(_) | Self::HostFileSearch(_)
            | Self::HostFileRead(_) | Self::HostFileWrite(_) | Self::HostProbe(_)
            | Self::HostFirewall {} | Self::HostDiskUsage(_) | Self::HostSmart { .. }
            | Self::HostPools {} | Self::HostBtrfs { .. } | Self::HostRepair(_)
            | Self::HostSetting { .. } | Self::HostTunnels {} | Self::HostTunnelUp { .. }
            | Self::HostTunnelDown { .. } | Self::SshKeys { .. } | Self::Wifi { .. }
            | Self::SetNameServers { .. } | Self::Firmware { .. } | Self::Mail(_) => None,
        }
    }
}
