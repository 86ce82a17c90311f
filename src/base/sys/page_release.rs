//! The memory of the program file: releases pages that only the start needed, and disables huge pages.

use std::ffi::{c_int, c_void};
use std::time::Duration;
use std::{ptr, slice};

use nix::libc;
use nix::sys::prctl::set_thp_disable;
use tokio::time::sleep;

/// Longer than the start takes, including the first read of the host's state.
const START: Duration = Duration::from_secs(3);

/// The interval between releases: the pages of a busy period are released after it. A server under constant load
/// has its pages back in less than a thousandth of that time.
const PACE: Duration = Duration::from_secs(10);

/// Disables transparent huge pages for this process, and for its children unless they enable them again. On a
/// system that uses them everywhere, an idle server would be many times as large. The choice of allocator makes no
/// difference.
pub fn refuse_huge_pages() {
    // It fails before Linux 3.15 and where the kernel lacks the feature; then there is nothing to disable.
    let _ = set_thp_disable(true);
}

/// Allows them again, for this process and what it starts.
pub fn allow_huge_pages() {
    // It fails only where there is nothing to allow.
    let _ = set_thp_disable(false);
}

/// Releases the program's unused pages from memory periodically, for as long as the future is polled.
///
/// Fast path: the front at rest takes 8.9 MB instead of 11.7, and 15.3 instead of 18.8 with the helper.
pub async fn hold_few_program_pages() {
    sleep(START).await;
    loop {
        release_program_pages();
        sleep(PACE).await;
    }
}

/// Releases the pages of the program that are unchanged from its file, and returns how many bytes were covered.
///
/// Nothing is lost: a page that is used again comes from the page cache, with a fault that takes a microsecond. A
/// page that is not used again no longer counts as ours, and the kernel can reclaim it when memory is short
/// (madvise(2), `MADV_DONTNEED`). A breakpoint that a debugger has set is lost with its page.
fn release_program_pages() -> usize {
    let mut bytes = 0_usize;
    #[expect(
        unsafe_code,
        reason = "only the C library knows where the program is mapped"
    )]
    // SAFETY: the callback gets the pointer that is passed here, while `bytes` is alive.
    unsafe {
        libc::dl_iterate_phdr(Some(release), ptr::from_mut(&mut bytes).cast());
    }
    bytes
}

/// Called first for the program itself; ends the iteration with it.
#[expect(unsafe_code, reason = "the C library calls it")]
unsafe extern "C" fn release(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    bytes: *mut c_void,
) -> c_int {
    #[expect(unsafe_code, reason = "it comes as a raw pointer")]
    // SAFETY: dl_iterate_phdr(3) passes a description that is valid during the call.
    let info = unsafe { &*info };
    #[expect(unsafe_code, reason = "it comes as a raw pointer")]
    // SAFETY: it is the pointer that we passed to dl_iterate_phdr(3), and nothing else uses it during the call.
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

/// Releases the pages that lie entirely within a range of the program that is never written. Returns their size in
/// bytes.
fn release_whole_pages(start: usize, length: usize) -> usize {
    let page = page_bytes();
    let first = start.next_multiple_of(page);
    let end = start.saturating_add(length) / page * page;
    let bytes = end.saturating_sub(first);
    if bytes == 0 {
        return 0;
    }
    #[expect(unsafe_code, reason = "only this call releases pages")]
    // SAFETY: the range is mapped from the program's file and never written, so a page that is read again has the
    // same contents.
    let result = unsafe {
        libc::madvise(
            ptr::without_provenance_mut(first),
            bytes,
            libc::MADV_DONTNEED,
        )
    };
    if result == 0 { bytes } else { 0 }
}

fn page_bytes() -> usize {
    #[expect(unsafe_code, reason = "only the C library knows it")]
    // SAFETY: it reads a constant of the system.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    // 64 KiB is the largest page size of Linux on the architectures that we are built for.
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
        // Other tests use the program at the same time and bring pages back.
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
