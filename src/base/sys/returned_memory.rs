//! Memory that returns to the system as soon as it is dropped, whatever the allocator would keep.

use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::{ptr, slice};

use nix::libc;

/// Values in separately mapped pages, for large data that is rarely needed.
///
/// Fast path: with a `Vec` for the 19 MB of a password hash, a server of 15 MB had 130 after some logins.
#[derive(Debug)]
pub struct MappedPages<T: Copy> {
    start: NonNull<T>,
    length: usize,
}

impl<T: Copy> MappedPages<T> {
    /// Allocates `length` copies of this value; `None` if there is no memory.
    pub fn filled(length: usize, value: T) -> Option<Self> {
        let bytes = bytes_of::<T>(length)?;
        #[expect(unsafe_code, reason = "nothing else maps memory")]
        // SAFETY: a new anonymous mapping at any address affects no existing memory.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes.get(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return None;
        }
        let start = NonNull::new(start.cast::<T>())?;
        for at in 0..length {
            #[expect(unsafe_code, reason = "the memory is raw until it is initialised")]
            // SAFETY: `at` is below the length that was mapped.
            let place = unsafe { start.add(at) };
            #[expect(unsafe_code, reason = "the memory is raw until it is initialised")]
            // SAFETY: it is mapped, writable, exclusively ours, and aligned: a page's alignment is more than any
            // `T` needs.
            unsafe {
                place.write(value);
            };
        }
        Some(Self { start, length })
    }
}

/// Returns the size to map: not zero, and only for types whose alignment a page satisfies.
fn bytes_of<T>(length: usize) -> Option<NonZeroUsize> {
    const LEAST_PAGE: usize = 4096;
    let bytes = NonZeroUsize::new(length.checked_mul(size_of::<T>())?)?;
    (align_of::<T>() <= LEAST_PAGE).then_some(bytes)
}

impl<T: Copy> AsMut<[T]> for MappedPages<T> {
    fn as_mut(&mut self) -> &mut [T] {
        #[expect(unsafe_code, reason = "it is a slice of mapped memory")]
        // SAFETY: all of it was written in `filled`, and is borrowed as `self` is.
        unsafe {
            slice::from_raw_parts_mut(self.start.as_ptr(), self.length)
        }
    }
}

impl<T: Copy> Drop for MappedPages<T> {
    fn drop(&mut self) {
        let bytes = self.length * size_of::<T>();
        #[expect(unsafe_code, reason = "nothing else unmaps memory")]
        // SAFETY: these pages were mapped in `filled`, and no borrow of them is left.
        unsafe {
            libc::munmap(self.start.as_ptr().cast(), bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    #[repr(align(64))]
    struct Wide([u64; 16]);

    #[test]
    fn they_hold_what_is_written() {
        let mut pages = MappedPages::filled(10_000, Wide([7; 16])).unwrap();
        let all = pages.as_mut();
        assert_eq!(all.len(), 10_000);
        assert!(all.iter().all(|one| *one == Wide([7; 16])));
        all[9_999].0[15] = 8;
        assert_eq!(pages.as_mut()[9_999].0[15], 8);
    }

    #[test]
    fn what_cannot_be_had_is_none() {
        assert!(MappedPages::filled(0, 0_u8).is_none());
        assert!(MappedPages::filled(usize::MAX, 0_u64).is_none());
        assert!(MappedPages::filled(usize::MAX / 2, 0_u8).is_none());
    }
}
