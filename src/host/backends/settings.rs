//! The host's settings: changed through the helper, and read back afterwards.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::helper_client::{HelperClient, HostSetting, Operation};

use super::error::BackendError;
use super::host::zone;
use super::request::ask;
use super::source::HostTree;

/// The timeout of a change: compiling a locale takes a small host a minute.
const PATIENCE: Duration = Duration::from_secs(150);

/// The directory of the CPU frequency governors.
const PROCESSORS: &str = "sys/devices/system/cpu";

/// The settings of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HostSettings {
    /// Its host name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// Its descriptive name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pretty_hostname: Option<String>,
    /// Its time zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// The language of programs that start from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// Its keyboard layout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keyboard_layout: Option<String>,
    /// Its keyboard variant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keyboard_variant: Option<String>,
}

/// The CPU frequency governors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Governors {
    /// The current governor; several if processors differ.
    pub current: Vec<String>,
    /// The available governors.
    pub available: Vec<String>,
}

/// The host's compressed swap in memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CompressedSwap {
    /// Whether it is on.
    pub on: bool,
    /// Its devices.
    pub devices: Vec<ZramDevice>,
}

/// A device of compressed swap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ZramDevice {
    /// Its name.
    pub name: String,
    /// Its capacity in bytes.
    pub size_bytes: u64,
    /// The bytes swapped out to it, before compression.
    pub used_bytes: u64,
    /// The memory that they take, in bytes.
    pub memory_bytes: u64,
    /// The compression algorithm, such as `lz4`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<String>,
    /// Its priority; swap of higher priority is used first.
    pub priority: i32,
}

/// Access to the host's settings.
#[derive(Debug, Clone)]
pub struct HostConfiguration {
    helper: HelperClient,
    tree: HostTree,
}

impl HostConfiguration {
    /// Returns access through this helper.
    pub fn new(helper: HelperClient) -> Self {
        let tree = HostTree::of_this_machine();
        Self { helper, tree }
    }

    /// Whether keyboard layouts are installed; a host without a console may have none.
    pub fn have_keyboards() -> bool {
        HostTree::of_this_machine().has("usr/share/X11/xkb/rules/base.lst")
    }

    /// Whether the CPU frequency governor can be set.
    pub fn have_governors() -> bool {
        HostTree::of_this_machine().has(&format!("{PROCESSORS}/cpu0/cpufreq/scaling_governor"))
    }

    /// Whether the kernel can have compressed swap: it has the control, or modules can be loaded.
    /// Not in a container, which uses the host's swap.
    pub fn have_zram() -> bool {
        let tree = HostTree::of_this_machine();
        let may = ["sys/class/zram-control", "usr/sbin/modprobe"];
        may.iter().any(|path| tree.has(path)) && !tree.has("run/systemd/container")
    }

    /// Changes a setting and returns all of them.
    ///
    /// # Errors
    /// When the owner does not allow it, and when the value is not available here.
    pub async fn set(
        &self,
        setting: HostSetting,
        reference: &str,
    ) -> Result<HostSettings, BackendError> {
        let operation = Operation::HostSetting { setting };
        ask(&self.helper, operation, PATIENCE, reference).await?;
        Ok(now(&self.tree))
    }

    /// Sets the governor, if one is given, and returns the current and available ones.
    ///
    /// # Errors
    /// As for another setting.
    pub async fn govern(
        &self,
        setting: Option<HostSetting>,
        reference: &str,
    ) -> Result<Governors, BackendError> {
        if let Some(setting) = setting {
            self.set(setting, reference).await?;
        }
        Ok(governors(&self.tree))
    }

    /// Switches compressed swap on or off, if requested, and returns its state.
    ///
    /// # Errors
    /// As for another setting, and when another program manages it.
    pub async fn compress(
        &self,
        on: Option<bool>,
        reference: &str,
    ) -> Result<CompressedSwap, BackendError> {
        if let Some(on) = on {
            self.set(HostSetting::Zram { on }, reference).await?;
        }
        Ok(read_compressed_swap(&self.tree))
    }
}

/// Reads the zram lines of /proc/swaps (proc(5)), and the kernel's facts about each device.
fn read_compressed_swap(tree: &HostTree) -> CompressedSwap {
    let swaps = tree.text("proc/swaps").unwrap_or_default();
    let devices: Vec<_> = swaps.lines().filter_map(|line| zram(tree, line)).collect();
    CompressedSwap {
        on: !devices.is_empty(),
        devices,
    }
}

fn zram(tree: &HostTree, line: &str) -> Option<ZramDevice> {
    let mut words = line.split_whitespace();
    let name = words.next()?.strip_prefix("/dev/")?;
    let mut numbers = words.skip(1).map(|word| word.parse::<i64>().ok());
    let (size, used, priority) = (numbers.next()??, numbers.next()??, numbers.next()??);
    let bytes = |kib: i64| u64::try_from(kib).unwrap_or_default().saturating_mul(1024);
    let own = |file: &str| tree.text(&format!("sys/block/{name}/{file}"));
    // The third column of mm_stat is the total memory used.
    let taken = own("mm_stat").and_then(|all| all.split_whitespace().nth(2)?.parse().ok());
    let algorithms = own("comp_algorithm").unwrap_or_default();
    let chosen = algorithms
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    name.starts_with("zram").then(|| ZramDevice {
        name: name.to_owned(),
        size_bytes: bytes(size),
        used_bytes: bytes(used),
        memory_bytes: taken.unwrap_or_default(),
        algorithm: chosen.map(|(chosen, _)| chosen.to_owned()),
        priority: i32::try_from(priority).unwrap_or_default(),
    })
}

