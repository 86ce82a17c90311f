//! The host's disks, their partitions and their content.

use schemars::JsonSchema;
use serde::Serialize;

use super::super::source::{self, HostTree, field};
use super::mounts::{FilesystemUsage, Mount, MountedFilesystem};

/// Bytes of a sector in sysfs, whatever the disk's own sector size.
const SECTOR_BYTES: u64 = 512;

/// A disk or a device that works like one.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Disk {
    /// Its name, such as `sda`.
    pub name: String,
    /// The kind of disk.
    pub kind: DiskKind,
    /// The model that it reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// Whether it is removable.
    pub removable: bool,
    /// Whether it is read-only.
    pub read_only: bool,
    /// Whether it is connected by USB.
    pub usb: bool,
    /// The name of a volume, such as `vg0-root`, or the file of a loop device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume: Option<String>,
    /// The underlying disks or partitions, sorted.
    pub made_of: Vec<String>,
    /// Its content, if it has no partitions.
    #[serde(flatten)]
    pub content: DiskContent,
    /// Its partitions, sorted by name.
    pub partitions: Vec<Partition>,
}

/// A part of a disk.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Partition {
    /// Its name, such as `sda1`.
    pub name: String,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// Its content.
    #[serde(flatten)]
    pub content: DiskContent,
}

/// The content of a disk or partition.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct DiskContent {
    /// The type of content, such as `ext4`, `swap` or `LVM2_member`; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filesystem: Option<String>,
    /// Its label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Where it is mounted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mounted_at: Option<String>,
    /// Its space there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub space: Option<FilesystemUsage>,
}

/// The kind of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiskKind {
    /// A rotating disk.
    Hdd,
    /// A solid-state disk.
    Ssd,
    /// A disk on PCI Express.
    Nvme,
    /// A memory card, or flash memory on the board.
    Mmc,
    /// An optical drive with a disc inside.
    Optical,
    /// A virtual machine's disk.
    Virtual,
    /// A disk on another machine.
    Network,
    /// A RAID array: several disks that work as one.
    Raid,
    /// A volume of LVM.
    Lvm,
    /// The decrypted content of a disk or partition.
    Encrypted,
    /// Another device made of other disks.
    Mapped,
    /// A file that works as a disk.
    Loop,
    /// Compressed memory.
    Zram,
}

/// Returns all disks that have a size, sorted by name.
pub fn disks(tree: &HostTree, mounts: &[MountedFilesystem]) -> Vec<Disk> {
    let names = tree.names("sys/block").into_iter();
    names.filter_map(|name| disk(tree, &name, mounts)).collect()
}

fn disk(tree: &HostTree, name: &str, mounts: &[MountedFilesystem]) -> Option<Disk> {
    let place = format!("sys/block/{name}");
    let file = |what: &str| format!("{place}/{what}");
    // A device without a size is a drive without a medium, or an unused device number.
    let size_bytes = size(tree, &place).filter(|size| *size > 0)?;
    // Hidden devices only serve another device, such as the paths to an NVMe disk.
    (!tree.flag(&file("hidden"))).then_some(())?;
    let model = ["device/model", "device/name"].iter();
    let mut model = model.filter_map(|what| tree.label(&file(what)));
    let parts = tree.names(&place).into_iter();
    let parts = parts.filter(|part| part.starts_with(name));
    Some(Disk {
        kind: kind(tree, &place, name),
        model: model.next(),
        size_bytes,
        removable: tree.flag(&file("removable")),
        read_only: tree.flag(&file("ro")),
        usb: tree.link(&place).is_some_and(|way| way.contains("/usb")),
        volume: tree
            .label(&file("dm/name"))
            .or_else(|| tree.word(&file("loop/backing_file"))),
        made_of: tree.names(&file("slaves")),
        content: content(tree, &place, mounts),
        partitions: parts
            .filter_map(|part| partition(tree, &place, part, mounts))
            .collect(),
        name: name.to_owned(),
    })
}

fn partition(
    tree: &HostTree,
    disk: &str,
    name: String,
    mounts: &[MountedFilesystem],
) -> Option<Partition> {
    let place = format!("{disk}/{name}");
    tree.has(&format!("{place}/partition")).then_some(())?;
    Some(Partition {
        size_bytes: size(tree, &place)?,
        content: content(tree, &place, mounts),
        name,
    })
}

fn size(tree: &HostTree, place: &str) -> Option<u64> {
    let sectors: u64 = tree.number(&format!("{place}/size"))?;
    Some(sectors.saturating_mul(SECTOR_BYTES))
}

