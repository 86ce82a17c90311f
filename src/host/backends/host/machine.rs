//! The host that gatewren runs on, and the queries about it.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tokio::task::spawn_blocking;

use crate::helper_client::HelperClient;
use gatewren_base::sys::{EarlierSamples, LEAST_BETWEEN, neighbors, rfc3339};

use super::super::error::{BackendError, ErrorKind};
use super::super::source::HostTree;
use super::addresses::{ReachableAddress, addresses, lasting_addresses};
use super::clock::{self, ServerTime};
use super::counters::HostCounters;
use super::disks::{Disk, disks};
use super::facts::{self, ServerInfo};
use super::host_view_cache::HostViewCache;
use super::interfaces::{Interface, interfaces};
use super::listeners::{HostListener, OpenPorts};
use super::metrics::{self, HostMetrics};
use super::mounts::{MountedFilesystem, mounted_filesystems};
use super::neighbors::{Neighbor, list_neighbors};
use super::resolver::{Resolver, resolver};
use super::routes::{Route, routes};
use super::temperatures::{SensorSelection, Temperature, temperatures};
use super::traffic::{NetworkTraffic, traffic};
use super::usage::{CpuTime, boot_time_s};

/// The timeout of a query: reading from a failing disk blocks. After a timeout the query itself
/// continues, but its result is discarded.
const PATIENCE: Duration = Duration::from_secs(10);

/// The host that gatewren runs on.
#[derive(Debug)]
pub struct Host {
    tree: HostTree,
    view_cache: HostViewCache,
    /// Read once: the kernel computes it from the clock, which may be set and corrected.
    boot_time: OnceLock<Option<String>>,
    cpu_samples: EarlierSamples<CpuTime>,
    started: Instant,
}

/// All stable facts about the host, and its disk usage and temperatures.
#[derive(Debug, Clone)]
pub struct HostFacts {
    /// What the host is.
    pub info: ServerInfo,
    /// Its time zone.
    pub zone: Option<String>,
    /// Whether its clock is synchronised.
    pub ntp_synced: Option<bool>,
    /// Its network interfaces, sorted by name.
    pub interfaces: Vec<Interface>,
    /// Its routes, the default ones first.
    pub routes: Vec<Route>,
    /// Its open ports, sorted, without the programs that have them.
    pub listeners: Vec<HostListener>,
    /// Its DNS resolver.
    pub resolver: Resolver,
    /// Its disks, sorted by name.
    pub disks: Vec<Disk>,
    /// Its file systems, sorted by path, with their sizes where available.
    pub mounts: Vec<MountedFilesystem>,
    /// Its temperatures, sorted by sensor; without those of sensors that would wake a disk.
    pub temperatures: Vec<Temperature>,
}

impl Host {
    /// Returns this host, with a helper for what the sandbox hides.
    pub fn new(helper: HelperClient) -> Self {
        Self::of(HostTree::of_this_machine(), HostViewCache::of(helper))
    }

    /// Returns this host as this process sees it.
    #[cfg(test)]
    pub fn unaided() -> Self {
        Self::of(HostTree::of_this_machine(), HostViewCache::default())
    }

    /// Returns a host recorded below a directory; its clock and its interfaces' addresses are this
    /// host's.
    #[cfg(test)]
    pub fn recorded(root: &std::path::Path) -> Self {
        Self::of(HostTree::below(root), HostViewCache::default())
    }

    /// Returns what the host is.
    pub async fn info(self: &Arc<Self>) -> Result<ServerInfo, BackendError> {
        self.ask(Self::look_at_info).await
    }

    /// Returns the time.
    pub async fn time(self: &Arc<Self>) -> Result<ServerTime, BackendError> {
        self.learn().await;
        self.ask(Self::look_at_clock).await
    }

