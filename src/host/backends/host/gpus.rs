//! The graphics processors on the PCI bus and on other buses.

use schemars::JsonSchema;
use serde::Serialize;

use super::super::source::{self, HostTree};

/// The common vendors.
const MAKERS: [(&str, &str); 11] = [
    ("0x1002", "AMD"),
    ("0x102b", "Matrox"),
    ("0x10de", "NVIDIA"),
    ("0x1234", "QEMU"),
    ("0x1414", "Microsoft"),
    ("0x15ad", "VMware"),
    ("0x1a03", "ASPEED"),
    ("0x1af4", "virtio"),
    ("0x1b36", "QEMU"),
    ("0x8086", "Intel"),
    ("0x80ee", "VirtualBox"),
];

/// The prefix of the PCI classes of display controllers.
const DISPLAY: &str = "0x03";

/// A graphics processor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Gpu {
    /// Its address, such as the PCI address `0000:01:00.0`.
    pub address: String,
    /// The vendor's name, or its number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vendor: Option<String>,
    /// The model, or its number in hex, such as `0x1b80`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The kernel driver in use; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
}

/// Returns all graphics processors, sorted by address.
pub fn gpus(tree: &HostTree) -> Vec<Gpu> {
    let mut all: Vec<Gpu> = tree
        .names("sys/bus/pci/devices")
        .into_iter()
        .filter_map(|address| read_pci_gpu(tree, address))
        .collect();
    all.extend(find_other_gpus(tree));
    all.sort_by(|a, b| a.address.cmp(&b.address));
    all.dedup_by(|a, b| a.address == b.address);
    all
}

fn read_pci_gpu(tree: &HostTree, address: String) -> Option<Gpu> {
    let file = |what: &str| format!("sys/bus/pci/devices/{address}/{what}");
    let class = tree.word(&file("class"))?;
    class.starts_with(DISPLAY).then_some(())?;
    let vendor = tree.word(&file("vendor"));
    let known = |number: &String| MAKERS.iter().find(|(maker, _)| maker == number);
    let name = vendor.as_ref().and_then(known);
    let model = nvidia_model(tree, &address).or_else(|| tree.word(&file("device")));
    Some(Gpu {
        vendor: name.map(|(_, name)| (*name).to_owned()).or(vendor),
        model,
        driver: tree.link_name(&file("driver")),
        address,
    })
}

/// NVIDIA's is the only driver that reports the card's name.
fn nvidia_model(tree: &HostTree, address: &str) -> Option<String> {
    let text = tree.text(&format!("proc/driver/nvidia/gpus/{address}/information"))?;
    source::label(source::field(&text, "Model", ':')?)
}

/// Returns graphics processors on a board's chip. Cards on the PCI bus are listed here too and are
/// skipped.
fn find_other_gpus(tree: &HostTree) -> Vec<Gpu> {
    let cards = tree.names("sys/class/drm").into_iter();
    let card = |card: String| {
        let digits = card.strip_prefix("card")?;
        digits.bytes().all(|b| b.is_ascii_digit()).then_some(())?;
        let device = format!("sys/class/drm/{card}/device");
        let bus = tree.link_name(&format!("{device}/subsystem"))?;
        (bus != "pci").then_some(())?;
        let uevent = tree.text(&format!("{device}/uevent")).unwrap_or_default();
        let compatible = source::field(&uevent, "OF_COMPATIBLE_0", '=');
        Some(Gpu {
            address: tree.link_name(&device)?,
            vendor: None,
            model: compatible.and_then(source::label),
            driver: tree.link_name(&format!("{device}/driver")),
        })
    };
    cards.filter_map(card).collect()
}

#[cfg(test)]
mod tests {
    use gatewren_base::sys::Scratch;

    use super::super::recording::record;
    use super::*;

    #[test]
    fn graphics_processors_are_found_on_and_beside_the_bus() {
        let scratch = Scratch::new();
        // The relevant files of a desktop with two cards and of a Raspberry Pi 4.
        let tree = record(
            &scratch,
            &[
                ("sys/bus/pci/devices/0000:00:02.0/class", "0x030000\n"),
                ("sys/bus/pci/devices/0000:00:02.0/vendor", "0x8086\n"),
                ("sys/bus/pci/devices/0000:00:02.0/device", "0x3e92\n"),
                (
                    "sys/bus/pci/devices/0000:00:02.0/driver",
                    "-> ../../../bus/pci/drivers/i915",
                ),
                ("sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n"),
                ("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n"),
                ("sys/bus/pci/devices/0000:01:00.0/device", "0x1b80\n"),
                (
                    "proc/driver/nvidia/gpus/0000:01:00.0/information",
                    "Model: \t\t NVIDIA GeForce GTX 1080\nIRQ:   \t\t 130\n",
                ),
                ("sys/bus/pci/devices/0000:02:00.0/class", "0x020000\n"),
                ("sys/bus/pci/devices/0000:03:00.0/class", "0x038000\n"),
                ("sys/bus/pci/devices/0000:03:00.0/vendor", "0xabcd\n"),
                (
                    "sys/devices/platform/gpu/subsystem",
                    "-> ../../../bus/platform",
                ),
                (
                    "sys/devices/platform/gpu/driver",
                    "-> ../../../bus/platform/drivers/vc4-drm",
                ),
                (
                    "sys/devices/platform/gpu/uevent",
                    "DRIVER=vc4-drm\nOF_COMPATIBLE_0=brcm,bcm2711-vc5\n",
                ),
                (
                    "sys/class/drm/card1/device",
                    "-> ../../../devices/platform/gpu",
                ),
                ("sys/class/drm/card1-HDMI-A-1/status", "connected\n"),
                ("sys/class/drm/version", "drm 1.1.0 20060810\n"),
            ],
        );
        let found: Vec<_> = gpus(&tree)
            .into_iter()
            .map(|gpu| [Some(gpu.address), gpu.vendor, gpu.model, gpu.driver])
            .map(|words| {
                words
                    .map(|word| word.unwrap_or_else(|| "-".to_owned()))
                    .join(" | ")
            })
            .collect();
        assert_eq!(
            found,
            [
                "0000:00:02.0 | Intel | 0x3e92 | i915",
                "0000:01:00.0 | NVIDIA | NVIDIA GeForce GTX 1080 | -",
                "0000:03:00.0 | 0xabcd | - | -",
                "gpu | - | brcm,bcm2711-vc5 | vc4-drm",
            ]
        );
        assert!(gpus(&HostTree::below(&scratch.join("none"))).is_empty());
    }
}