/// Returns what udev has detected on a device, and where it is mounted.
fn content(tree: &HostTree, place: &str, mounts: &[MountedFilesystem]) -> DiskContent {
    let Some(device) = tree.word(&format!("{place}/dev")) else {
        return DiskContent::default();
    };
    let udev = tree.text(&format!("run/udev/data/b{device}"));
    let udev = udev.unwrap_or_default();
    let property = |key: &str| field(&udev, &format!("E:{key}"), '=').and_then(source::label);
    let name = place.rsplit('/').next().unwrap_or_default();
    // File systems over several disks have a separate device number.
    let is_own_mount = |(point, _): &&MountedFilesystem| {
        point.device == device || point.source.strip_prefix("/dev/") == Some(name)
    };
    let here = mounts.iter().find(is_own_mount);
    DiskContent {
        filesystem: property("ID_FS_TYPE").or_else(|| Some(here?.0.filesystem.clone())),
        label: property("ID_FS_LABEL").or_else(|| property("ID_PART_ENTRY_NAME")),
        mounted_at: here.map(|(point, _)| point.path.clone()),
        space: here.and_then(|(_, mount)| mount.as_ref().map(Mount::space)),
    }
}

fn kind(tree: &HostTree, place: &str, name: &str) -> DiskKind {
    const KINDS: [(&str, DiskKind); 12] = [
        ("nvme", DiskKind::Nvme),
        ("mmcblk", DiskKind::Mmc),
        ("mtdblock", DiskKind::Mmc),
        ("sr", DiskKind::Optical),
        ("vd", DiskKind::Virtual),
        ("xvd", DiskKind::Virtual),
        ("nbd", DiskKind::Network),
        ("rbd", DiskKind::Network),
        ("drbd", DiskKind::Network),
        ("md", DiskKind::Raid),
        ("loop", DiskKind::Loop),
        ("zram", DiskKind::Zram),
    ];
    if let Some((_, kind)) = KINDS.iter().find(|(prefix, _)| name.starts_with(prefix)) {
        return *kind;
    }
    if let Some(uuid) = tree.word(&format!("{place}/dm/uuid")) {
        // The UUID starts with the subsystem that made the device.
        return match uuid.split('-').next() {
            Some("LVM") => DiskKind::Lvm,
            Some("CRYPT") => DiskKind::Encrypted,
            _ => DiskKind::Mapped,
        };
    }
    if name.starts_with("dm-") || name.starts_with("zd") {
        DiskKind::Mapped
    } else if tree.flag(&format!("{place}/queue/rotational")) {
        DiskKind::Hdd
    } else {
        DiskKind::Ssd
    }
}

#[cfg(test)]
mod tests {
    use gatewren_base::sys::Scratch;

    use super::super::mounts::mounted_filesystems;
    use super::super::mounts_and_clock::MountsAndClock;
    use super::super::recording::record;
    use super::*;

    /// The relevant files of a server with a SATA disk under LVM, an encrypted `NVMe` disk, a USB
    /// stick, an empty card reader and unused loop devices.
    const SERVER: &[(&str, &str)] = &[
        ("sys/devices/ata1/sda/size", "7814037168\n"),
        ("sys/devices/ata1/sda/dev", "8:0\n"),
        ("sys/devices/ata1/sda/removable", "0\n"),
        ("sys/devices/ata1/sda/queue/rotational", "1\n"),
        ("sys/devices/ata1/sda/device/model", "WDC WD40EFRX-68N\n"),
        ("sys/devices/ata1/sda/sda1/partition", "1\n"),
        ("sys/devices/ata1/sda/sda1/size", "1048576\n"),
        ("sys/devices/ata1/sda/sda1/dev", "8:1\n"),
        ("sys/devices/ata1/sda/sda2/partition", "2\n"),
        ("sys/devices/ata1/sda/sda2/size", "7812988592\n"),
        ("sys/devices/ata1/sda/sda2/dev", "8:2\n"),
        ("sys/block/sda", "-> ../devices/ata1/sda"),
        ("sys/devices/pci/nvme0n1/size", "1953525168\n"),
        ("sys/devices/pci/nvme0n1/dev", "259:0\n"),
        (
            "sys/devices/pci/nvme0n1/device/model",
            "Samsung SSD 980 1TB                     \n",
        ),
        ("sys/block/nvme0n1", "-> ../devices/pci/nvme0n1"),
        ("sys/devices/pci/nvme0c0n1/size", "1953525168\n"),
        ("sys/devices/pci/nvme0c0n1/hidden", "1\n"),
        ("sys/block/nvme0c0n1", "-> ../devices/pci/nvme0c0n1"),
        ("sys/devices/virtual/block/dm-0/size", "7812980736\n"),
        ("sys/devices/virtual/block/dm-0/dev", "253:0\n"),
        ("sys/devices/virtual/block/dm-0/dm/name", "vg0-data\n"),
        ("sys/devices/virtual/block/dm-0/dm/uuid", "LVM-0aBcD\n"),
        (
            "sys/devices/virtual/block/dm-0/slaves/sda2",
            "-> ../../../../ata1/sda/sda2",
        ),
        ("sys/block/dm-0", "-> ../devices/virtual/block/dm-0"),
        ("sys/devices/virtual/block/dm-1/size", "1953492400\n"),
        (
            "sys/devices/virtual/block/dm-1/dm/uuid",
            "CRYPT-LUKS2-abc-secret\n",
        ),
        ("sys/block/dm-1", "-> ../devices/virtual/block/dm-1"),
        ("sys/devices/pci/usb1/1-2/sdb/size", "60437492\n"),
        ("sys/devices/pci/usb1/1-2/sdb/dev", "8:16\n"),
        ("sys/devices/pci/usb1/1-2/sdb/removable", "1\n"),
        ("sys/devices/pci/usb1/1-2/sdb/ro", "1\n"),
        (
            "sys/devices/pci/usb1/1-2/sdb/device/model",
            "Evil\u{1b}[2J\n  stick  \n",
        ),
        ("sys/block/sdb", "-> ../devices/pci/usb1/1-2/sdb"),
        ("sys/block/sdc/size", "0\n"),
        ("sys/block/loop0/size", "0\n"),
        ("sys/block/loop1/size", "16384\n"),
        ("sys/block/loop1/loop/backing_file", "/srv/image file.img\n"),
        (
            "run/udev/data/b8:1",
            "S:disk/by-uuid/1B2C\nE:ID_FS_TYPE=vfat\nE:ID_FS_LABEL=EFI\nE:ID_PART_ENTRY_NAME=boot\n",
        ),
        (
            "run/udev/data/b8:2",
            "E:ID_FS_TYPE=LVM2_member\nE:ID_PART_ENTRY_NAME=data\n",
        ),
        ("run/udev/data/b259:0", "E:ID_FS_TYPE=crypto_LUKS\n"),
    ];