    /// Returns the current metrics. Without an earlier sample of the CPU it takes 200 ms, as that sample is then made.
    pub async fn metrics(self: &Arc<Self>) -> Result<HostMetrics, BackendError> {
        let earlier = if let Some((earlier, _)) = self.cpu_samples.earlier() {
            earlier
        } else {
            let earlier = metrics::cpu_time(&self.tree);
            // The next call may come at once, when this one's newest sample is too new.
            self.cpu_samples.keep(earlier);
            tokio::time::sleep(LEAST_BETWEEN).await;
            earlier
        };
        self.learn().await;
        self.ask(move |host| {
            host.cpu_samples.keep(metrics::cpu_time(&host.tree));
            HostMetrics::since(
                &host.tree,
                earlier,
                &host.view_cache.current_view(&host.tree),
            )
        })
        .await
    }

    /// Returns its counters since the boot. Cheap: neither the helper nor a file system is asked.
    pub async fn counters(self: &Arc<Self>) -> Result<HostCounters, BackendError> {
        self.ask(|host| {
            let counters = HostCounters::read(&host.tree);
            host.cpu_samples.keep(counters.cpu);
            counters
        })
        .await
    }

    /// Returns its network interfaces, sorted by name, with the traffic of each since the boot.
    pub async fn interfaces(
        self: &Arc<Self>,
    ) -> Result<Vec<(Interface, Option<NetworkTraffic>)>, BackendError> {
        self.ask(|host| {
            let counters = host.tree.text("proc/net/dev").unwrap_or_default();
            let counters = traffic(&counters);
            let counted = |interface: Interface| {
                let at = counters.binary_search_by(|one| one.interface.cmp(&interface.name));
                let traffic = at.ok().and_then(|at| counters.get(at)).cloned();
                (interface, traffic)
            };
            host.look_at_interfaces().into_iter().map(counted).collect()
        })
        .await
    }

    /// Returns its routes, the default ones first.
    pub async fn routes(self: &Arc<Self>) -> Result<Vec<Route>, BackendError> {
        self.ask(|host| routes(&host.tree)).await
    }

    /// Returns the machines on its networks that the kernel knows, sorted by interface and address.
    pub async fn neighbors(self: &Arc<Self>) -> Result<Vec<Neighbor>, BackendError> {
        let found = self.ask(|_| neighbors()).await?;
        found.map(list_neighbors).map_err(|cause| {
            let words = format!("the kernel's list of neighbours cannot be read: {cause}");
            BackendError::new(ErrorKind::Failed, words)
        })
    }

    /// Returns its open ports, sorted by protocol, port and address, with their programs where
    /// known.
    pub async fn listeners(self: &Arc<Self>) -> Result<Vec<HostListener>, BackendError> {
        let open = self.ask(|host| OpenPorts::of(&host.tree)).await?;
        let by_helper = self.view_cache.programs(open.sockets()).await;
        self.ask(move |host| {
            let programs = by_helper.unwrap_or_else(|| open.programs(&host.tree));
            open.describe(&host.tree, &programs)
        })
        .await
    }

    /// Returns its name, and the addresses at which other machines reach it.
    pub async fn addresses(
        self: &Arc<Self>,
    ) -> Result<(String, Vec<ReachableAddress>), BackendError> {
        self.ask(|host| {
            let all = lasting_addresses(&host.tree).into_iter();
            let all = all.map(ReachableAddress::from).collect();
            (facts::hostname(&host.tree), all)
        })
        .await
    }

    /// Returns its disks, sorted by name, and its file systems, sorted by path.
    pub async fn disks(
        self: &Arc<Self>,
    ) -> Result<(Vec<Disk>, Vec<MountedFilesystem>), BackendError> {
        self.learn().await;
        self.ask(|host| {
            let mounts = host.look_at_mounts();
            (disks(&host.tree, &mounts), mounts)
        })
        .await
    }

    /// Has the helper read what the sandbox hides. If the helper does not answer, the last result
    /// stays.
    pub async fn learn(&self) {
        self.view_cache.refresh().await;
    }

    /// Reads all facts; blocks as long as a disk does.
    pub fn facts(&self) -> HostFacts {
        let mounts = self.look_at_mounts();
        HostFacts {
            info: self.look_at_info(),
            zone: clock::zone(&self.tree),
            ntp_synced: self.ntp_synced(),
            interfaces: self.look_at_interfaces(),
            routes: routes(&self.tree),
            listeners: OpenPorts::of(&self.tree).describe(&self.tree, &BTreeMap::new()),
            resolver: resolver(&self.tree),
            disks: disks(&self.tree, &mounts),
            temperatures: temperatures(&self.tree, SensorSelection::Quiet),
            mounts,
        }
    }

