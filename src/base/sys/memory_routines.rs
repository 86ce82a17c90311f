//! `memcpy`, `memmove`, `memset`, `memcmp` and `bcmp` for x86-64 with musl, whose own go by bytes.
//!
//! Assembler, because a compiler may turn a loop of these functions into a call of the same function. The linker takes
//! these before those of the C library, because objects come before archives. Tests run them under their own names on
//! every system.
//!
//! Fast path: the copies and comparisons of a `tools/call` take 11,400 instructions instead of 17,700.

#![expect(
    unsafe_code,
    reason = "assembler takes the place of functions of the C library"
)]

use std::arch::global_asm;

#[cfg(target_env = "musl")]
global_asm!(
    include_str!("memory_routines.s"),
    ".globl memcpy, memmove, memset, memcmp, bcmp",
    ".type memcpy, @function",
    ".type memmove, @function",
    ".type memset, @function",
    ".type memcmp, @function",
    ".type bcmp, @function",
    ".set memcpy, gatewren_memmove",
    ".set memmove, gatewren_memmove",
    ".set memset, gatewren_memset",
    ".set memcmp, gatewren_memcmp",
    ".set bcmp, gatewren_memcmp",
    options(raw)
);

#[cfg(not(target_env = "musl"))]
global_asm!(include_str!("memory_routines.s"), options(raw));

#[cfg(test)]
mod tests {
    use std::ffi::{c_int, c_void};
    use std::{ptr, slice};

    use nix::libc;

    #[expect(unsafe_code, reason = "the functions are assembler")]
    unsafe extern "C" {
        fn gatewren_memmove(to: *mut c_void, from: *const c_void, size: usize) -> *mut c_void;
        fn gatewren_memset(to: *mut c_void, byte: c_int, size: usize) -> *mut c_void;
        fn gatewren_memcmp(left: *const c_void, right: *const c_void, size: usize) -> c_int;
    }

    /// Every size of which the functions make a case of its own, with some more.
    const EACH_SIZE: usize = 300;

    /// Sizes of many rounds of a loop.
    const LARGE: [usize; 9] = [511, 512, 513, 1_023, 2_048, 4_095, 4_097, 12_345, 65_536];

    /// The size of a page.
    const PAGE: usize = 4_096;

    /// Pages that end where a page begins that must not be touched, and begin where one ends: reading or writing a byte
    /// too many ends the test's process.
    struct GuardedPages {
        start: *mut u8,
        size: usize,
    }

    impl GuardedPages {
        fn new(pages: usize) -> Self {
            let size = pages * PAGE;
            #[expect(unsafe_code, reason = "maps memory")]
            // SAFETY: a new anonymous mapping at any address affects no existing memory.
            let whole = unsafe {
                libc::mmap(
                    ptr::null_mut(),
                    size + 2 * PAGE,
                    libc::PROT_NONE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                    -1,
                    0,
                )
            };
            assert_ne!(whole, libc::MAP_FAILED);
            let start = whole.cast::<u8>().wrapping_add(PAGE);
            #[expect(unsafe_code, reason = "makes the inner pages usable")]
            // SAFETY: they are pages of the mapping above, which nothing uses yet.
            let done =
                unsafe { libc::mprotect(start.cast(), size, libc::PROT_READ | libc::PROT_WRITE) };
            assert_eq!(done, 0);
            Self { start, size }
        }

        fn bytes(&mut self) -> &mut [u8] {
            #[expect(unsafe_code, reason = "it is a slice of mapped memory")]
            // SAFETY: the kernel has filled these pages with zeros, and they are borrowed as `self` is.
            unsafe {
                slice::from_raw_parts_mut(self.start, self.size)
            }
        }
    }

    impl Drop for GuardedPages {
        fn drop(&mut self) {
            let whole = self.start.wrapping_sub(PAGE);
            #[expect(unsafe_code, reason = "unmaps what was mapped")]
            // SAFETY: these pages were mapped in `new`, and no borrow of them is left.
            unsafe {
                libc::munmap(whole.cast(), self.size + 2 * PAGE);
            }
        }
    }

    /// Moves bytes within a slice.
    fn move_within(bytes: &mut [u8], to: usize, from: usize, size: usize) {
        assert!(to + size <= bytes.len() && from + size <= bytes.len());
        let start = bytes.as_mut_ptr();
        let to = start.wrapping_add(to).cast();
        #[expect(unsafe_code, reason = "calls assembler")]
        // SAFETY: both areas are within one slice that is borrowed mutably, and they may overlap.
        let returned = unsafe { gatewren_memmove(to, start.wrapping_add(from).cast(), size) };
        assert_eq!(returned, to);
    }

    fn set(bytes: &mut [u8], byte: u8) {
        let to = bytes.as_mut_ptr().cast();
        // C passes an int, of which only the lowest byte counts.
        let byte = c_int::from(byte) | 0x5500;
        #[expect(unsafe_code, reason = "calls assembler")]
        // SAFETY: it is all of a slice that is borrowed mutably.
        let returned = unsafe { gatewren_memset(to, byte, bytes.len()) };
        assert_eq!(returned, to);
    }

    fn compare(left: &[u8], right: &[u8]) -> c_int {
        assert_eq!(left.len(), right.len());
        #[expect(unsafe_code, reason = "calls assembler")]
        // SAFETY: both are slices of this length.
        unsafe {
            gatewren_memcmp(left.as_ptr().cast(), right.as_ptr().cast(), left.len())
        }
    }

