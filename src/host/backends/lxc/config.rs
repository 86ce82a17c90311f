//! Parses a container's definition in LXC's or Proxmox's format.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// The maximum number of mounts and of networks in a result; a definition may hold any number.
const MOST: usize = 64;

/// A container's configuration: only known keys, none that may hold a secret.
///
/// Files that it includes are not followed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct ContainerConfig {
    /// Whether it starts when the host boots.
    #[serde(skip)]
    pub autostart: bool,
    /// Whether its root is an unprivileged user on the host.
    #[serde(skip)]
    pub unprivileged: bool,
    /// The container's host name.
    #[serde(skip)]
    pub hostname: Option<String>,
    /// The architecture, such as `amd64`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
    /// The location of its root file system, such as `dir:/var/lib/lxc/web/rootfs` or `local-lvm:vm-101-disk-0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rootfs: Option<String>,
    /// Its networks, in their order.
    pub networks: Vec<ContainerNetwork>,
    /// Host paths mounted inside, sorted by the path inside.
    pub mounts: Vec<ContainerMount>,
    /// The memory limit in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_limit_bytes: Option<u64>,
    /// The CPU limit in percent of one CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_limit_percent: Option<u64>,
    /// The process limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes_limit: Option<u64>,
    /// Seconds to wait at boot after its start, before the next container starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_delay_s: Option<u64>,
    /// Its position in the start order at boot, highest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_order: Option<i64>,
}

/// A network of a container, as it is defined.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct ContainerNetwork {
    /// Its kind, such as `veth`; `none` shares the host's network, `empty` has only the loopback.
    pub kind: String,
    /// The interface inside, such as `eth0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// The host's bridge or interface that it is connected to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Its hardware address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware_address: Option<String>,
    /// Addresses set in the configuration, such as `10.0.3.5/24` or `dhcp`.
    pub addresses: Vec<String>,
}

/// A mount of the host inside a container.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct ContainerMount {
    /// The path inside.
    pub target: String,
    /// The source: a path of the host, or a volume.
    pub source: String,
}

impl ContainerConfig {
    /// Parses a definition: lxc.container.conf(5), or the main part of a pct.conf(5) file.
    pub fn parse(text: &str) -> Self {
        let mut config = Self::default();
        let mut networks: BTreeMap<u32, ContainerNetwork> = BTreeMap::new();
        // After a header follows a snapshot of Proxmox.
        let lines = text.lines().map(str::trim);
        for line in lines.take_while(|line| !line.starts_with('[')) {
            let Some((key, value)) = line.split_once(['=', ':']) else {
                continue;
            };
            let (key, value) = (key.trim(), value.trim());
            match key.strip_prefix("lxc.") {
                Some(key) => config.take_lxc(key, unquoted(value), &mut networks),
                None => config.take_proxmox(key, value, &mut networks),
            }
        }
        config.networks = networks.into_values().take(MOST).collect();
        config.mounts.sort();
        config.mounts.truncate(MOST);
        config
    }

    fn take_lxc(&mut self, key: &str, value: &str, networks: &mut BTreeMap<u32, ContainerNetwork>) {
        match key {
            "start.auto" => self.autostart = value == "1",
            // An empty value resets the earlier ones.
            "idmap" | "id_map" => self.unprivileged = !value.is_empty(),
            "uts.name" => self.hostname = set(value),
            "arch" => self.architecture = set(value),
            "rootfs.path" => self.rootfs = set(value),
            "mount.entry" if value.is_empty() => self.mounts.clear(),
            "mount.entry" => self.mounts.extend(bind_mount(value)),
            "cgroup2.memory.max" | "cgroup.memory.limit_in_bytes" => {
                self.memory_limit_bytes = bytes(value);
            }
            "cgroup2.cpu.max" => self.cpu_limit_percent = quota(value),
            "cgroup2.pids.max" | "cgroup.pids.max" => self.processes_limit = value.parse().ok(),
            "start.delay" => self.start_delay_s = value.parse().ok(),
            "start.order" => self.start_order = value.parse().ok(),
            _ => {
                let numbered = key.strip_prefix("net.").and_then(|rest| {
                    let (number, key) = rest.split_once('.')?;
                    Some((number.parse().ok()?, key))
                });
                if let Some((number, key)) = numbered {
                    networks.entry(number).or_default().take_lxc(key, value);
                }
            }
        }
    }

