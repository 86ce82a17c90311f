//! Compressed swap in memory (zram): creates and removes gatewren's own device, and never touches those of others.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use tokio::sync::Mutex;

use gatewren_base::sys::source::{field, names, text, word};
use gatewren_wire::operations::{OperationEnd, OperationRefusal};

use crate::context::operation_context::OperationContext;
use crate::context::tools;
use crate::processes::answers::to_its_end;
use crate::processes::commands::require_root;
use crate::processes::step_error::StepError;

/// The kernel's control files for creating and removing devices (its Documentation/admin-guide/blockdev/zram.rst).
const CONTROL: &str = "/sys/class/zram-control";

/// The label in the header of gatewren's device (mkswap(8)), which identifies it.
const LABEL: &str = "gatewren";

/// With this priority it is used before any swap on a disk.
const PRIORITY: &str = "100";

/// The fastest algorithm. If the kernel lacks it, the kernel's default is used.
const ALGORITHM: &str = "lz4";

/// How often to retry while another program, such as udev, has the device open; a tenth of a second apart.
const TRIES: u32 = 30;

/// The memory that must remain free after swapped-out data is read back, in KiB.
const SPARE_KIB: u64 = 64 * 1024;

/// One switch at a time: two at once would create two devices.
static TURN: Mutex<()> = Mutex::const_new(());

/// A zram device with swap.
struct Device {
    /// Such as `zram1`.
    name: String,
    /// Whether gatewren created it.
    ours: bool,
    /// The KiB of swap in use, if it is active.
    used_kib: Option<u64>,
}

/// Switches compressed swap on or off. Does nothing if it is in that state already.
pub async fn switch(
    context: &mut OperationContext<'_>,
    on: bool,
) -> Result<OperationEnd, StepError> {
    require_root()?;
    let _turn = context.relay.wait(TURN.lock()).await?;
    if on && !Path::new(CONTROL).exists() {
        let loaded = run(context, "modprobe", &["zram", "num_devices=0"]).await?;
        if loaded != OperationEnd::SUCCESS {
            return Ok(loaded);
        }
    }
    let devices = to_its_end(|| Ok(devices())).await?;
    // A half-created device could not be recognized later.
    context.relay.set_uninterruptible(true);
    let switched = if on {
        begin(context, &devices).await
    } else {
        end(context, &devices).await
    };
    context.relay.set_uninterruptible(false);
    Ok(switched?)
}

async fn begin(
    context: &mut OperationContext<'_>,
    devices: &[Device],
) -> Result<OperationEnd, OperationRefusal> {
    let mut active = devices.iter().filter(|device| device.used_kib.is_some());
    match active.next() {
        Some(device) if device.ours => return Ok(OperationEnd::SUCCESS),
        Some(device) => return Err(foreign_refusal(device)),
        None => {}
    }
    // Devices left by an interrupted run.
    for left in devices.iter().filter(|device| device.ours) {
        let name = left.name.clone();
        to_its_end(move || take_away(&name)).await?;
    }
    let name = to_its_end(make).await?;
    let node = format!("/dev/{name}");
    let mut ending = run(context, "mkswap", &["--label", LABEL, &node]).await;
    if matches!(ending, Ok(OperationEnd::SUCCESS)) {
        ending = run(context, "swapon", &["--priority", PRIORITY, &node]).await;
    }
    if !matches!(ending, Ok(OperationEnd::SUCCESS)) {
        to_its_end(move || take_away(&name)).await?;
    }
    ending
}

async fn end(
    context: &mut OperationContext<'_>,
    devices: &[Device],
) -> Result<OperationEnd, OperationRefusal> {
    let (ours, others): (Vec<&Device>, Vec<_>) = devices.iter().partition(|device| device.ours);
    let active = others.iter().find(|device| device.used_kib.is_some());
    if let Some(device) = active.filter(|_| ours.is_empty()) {
        return Err(foreign_refusal(device));
    }
    for device in ours {
        if let Some(used) = device.used_kib {
            has_room(used, &text("/proc/meminfo").unwrap_or_default())?;
            let off = run(context, "swapoff", &[&format!("/dev/{}", device.name)]).await?;
            if off != OperationEnd::SUCCESS {
                return Ok(off);
            }
        }
        let name = device.name.clone();
        to_its_end(move || take_away(&name)).await?;
    }
    Ok(OperationEnd::SUCCESS)
}

fn foreign_refusal(device: &Device) -> OperationRefusal {
    let name = &device.name;
    OperationRefusal::failed(format!(
        "/dev/{name} is compressed swap that gatewren did not create; change it with the program that did, such as \
         zram-tools or systemd-zram-generator"
    ))
}

/// Checks that the swapped-out data fits into memory; otherwise the kernel would kill programs.
fn has_room(used_kib: u64, meminfo: &str) -> Result<(), OperationRefusal> {
    let available = kib(meminfo, "MemAvailable").unwrap_or_default();
    if available >= used_kib.saturating_add(SPARE_KIB) {
        return Ok(());
    }
    Err(OperationRefusal::failed(format!(
        "{used_kib} KiB are swapped out, but only {available} KiB of memory are free for them; stop a program first"
    )))
}

fn kib(meminfo: &str, key: &str) -> Option<u64> {
    let value = field(meminfo, key, ':')?;
    value.trim_end_matches("kB").trim().parse().ok()
}