    fn of(tree: HostTree, view_cache: HostViewCache) -> Self {
        Self {
            tree,
            view_cache,
            boot_time: OnceLock::new(),
            cpu_samples: EarlierSamples::default(),
            started: Instant::now(),
        }
    }

    fn look_at_info(&self) -> ServerInfo {
        facts::info(&self.tree, self.boot_time())
    }

    fn look_at_clock(&self) -> ServerTime {
        ServerTime {
            time: clock::utc(),
            zone: clock::zone(&self.tree),
            ntp_synced: self.ntp_synced(),
            boot_time: self.boot_time(),
            uptime_s: facts::uptime_s(&self.tree),
            gatewren_uptime_s: self.started.elapsed().as_secs(),
        }
    }

    fn look_at_interfaces(&self) -> Vec<Interface> {
        interfaces(&self.tree, &addresses(&self.tree))
    }

    fn look_at_mounts(&self) -> Vec<MountedFilesystem> {
        mounted_filesystems(&self.view_cache.current_view(&self.tree))
    }

    fn ntp_synced(&self) -> Option<bool> {
        let answer = self.view_cache.current_view(&self.tree).clock_synchronised;
        answer.or_else(|| clock::ntp_synced(&self.tree))
    }

    fn boot_time(&self) -> Option<String> {
        let read = || {
            let seconds = boot_time_s(&self.tree.text("proc/stat")?)?;
            Some(rfc3339(seconds.saturating_mul(1000)))
        };
        self.boot_time.get_or_init(read).clone()
    }

    /// Runs a query on a separate thread, because files on a failing disk may block for long or
    /// forever.
    async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        question: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T, BackendError> {
        let host = self.clone();
        let answer = spawn_blocking(move || question(&host));
        let failed = |words: &str| BackendError::new(ErrorKind::Failed, words);
        let answer = tokio::time::timeout(PATIENCE, answer).await;
        let answer = answer.map_err(|_| {
            failed("the machine did not answer within 10 s; a disk or file system of it may hang")
        })?;
        answer.map_err(|_| failed("the task that reads the machine's state was aborted"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn this_machine_is_known() {
        let host = Arc::new(Host::unaided());
        let info = host.info().await.unwrap();
        assert!(!info.hostname.is_empty() && !info.kernel.is_empty());
        assert!(info.cpu.cores >= 1 && info.memory_bytes > 1 << 20 && info.uptime_s > 0);
        assert!(info.boot_time.is_some_and(|time| time.ends_with('Z')));
        assert_eq!(info.gatewren.version, env!("CARGO_PKG_VERSION"));
        let time = host.time().await.unwrap();
        assert!(time.time.ends_with('Z') && time.uptime_s > 0, "{time:?}");
        let interfaces = host.interfaces().await.unwrap();
        let loopback = interfaces.iter().find(|(one, _)| one.name == "lo").unwrap();
        assert!(
            loopback.1.is_some() && !loopback.0.is_permanent(),
            "{loopback:?}"
        );
        let (_, mounts) = host.disks().await.unwrap();
        assert!(mounts.iter().any(|(point, _)| point.path == "/"));
    }

    #[tokio::test]
    async fn this_machine_is_measured() {
        let host = Arc::new(Host::unaided());
        assert!(host.cpu_samples.earlier().is_none());
        let metrics = host.metrics().await.unwrap();
        assert!(
            host.cpu_samples.earlier().is_some(),
            "the next call would wait"
        );
        assert!((0.0..=100.0).contains(&metrics.cpu_percent), "{metrics:?}");
        assert!(metrics.memory.total_bytes > metrics.memory.available_bytes);
        let network = &metrics.network;
        assert!(network.iter().any(|one| one.interface == "lo"));
        assert!(network.is_sorted_by_key(|one| &one.interface));
    }
}