    #[test]
    fn disks_are_told_with_what_is_on_them() {
        let scratch = Scratch::new();
        let tree = record(&scratch, SERVER);
        let mounts = mounted_filesystems(&MountsAndClock::of_this_process(
            "31 1 253:0 / / rw - ext4 /dev/mapper/vg0-data rw\n",
        ));
        let all = disks(&tree, &mounts);
        let kinds: Vec<_> = all
            .iter()
            .map(|disk| (disk.name.as_str(), disk.kind))
            .collect();
        assert_eq!(
            kinds,
            [
                ("dm-0", DiskKind::Lvm),
                ("dm-1", DiskKind::Encrypted),
                ("loop1", DiskKind::Loop),
                ("nvme0n1", DiskKind::Nvme),
                ("sda", DiskKind::Hdd),
                ("sdb", DiskKind::Ssd),
            ]
        );
        let [volume, inside, file, nvme, hdd, stick] = &all[..] else {
            unreachable!()
        };
        assert_eq!(volume.volume.as_deref(), Some("vg0-data"));
        assert_eq!(volume.made_of, ["sda2"]);
        assert_eq!(volume.content.filesystem.as_deref(), Some("ext4"));
        assert_eq!(volume.content.mounted_at.as_deref(), Some("/"));
        assert!(volume.content.space.as_ref().unwrap().available_bytes > 0);
        assert_eq!(inside.volume, None);
        assert_eq!(file.volume.as_deref(), Some("/srv/image file.img"));
        assert_eq!(nvme.model.as_deref(), Some("Samsung SSD 980 1TB"));
        assert_eq!(nvme.content.filesystem.as_deref(), Some("crypto_LUKS"));
        assert_eq!(hdd.size_bytes, 4_000_787_030_016);
        let parts: Vec<_> = hdd
            .partitions
            .iter()
            .map(|part| {
                let DiskContent {
                    filesystem, label, ..
                } = &part.content;
                (part.name.as_str(), filesystem.as_deref(), label.as_deref())
            })
            .collect();
        assert_eq!(
            parts,
            [
                ("sda1", Some("vfat"), Some("EFI")),
                ("sda2", Some("LVM2_member"), Some("data")),
            ]
        );
        assert!(stick.usb && stick.removable && stick.read_only && !hdd.usb && !hdd.read_only);
        assert_eq!(stick.model.as_deref(), Some("Evil^[[2J stick"));
    }

    #[test]
    fn this_machine_has_a_disk_or_none() {
        // A container has no disk of its own; it sees the host's disks or none.
        let all = disks(&HostTree::of_this_machine(), &[]);
        assert!(all.iter().all(|disk| disk.size_bytes > 0));
        assert!(disks(&HostTree::below("/no/such/place".as_ref()), &[]).is_empty());
    }
}