    /// Bytes without a pattern, so that a byte in a wrong place is noticed.
    fn pattern(size: usize) -> Vec<u8> {
        // Knuth's generator; its highest bits are the best ones.
        let mut state = 1_u64;
        let bytes = (0..size).map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state.to_be_bytes()[0]
        });
        bytes.collect()
    }

    /// The offset at which `size` bytes begin to end with the slice.
    fn at_end(bytes: &[u8], size: usize) -> usize {
        bytes.len() - size
    }

    /// Moves as the C library must: as if through a third area.
    fn check_move(bytes: &mut [u8], original: &[u8], to: usize, from: usize, size: usize) {
        bytes.copy_from_slice(original);
        move_within(bytes, to, from, size);
        let words = || format!("{size} bytes from {from} to {to}");
        assert!(bytes[..to] == original[..to], "before: {}", words());
        assert!(
            bytes[to..to + size] == original[from..from + size],
            "{}",
            words()
        );
        assert!(
            bytes[to + size..] == original[to + size..],
            "after: {}",
            words()
        );
    }

    #[test]
    fn each_size_is_moved_at_each_alignment_and_overlap() {
        for size in 0..=EACH_SIZE {
            let original = pattern(size + 2 * 96);
            let mut bytes = original.clone();
            for to in 0..=16 {
                for from in 0..=16 {
                    check_move(&mut bytes, &original, 64 + to, 64 + from, size);
                }
            }
            for distance in 17..96 {
                check_move(&mut bytes, &original, 96, 96 - distance, size);
                check_move(&mut bytes, &original, 96 - distance, 96, size);
            }
        }
    }

    #[test]
    fn large_sizes_are_moved_over_each_distance() {
        for size in LARGE {
            let original = pattern(2 * size + 64);
            let mut bytes = original.clone();
            for distance in [
                0,
                1,
                7,
                15,
                16,
                17,
                63,
                64,
                65,
                size / 2,
                size - 1,
                size,
                size + 1,
            ] {
                for shift in [0, 1, 9, 15] {
                    check_move(&mut bytes, &original, shift + distance, shift, size);
                    check_move(&mut bytes, &original, shift, shift + distance, size);
                }
            }
        }
    }

    #[test]
    fn no_function_touches_a_byte_outside_its_areas() {
        let mut pages = GuardedPages::new(4);
        let mut others = GuardedPages::new(4);
        for size in (0..=EACH_SIZE).chain(LARGE.into_iter().filter(|size| *size < 2 * PAGE)) {
            let bytes = pages.bytes();
            let end = at_end(bytes, size);
            move_within(bytes, 0, end, size);
            move_within(bytes, end, 0, size);
            move_within(bytes, 0, 0, size);
            move_within(bytes, end, end, size);
            set(&mut bytes[..size], 1);
            set(&mut bytes[end..], 1);
            let other = others.bytes();
            let other_end = at_end(other, size);
            set(&mut other[..size], 1);
            set(&mut other[other_end..], 1);
            assert_eq!(compare(&bytes[..size], &other[other_end..]), 0);
            assert_eq!(compare(&bytes[end..], &other[..size]), 0);
        }
    }

    #[test]
    fn each_size_is_set_at_each_alignment() {
        for size in (0..=EACH_SIZE).chain(LARGE) {
            for start in 32..48 {
                let mut bytes = vec![1; size + 96];
                set(&mut bytes[start..start + size], 0xe3);
                let is_set = |(at, byte): (usize, &u8)| {
                    let inside = (start..start + size).contains(&at);
                    *byte == if inside { 0xe3 } else { 1 }
                };
                assert!(bytes.iter().enumerate().all(is_set), "{size} at {start}");
            }
        }
    }

    #[test]
    fn the_first_difference_decides_at_each_size_and_alignment() {
        for size in (0..=EACH_SIZE).chain([1_023, 4_097]) {
            let original = pattern(size);
            for shift in [0, 1, 8, 13] {
                let mut other = vec![0; shift + size];
                other[shift..].copy_from_slice(&original);
                assert_eq!(compare(&original, &other[shift..]), 0, "{size}");
                for at in (0..size).filter(|at| *at < EACH_SIZE || at % 61 == 0 || at + 20 > size) {
                    // All bytes after the first difference differ too, some of them the other way round.
                    let flip = |byte: &mut u8| *byte = !*byte;
                    let right = &mut other[shift..];
                    right[at..].iter_mut().for_each(flip);
                    let expected = original[at].cmp(&right[at]);
                    let found = compare(&original, right).cmp(&0);
                    assert_eq!(
                        found, expected,
                        "{size} bytes, the first difference at {at}"
                    );
                    assert_eq!(compare(right, &original).cmp(&0), expected.reverse());
                    right[at..].iter_mut().for_each(flip);
                }
            }
        }
    }

    #[test]
    fn bytes_are_compared_without_a_sign() {
        for size in [1, 2, 3, 4, 7, 8, 15, 16, 40] {
            let (low, high) = (vec![0x7f; size], vec![0x80; size]);
            assert!(
                compare(&low, &high) < 0 && compare(&high, &low) > 0,
                "{size}"
            );
        }
    }
}
