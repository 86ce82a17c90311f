//! What the machine is: operating system, processor, whether it is a virtual one.

use schemars::JsonSchema;
use serde::Serialize;

use super::source::field;

/// An operating system as its `os-release` names it (os-release(5)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OsRelease {
    /// Its name, such as `Debian GNU/Linux`.
    pub name: String,
    /// Its version, such as `12`; absent for a rolling one.
    pub version: Option<String>,
    /// Its short name, such as `debian`.
    pub id: String,
}

/// The processors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Cpu {
    /// What the processor calls itself.
    pub model: Option<String>,
    /// How many the system may use at once.
    pub cores: u32,
}

impl OsRelease {
    /// Reads `os-release`; what is missing has the default of its manual page.
    pub fn parse(text: &str) -> Self {
        let value = |key| {
            field(text, key, '=')
                .map(unquote)
                .filter(|value| !value.is_empty())
        };
        Self {
            name: value("NAME").unwrap_or_else(|| "Linux".to_owned()),
            version: value("VERSION_ID"),
            id: value("ID").unwrap_or_else(|| "linux".to_owned()),
        }
    }
}

/// A value of the shell without its quotes and backslashes.
fn unquote(value: &str) -> String {
    let quoted = ['"', '\'']
        .iter()
        .find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
    let mut text = String::new();
    let mut escaped = false;
    for character in quoted.unwrap_or(value).chars() {
        if character == '\\' && !escaped {
            escaped = true;
        } else {
            text.push(character);
            escaped = false;
        }
    }
    text
}

/// Reads `/proc/cpuinfo`; on ARM the model stands nowhere.
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

/// The kind of virtual machine or container, such as `kvm`; nothing on bare metal.
///
/// `vendor` and `product` are those of the firmware (DMI), `container` is what systemd notes.
pub fn virtualization(
    container: Option<&str>,
    vendor: Option<&str>,
    product: Option<&str>,
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
    // The maker of a laptop may be Microsoft: on x86 the processor says whether it is a real one.
    if !virtual_cpu && field(cpuinfo, "flags", ':').is_some() {
        return None;
    }
    let firmware = format!(
        "{} {}",
        vendor.unwrap_or_default(),
        product.unwrap_or_default()
    );
    let kind = KINDS.iter().find(|(mark, _)| firmware.contains(mark));
    let unknown = virtual_cpu.then_some("vm");
    kind.map(|(_, kind)| *kind).or(unknown).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debian_says_what_it_is() {
        let text = "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nNAME=\"Debian GNU/Linux\"\n\
                    VERSION_ID=\"12\"\nID=debian\n";
        let os = OsRelease::parse(text);
        assert_eq!(
            (os.name.as_str(), os.id.as_str()),
            ("Debian GNU/Linux", "debian")
        );
        assert_eq!(os.version.as_deref(), Some("12"));
    }

    #[test]
    fn odd_os_releases_have_the_defaults() {
        for text in ["", "garbage", "NAME=\nID=''", "=\n==\nNAME", "\u{0}"] {
            let os = OsRelease::parse(text);
            assert_eq!(
                (os.name.as_str(), os.id.as_str()),
                ("Linux", "linux"),
                "{text}"
            );
            assert_eq!(os.version, None);
        }
        let quoted = OsRelease::parse("NAME='It is \\\"x\\\" \\\\'\nID=\"");
        assert_eq!(
            (quoted.name.as_str(), quoted.id.as_str()),
            ("It is \"x\" \\", "\"")
        );
    }

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
        let kind = |vendor, product, cpu| virtualization(None, Some(vendor), Some(product), cpu);
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
        assert_eq!(virtualization(None, None, None, ""), None);
        assert_eq!(
            virtualization(Some("lxc"), None, None, real).as_deref(),
            Some("lxc")
        );
    }
}