/// Returns the zram devices that are swap, in use or not.
fn devices() -> Vec<Device> {
    let swaps = text("/proc/swaps").unwrap_or_default();
    let names = names("/sys/block").into_iter();
    let zrams = names.filter(|name| name.starts_with("zram"));
    let all = zrams.map(|name| Device {
        ours: is_ours(Path::new("/dev").join(&name).as_path()),
        used_kib: used_kib(&swaps, &name),
        name,
    });
    all.filter(|device| device.ours || device.used_kib.is_some())
        .collect()
}

/// The fourth column of /proc/swaps (proc(5)).
fn used_kib(swaps: &str, name: &str) -> Option<u64> {
    let node = format!("/dev/{name}");
    let mut lines = swaps.lines().map(str::split_whitespace);
    let mut line = lines.find(|line| line.clone().next() == Some(&node))?;
    line.nth(3)?.parse().ok()
}

/// Returns whether the swap header has gatewren's label. The header is the first page, as in the kernel's
/// include/linux/swap.h.
fn is_ours(node: &Path) -> bool {
    let mut header = [0; 1068];
    let read = File::open(node).and_then(|file| file.read_exact_at(&mut header, 0));
    let mut name = [0; 16];
    let bytes = LABEL.as_bytes();
    for (to, from) in name.iter_mut().zip(bytes) {
        *to = *from;
    }
    read.is_ok() && header.ends_with(&name)
}

/// Creates a device of half the memory's size. It takes only as much memory as the swapped-out data needs when
/// compressed.
fn make() -> Result<String, OperationRefusal> {
    let failed = |what: &str| OperationRefusal::failed(format!("the kernel {what}"));
    let memory = kib(&text("/proc/meminfo").unwrap_or_default(), "MemTotal");
    let memory = memory.ok_or_else(|| failed("does not report the size of the memory"))?;
    // Reading this file creates a device.
    let number = word(format!("{CONTROL}/hot_add"));
    let number = number.ok_or_else(|| failed("cannot create a device for compressed swap"))?;
    let name = format!("zram{number}");
    let block = format!("/sys/block/{name}");
    let known = text(format!("{block}/comp_algorithm")).unwrap_or_default();
    if known.split_whitespace().any(|one| one == ALGORITHM) {
        // If this fails, the kernel's default stays.
        let _ = fs::write(format!("{block}/comp_algorithm"), ALGORITHM);
    }
    let sized = fs::write(format!("{block}/disksize"), format!("{}K", memory / 2));
    if let Err(cause) = sized {
        take_away(&name)?;
        return Err(failed(&format!("cannot set its size: {cause}")));
    }
    Ok(name)
}

/// Removes a device, which frees its memory.
fn take_away(name: &str) -> Result<(), OperationRefusal> {
    let number = name.trim_start_matches("zram");
    persist(&format!("/sys/block/{name}/reset"), "1")
        .and_then(|()| persist(&format!("{CONTROL}/hot_remove"), number))
        .map_err(|cause| {
            OperationRefusal::failed(format!("/dev/{name} cannot be removed: {cause}"))
        })
}

/// Retries a write: the kernel rejects it while a program has the device open.
fn persist(file: &str, word: &str) -> std::io::Result<()> {
    let mut written = fs::write(file, word);
    for _ in 1..TRIES {
        if written.is_ok() {
            break;
        }
        sleep(Duration::from_millis(100));
        written = fs::write(file, word);
    }
    written
}

async fn run(
    context: &mut OperationContext<'_>,
    name: &'static str,
    args: &[&str],
) -> Result<OperationEnd, OperationRefusal> {
    let tool = tools::HostTool::new(name, args.iter().copied());
    context.run_tool(&tool).await
}

#[cfg(test)]
mod tests {
    use super::super::zram::*;
    use gatewren_base::sys::Scratch;

    const SWAPS: &str = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n\
                         /dev/zram1                              partition\t65532\t\t1024\t\t100\n";

    #[test]
    fn a_device_is_in_use_when_the_kernel_says_so() {
        assert_eq!(used_kib(SWAPS, "zram1"), Some(1024));
        assert_eq!(used_kib(SWAPS, "zram"), None);
        assert_eq!(used_kib(SWAPS, "zram10"), None);
    }

    #[test]
    fn what_is_swapped_out_must_find_room() {
        let meminfo = "MemTotal:       1000000 kB\nMemAvailable:     100000 kB\n";
        assert!(has_room(100_000 - SPARE_KIB, meminfo).is_ok());
        let refused = has_room(100_001 - SPARE_KIB, meminfo).unwrap_err();
        assert!(refused.message.contains("100000 KiB"), "{refused}");
        assert!(has_room(0, "").is_err());
    }

    #[test]
    fn a_device_is_ours_by_the_name_in_its_header() {
        let scratch = Scratch::new();
        let node = scratch.join("zram7");
        let with = |label: &[u8]| {
            let mut page = vec![0; 4096];
            page[1052..1052 + label.len()].copy_from_slice(label);
            fs::write(&node, page).unwrap();
            is_ours(&node)
        };
        assert!(with(b"gatewren"));
        for other in [&b"gatewren2"[..], b"zram0", b""] {
            assert!(!with(other), "{other:?}");
        }
        assert!(!is_ours(&scratch.join("none")));
    }
}