    fn take_proxmox(
        &mut self,
        key: &str,
        value: &str,
        networks: &mut BTreeMap<u32, ContainerNetwork>,
    ) {
        let first = || value.split(',').next().and_then(set);
        match key {
            "onboot" => self.autostart = value == "1",
            "unprivileged" => self.unprivileged = value == "1",
            "hostname" => self.hostname = set(value),
            "arch" => self.architecture = set(value),
            "rootfs" => self.rootfs = first(),
            "memory" => {
                let mebibytes = value.parse::<u64>().ok();
                self.memory_limit_bytes = mebibytes.and_then(|many| many.checked_mul(1 << 20));
            }
            // The number of cores limits it too; a lower CPU limit limits it further.
            "cores" if self.cpu_limit_percent.is_none() => self.cpu_limit_percent = percent(value),
            "cpulimit" => self.cpu_limit_percent = percent(value).or(self.cpu_limit_percent),
            _ => {
                let number = |prefix| key.strip_prefix(prefix)?.parse::<u32>().ok();
                if let Some(number) = number("net") {
                    networks.insert(number, ContainerNetwork::proxmox(value));
                } else if number("mp").is_some()
                    && let (Some(source), Some(target)) = (first(), option(value, "mp"))
                {
                    self.mounts.push(ContainerMount { target, source });
                }
            }
        }
    }
}

impl ContainerNetwork {
    fn take_lxc(&mut self, key: &str, value: &str) {
        match key {
            "type" => value.clone_into(&mut self.kind),
            "name" => self.interface = set(value),
            "link" => self.link = set(value),
            "hwaddr" => self.hardware_address = set(value),
            "ipv4.address" | "ipv6.address" if self.addresses.len() < MOST => {
                self.addresses.extend(set(value));
            }
            _ => {}
        }
    }

    /// Parses `name=eth0,bridge=vmbr0,hwaddr=…,ip=dhcp,ip6=auto,type=veth`.
    fn proxmox(value: &str) -> Self {
        Self {
            kind: option(value, "type").unwrap_or_else(|| "veth".to_owned()),
            interface: option(value, "name"),
            link: option(value, "bridge"),
            hardware_address: option(value, "hwaddr"),
            addresses: ["ip", "ip6"]
                .iter()
                .filter_map(|key| option(value, key))
                .collect(),
        }
    }
}

/// Parses a line of fstab(5): source, target, kind, options. Only host paths count.
fn bind_mount(value: &str) -> Option<ContainerMount> {
    let mut words = value.split_whitespace();
    let (source, target) = (words.next()?, words.next()?);
    let of_the_box = source.starts_with('/');
    of_the_box.then(|| ContainerMount {
        target: format!("/{}", target.trim_start_matches('/')),
        source: source.to_owned(),
    })
}

/// Returns a value of LXC's format without a pair of quotation marks around it, which LXC removes too.
fn unquoted(value: &str) -> &str {
    let within = |mark| value.strip_prefix(mark)?.strip_suffix(mark);
    within('"').or_else(|| within('\'')).unwrap_or(value)
}

fn set(value: &str) -> Option<String> {
    (!value.is_empty()).then(|| value.to_owned())
}

/// Returns a value from `key=value,key=value`.
fn option(list: &str, key: &str) -> Option<String> {
    let mut pairs = list.split(',').filter_map(|pair| pair.split_once('='));
    pairs
        .find(|(name, _)| *name == key)
        .and_then(|(_, value)| set(value))
}

