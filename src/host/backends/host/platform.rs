//! The host's hardware: its processors, and whether it is virtual.

use schemars::JsonSchema;
use serde::Serialize;

use super::super::source::{self, HostTree, field};

/// The processors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Cpu {
    /// The model that the processor reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The number of processors that the system may use.
    pub cores: u32,
}

/// The product that the firmware reports.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Hardware {
    /// The vendor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vendor: Option<String>,
    /// The product's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub product: Option<String>,
}

/// Reads DMI, or the device tree of a small board.
pub fn hardware(tree: &HostTree) -> Hardware {
    let dmi = |name: &str| tree.label(&format!("sys/class/dmi/id/{name}"));
    let board = || {
        let model = tree.text("proc/device-tree/model")?;
        // Text in the device tree ends with a zero byte.
        source::label(model.trim_end_matches('\0'))
    };
    Hardware {
        vendor: dmi("sys_vendor"),
        product: dmi("product_name").or_else(board),
    }
}

/// Parses `/proc/cpuinfo`; on ARM it may contain no model.
pub fn cpu(cpuinfo: &str) -> Cpu {
    let processors = cpuinfo.lines().filter(|line| {
        line.split_once(':')
            .is_some_and(|(key, _)| key.trim() == "processor")
    });
    let model = ["model name", "Model", "Hardware", "uarch"]
        .iter()
        .find_map(|key| field(cpuinfo, key, ':'))
        .filter(|model| !model.is_empty());
    Cpu {
        model: model.map(str::to_owned),
        cores: u32::try_from(processors.count()).unwrap_or(u32::MAX),
    }
}

/// Returns the kind of virtual machine or container, such as `kvm`; `None` on bare metal.
///
/// `container` is the kind that systemd has detected.
pub fn virtualization(
    container: Option<&str>,
    hardware: &Hardware,
    cpuinfo: &str,
) -> Option<String> {
    const KINDS: [(&str, &str); 8] = [
        ("QEMU", "kvm"),
        ("KVM", "kvm"),
        ("Amazon EC2", "amazon"),
        ("VMware", "vmware"),
        ("innotek", "virtualbox"),
        ("VirtualBox", "virtualbox"),
        ("Xen", "xen"),
        ("Microsoft Corporation", "hyper-v"),
    ];
    if let Some(kind) = container {
        return Some(kind.to_owned());
    }
    let virtual_cpu = field(cpuinfo, "flags", ':')
        .is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
    // A laptop's vendor may be Microsoft: on x86 the processor reports whether it is virtual.
    if !virtual_cpu && field(cpuinfo, "flags", ':').is_some() {
        return None;
    }
    let firmware = format!(
        "{} {}",
        hardware.vendor.as_deref().unwrap_or_default(),
        hardware.product.as_deref().unwrap_or_default()
    );
    let kind = KINDS.iter().find(|(mark, _)| firmware.contains(mark));
    let unknown = virtual_cpu.then_some("vm");
    kind.map(|(_, kind)| *kind).or(unknown).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_counted() {
        let x86 = "processor\t: 0\nmodel name\t: AMD EPYC\nflags\t\t: fpu hypervisor\n\n\
                   processor\t: 1\nmodel name\t: AMD EPYC\n";
        assert_eq!(
            cpu(x86),
            Cpu {
                model: Some("AMD EPYC".into()),
                cores: 2
            }
        );
        let arm =
            "processor\t: 0\nBogoMIPS\t: 108.00\nprocessor\t: 1\n\nModel\t\t: Raspberry Pi 4\n";
        assert_eq!(
            cpu(arm),
            Cpu {
                model: Some("Raspberry Pi 4".into()),
                cores: 2
            }
        );
        assert_eq!(
            cpu("\u{fffd}:::\n"),
            Cpu {
                model: None,
                cores: 0
            }
        );
    }

    #[test]
    fn a_virtual_machine_is_told_from_a_real_one() {
        let (real, virtual_cpu) = ("flags: fpu vme", "flags: fpu hypervisor");
        let hardware = |vendor: &str, product: &str| Hardware {
            vendor: Some(vendor.to_owned()),
            product: Some(product.to_owned()),
        };
        let kind = |vendor, product, cpu| virtualization(None, &hardware(vendor, product), cpu);
        let unknown = Hardware::default();
        assert_eq!(
            kind("QEMU", "Standard PC", virtual_cpu).as_deref(),
            Some("kvm")
        );
        assert_eq!(kind("Microsoft Corporation", "Surface", real), None);
        assert_eq!(
            kind("Dell Inc.", "OptiPlex", virtual_cpu).as_deref(),
            Some("vm")
        );
        assert_eq!(
            kind("QEMU", "KVM Virtual Machine", "").as_deref(),
            Some("kvm")
        );
        assert_eq!(virtualization(None, &unknown, ""), None);
        assert_eq!(
            virtualization(Some("lxc"), &unknown, real).as_deref(),
            Some("lxc")
        );
    }
}