fn now(tree: &HostTree) -> HostSettings {
    let value = |file: &str, key: &str| read_assignment(&tree.text(file)?, key);
    HostSettings {
        hostname: tree.word("etc/hostname"),
        pretty_hostname: value("etc/machine-info", "PRETTY_HOSTNAME"),
        timezone: zone(tree),
        language: value("etc/locale.conf", "LANG").or_else(|| value("etc/default/locale", "LANG")),
        keyboard_layout: value("etc/default/keyboard", "XKBLAYOUT"),
        keyboard_variant: value("etc/default/keyboard", "XKBVARIANT"),
    }
}

/// Returns the value of a shell assignment, as in os-release(5); `None` if it is empty.
fn read_assignment(text: &str, key: &str) -> Option<String> {
    let lines = text.lines().filter_map(|line| line.split_once('='));
    let mut values = lines.filter(|(name, _)| name.trim() == key);
    let (_, value) = values.next_back()?;
    let value = value.trim();
    let inside = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
    let value = inside('"').or_else(|| inside('\'')).unwrap_or(value);
    let plain: String = value
        .replace('\\', "")
        .chars()
        .filter(|c| !c.is_control())
        .collect();
    (!plain.is_empty()).then_some(plain)
}

fn governors(tree: &HostTree) -> Governors {
    let cpus = tree.names(PROCESSORS);
    let words = |file: &str| {
        let all = cpus.iter().filter_map(|cpu| {
            let text = tree.text(&format!("{PROCESSORS}/{cpu}/cpufreq/{file}"))?;
            Some(
                text.split_whitespace()
                    .map(str::to_owned)
                    .collect::<Vec<_>>(),
            )
        });
        let mut all: Vec<String> = all.flatten().collect();
        all.sort();
        all.dedup();
        all
    };
    Governors {
        current: words("scaling_governor"),
        available: words("scaling_available_governors"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use gatewren_base::sys::Scratch;

    #[test]
    fn a_value_is_read_without_what_a_shell_needs() {
        let text =
            "# x\nPRETTY_HOSTNAME=\"Lena\\'s \\\"box\\\"\"\nLANG=de_AT.UTF-8\nXKBVARIANT=\"\"\n";
        assert_eq!(
            read_assignment(text, "PRETTY_HOSTNAME").as_deref(),
            Some("Lena's \"box\"")
        );
        assert_eq!(
            read_assignment(text, "LANG").as_deref(),
            Some("de_AT.UTF-8")
        );
        assert_eq!(read_assignment(text, "XKBVARIANT"), None);
        assert_eq!(read_assignment(text, "XKBMODEL"), None);
    }

    // A tree in the layout of sysfs: on test machines the governor cannot be set.
    #[test]
    fn governors_are_those_of_all_processors() {
        let scratch = Scratch::new();
        for (cpu, now) in [("cpu0", "powersave\n"), ("cpu1", "performance\n")] {
            let place = scratch.join(PROCESSORS).join(cpu).join("cpufreq");
            fs::create_dir_all(&place).unwrap();
            fs::write(place.join("scaling_governor"), now).unwrap();
            fs::write(
                place.join("scaling_available_governors"),
                "performance powersave \n",
            )
            .unwrap();
        }
        let found = governors(&HostTree::below(scratch.path()));
        assert_eq!(found.current, ["performance", "powersave"]);
        assert_eq!(found.available, found.current);
    }

    // /proc/swaps and sysfs of Linux 6.18 with a device in use.
    #[test]
    fn compressed_swap_is_told_with_what_it_takes() {
        let scratch = Scratch::new();
        fs::create_dir_all(scratch.join("proc")).unwrap();
        fs::create_dir_all(scratch.join("sys/block/zram1")).unwrap();
        let tree = HostTree::below(scratch.path());
        assert!(!read_compressed_swap(&tree).on);
        let swaps = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n\
                     /dev/sda2                               partition\t999996\t\t8\t\t-2\n\
                     /dev/zram1                              partition\t65532\t\t2048\t\t100\n";
        fs::write(scratch.join("proc/swaps"), swaps).unwrap();
        fs::write(
            scratch.join("sys/block/zram1/comp_algorithm"),
            "lzo-rle lzo [lz4] \n",
        )
        .unwrap();
        fs::write(
            scratch.join("sys/block/zram1/mm_stat"),
            " 2097152     8192    65536        0    65536      510        0        0        0\n",
        )
        .unwrap();
        let device = ZramDevice {
            name: "zram1".into(),
            size_bytes: 65532 * 1024,
            used_bytes: 2048 * 1024,
            memory_bytes: 65536,
            algorithm: Some("lz4".into()),
            priority: 100,
        };
        assert_eq!(read_compressed_swap(&tree).devices, [device]);
    }
}