/// Parses a number of bytes such as `512M`, as the kernel does.
fn bytes(value: &str) -> Option<u64> {
    let digits = value.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match value.get(digits.len()..)? {
        "" => 1,
        "K" | "k" => 1 << 10,
        "M" | "m" => 1 << 20,
        "G" | "g" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// Returns percent of one processor from `150000 100000`.
fn quota(value: &str) -> Option<u64> {
    let (quota, period) = value.split_once(' ')?;
    let quota: u64 = quota.parse().ok()?;
    quota
        .checked_mul(100)?
        .checked_div(period.trim().parse().ok()?)
}

/// Returns percent of one processor from a number of processors such as `1.5`; `None` for 0, which
/// is no limit.
fn percent(processors: &str) -> Option<u64> {
    let (whole, part) = processors.split_once('.').unwrap_or((processors, ""));
    let hundredths: String = part.chars().chain("00".chars()).take(2).collect();
    let whole = whole.parse::<u64>().ok()?.checked_mul(100)?;
    let percent = whole.checked_add(hundredths.parse().ok()?)?;
    (percent > 0).then_some(percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_says_whether_it_starts_and_who_its_root_is() {
        let idmap = "lxc.idmap = u 0 100000 65536\nlxc.idmap = g 0 100000 65536\n";
        for (text, expected) in [
            ("lxc.start.auto = 1\n", (true, false)),
            ("lxc.start.auto=1\nlxc.start.auto = 0\n", (false, false)),
            ("# lxc.start.auto = 1\n", (false, false)),
            (idmap, (false, true)),
            (&format!("{idmap}lxc.idmap =\n"), (false, false)),
            ("", (false, false)),
        ] {
            let config = ContainerConfig::parse(text);
            assert_eq!((config.autostart, config.unprivileged), expected, "{text}");
        }
    }

    #[test]
    fn a_definition_of_lxc() {
        let text = "lxc.include = /usr/share/lxc/config/debian.common.conf\nlxc.arch = amd64\n\
                    lxc.uts.name = \"web\"\nlxc.rootfs.path = dir:/var/lib/lxc/web/rootfs\n\
                    lxc.net.0.type = veth\nlxc.net.0.link = lxcbr0\nlxc.net.0.name = eth0\n\
                    lxc.net.0.hwaddr = 00:16:3e:00:00:01\nlxc.net.0.ipv4.address = 10.0.3.5/24\n\
                    lxc.environment = TOKEN=secret\nlxc.cgroup2.memory.max = 512M\n\
                    lxc.cgroup2.cpu.max = 150000 100000\n\
                    lxc.mount.entry = /srv/data data none bind 0 0\n\
                    lxc.mount.entry = tmpfs tmp tmpfs defaults 0 0\n";
        let config = ContainerConfig::parse(text);
        let network = ContainerNetwork {
            kind: "veth".into(),
            interface: Some("eth0".into()),
            link: Some("lxcbr0".into()),
            hardware_address: Some("00:16:3e:00:00:01".into()),
            addresses: vec!["10.0.3.5/24".into()],
        };
        let mount = ContainerMount {
            target: "/data".into(),
            source: "/srv/data".into(),
        };
        assert_eq!(
            (config.networks, config.mounts),
            (vec![network], vec![mount])
        );
        assert_eq!(config.hostname.as_deref(), Some("web"));
        assert_eq!(
            config.rootfs.as_deref(),
            Some("dir:/var/lib/lxc/web/rootfs")
        );
        assert_eq!(config.memory_limit_bytes, Some(512 << 20));
        assert_eq!(config.cpu_limit_percent, Some(150));
        let shown = serde_json::to_string(&ContainerConfig::parse(text)).unwrap();
        assert!(!shown.contains("secret"), "{shown}");
    }

    #[test]
    fn a_definition_of_proxmox() {
        let text = "#a note: with a colon\narch: amd64\ncores: 2\ncpulimit: 0.5\nfeatures: nesting=1\n\
                    hostname: web\nmemory: 512\nmp0: /srv/data,mp=/data,ro=1\n\
                    net0: name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:01,ip=dhcp,type=veth\n\
                    onboot: 1\nostype: debian\nrootfs: local-lvm:vm-101-disk-0,size=8G\nswap: 512\n\
                    unprivileged: 1\nlxc.mount.entry: /dev/dri dev/dri none bind,create=dir\n\n\
                    [before]\nhostname: old\nonboot: 0\n";
        let config = ContainerConfig::parse(text);
        assert_eq!(config.hostname.as_deref(), Some("web"));
        assert!(config.autostart && config.unprivileged);
        assert_eq!(config.rootfs.as_deref(), Some("local-lvm:vm-101-disk-0"));
        assert_eq!(config.memory_limit_bytes, Some(512 << 20));
        assert_eq!(config.cpu_limit_percent, Some(50));
        let targets: Vec<_> = config.mounts.iter().map(|m| m.target.as_str()).collect();
        assert_eq!(targets, ["/data", "/dev/dri"]);
        let [network] = config.networks.as_slice() else {
            panic!("{:?}", config.networks);
        };
        assert_eq!(network.link.as_deref(), Some("vmbr0"));
        assert_eq!(network.addresses, ["dhcp"]);
    }

    #[test]
    fn odd_definitions_do_no_harm() {
        for odd in [
            "=",
            ":::",
            "lxc.net.x.type = veth",
            "lxc.net.99999999999.type = veth",
            "net: x",
            "mp0: x",
            "memory: 99999999999999999999",
            "cores: -1",
            "cpulimit: 0",
            "lxc.cgroup2.cpu.max = 1 0",
            "lxc.cgroup2.memory.max = 99999999999999999999G",
            "\u{0}",
        ] {
            assert_eq!(
                ContainerConfig::parse(odd),
                ContainerConfig::default(),
                "{odd}"
            );
        }
    }
}
