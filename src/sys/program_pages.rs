//! The program in memory: what only the start needed need not stay mapped, and no page is a huge one.

use std::ffi::{c_int, c_void};
use std::time::Duration;
use std::{ptr, slice};

use nix::libc;
use nix::sys::prctl::set_thp_disable;
use tokio::time::sleep;

/// Until the start is over, with the first look at the box.
const START: Duration = Duration::from_secs(3);

/// Between two times: what busy seconds have touched goes when the next ones are over. A server that is asked without
/// a pause has its pages back in less than a thousandth of that time.
const PACE: Duration = Duration::from_secs(10);

/// Has this process do without transparent huge pages, and what it starts too unless it is told otherwise: where the
/// system gives them to everybody, an idle server would be many times as large. Allocators make no difference of it.
pub fn refuse_huge_pages() {
    // Before Linux 3.15, and where it is not built in, there is nothing to refuse.
    let _ = set_thp_disable(true);
}

/// Holds of the program in memory what lasting work needs, for as long as it is polled.
pub async fn hold_few_program_pages() {
    sleep(START).await;
    loop {
        release_program_pages();
        sleep(PACE).await;
    }
}

/// Lets go of the pages of the program that are as they stand in its file, and says how many bytes were asked about.
///
/// Nothing is lost: what is used again is found in the page cache, for a fault that takes a microsecond. What is not
/// used again no longer counts as ours, and the kernel may have it when memory is short (madvise(2),
/// `MADV_DONTNEED`). A breakpoint that a debugger has set goes with its page.
fn release_program_pages() -> usize {
    let mut bytes = 0_usize;
    #[expect(
        unsafe_code,
        reason = "only the C library knows where the program lies"
    )]
    // SAFETY: the callback gets the pointer that is handed over here, while `bytes` stands.
    unsafe {
        libc::dl_iterate_phdr(Some(release), ptr::from_mut(&mut bytes).cast());
    }
    bytes
}

/// Is called for the program first, and ends the walk with it.
#[expect(unsafe_code, reason = "the C library calls it")]
unsafe extern "C" fn release(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    bytes: *mut c_void,
) -> c_int {
    #[expect(unsafe_code, reason = "it comes as a raw pointer")]
    // SAFETY: dl_iterate_phdr(3) hands over a description that stands during the call.
    let info = unsafe { &*info };
    #[expect(unsafe_code, reason = "it comes as a raw pointer")]
    // SAFETY: it is what we gave to dl_iterate_phdr(3), and nobody else looks at it meanwhile.
    let bytes = unsafe { &mut *bytes.cast::<usize>() };
    #[expect(unsafe_code, reason = "it comes as pointer and length")]
    // SAFETY: they are the program headers, which stay where they were mapped.
    let headers = unsafe { slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    for header in headers {
        if header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W == 0 {
            let start = to_usize(info.dlpi_addr).wrapping_add(to_usize(header.p_vaddr));
            *bytes += release_whole_pages(start, to_usize(header.p_memsz));
        }
    }
    1
}

/// Lets go of the pages that lie whole in a range of the program which is never written, and says how many bytes they
/// have.
fn release_whole_pages(start: usize, length: usize) -> usize {
    let page = page_bytes();
    let first = start.next_multiple_of(page);
    let end = start.saturating_add(length) / page * page;
    let bytes = end.saturating_sub(first);
    if bytes == 0 {
        return 0;
    }
    #[expect(unsafe_code, reason = "nothing else tells the kernel")]
    // SAFETY: the range is mapped from the program's file and never written, so a page of it that is read again
    // reads the same.
    let told = unsafe {
        libc::madvise(
            ptr::without_provenance_mut(first),
            bytes,
            libc::MADV_DONTNEED,
        )
    };
    if told == 0 { bytes } else { 0 }
}

fn page_bytes() -> usize {
    #[expect(unsafe_code, reason = "nothing else asks the C library")]
    // SAFETY: it reads a constant of the system.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    // 64 KiB is the largest page that Linux has on the machines that we are built for.
    usize::try_from(bytes)
        .ok()
        .filter(|bytes| bytes.is_power_of_two())
        .unwrap_or(65_536)
}

/// An address of this process always fits.
fn to_usize(address: impl TryInto<usize>) -> usize {
    address.try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_is_there_again_when_it_is_used() {
        static WRITTEN: std::sync::Mutex<Vec<&str>> = std::sync::Mutex::new(Vec::new());
        WRITTEN.lock().unwrap().push("kept");
        // Other tests use the program meanwhile and bring back what goes.
        let seen_to_go = (0..1000).any(|_| {
            let before = mapped_file_bytes();
            assert!(release_program_pages() > 100_000);
            mapped_file_bytes() < before
        });
        assert!(seen_to_go);
        assert_eq!(*WRITTEN.lock().unwrap(), ["kept"]);
        assert_eq!(format!("{:>4}", 6 * 7), "  42");
        assert!(std::panic::catch_unwind(|| "x".parse::<u8>().unwrap()).is_err());
    }

    /// `RssFile` of `proc_pid_status(5)`, in bytes.
    fn mapped_file_bytes() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("RssFile:"))
            .unwrap();
        let kb: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
        kb * 1024
    }
}
