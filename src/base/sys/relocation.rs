//! Relocates a static program in its file, once, so that it need not do so whenever it starts.
//!
//! A position-independent program adds its address to each pointer in its data when it starts, and so changes most pages
//! of that data. Here the pointers get a fixed address in the file; the pages then stay those of the file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

// Words of elf(5).
const IDENTITY: [u8; 6] = [0x7f, b'E', b'L', b'F', 2, 1];
const ET_EXEC: u64 = 2;
const ET_DYN: u64 = 3;
const PT_LOAD: u64 = 1;
const PT_DYNAMIC: u64 = 2;
const PT_GNU_STACK: u64 = 0x6474_e551;
const PF_W: u64 = 2;
const DT_RELA: u64 = 7;
const DT_REL: u64 = 17;
const DT_JMPREL: u64 = 23;
const DT_RELRSZ: u64 = 35;
const DT_RELR: u64 = 36;

const HEADER_BYTES: usize = 64;
const ENTRY_BYTES: usize = 56;
const WORD: u64 = 8;

/// The most program headers that are read.
const MAX_ENTRIES: u64 = 64;

/// The lowest base, and how many random bits are above its last page: below 256 GiB, where every kernel of 64 bits has
/// room for a program.
const LOWEST_BASE: u64 = 0x20_0000_0000;
const BASE_BITS: u32 = 36;

/// A random address for a program, at a multiple of 64 KiB, the largest page.
pub(super) fn base_from(random: u64) -> u64 {
    LOWEST_BASE + (random & ((1 << BASE_BITS) - 1) & !0xffff)
}

/// Moves the program in `file` to the address `base`. Returns `false`, with the file unchanged, if it is no
/// position-independent program of 64 bits whose relocations are all in the list `DT_RELR`, as LLVM's linker writes it.
pub(super) fn relocate(file: &File, base: u64) -> io::Result<bool> {
    let mut header = [0; HEADER_BYTES];
    file.read_exact_at(&mut header, 0)?;
    let Some((table_at, entries)) = table(&header) else {
        return Ok(false);
    };
    let mut table = vec![0; entries * ENTRY_BYTES];
    file.read_exact_at(&mut table, table_at)?;
    let mut parts = Vec::new();
    for entry in table.chunks_exact(ENTRY_BYTES) {
        parts.extend(Part::read(file, entry)?);
    }
    let moved = Program {
        header: &mut header,
        table: &mut table,
        parts: &mut parts,
    }
    .move_to(base);
    if moved.is_none() {
        return Ok(false);
    }
    file.write_all_at(&header, 0)?;
    file.write_all_at(&table, table_at)?;
    for part in parts.iter().filter(|part| part.is_writable) {
        file.write_all_at(&part.bytes, part.offset)?;
    }
    Ok(true)
}

/// Returns where the program headers are, and how many.
fn table(header: &[u8]) -> Option<(u64, usize)> {
    let is_known = header.starts_with(&IDENTITY)
        && cfg!(target_endian = "little")
        && number(header, 16, 2)? == ET_DYN
        && number(header, 54, 2)? == ENTRY_BYTES as u64;
    let entries = number(header, 56, 2)?;
    let entries = usize::try_from(entries.min(MAX_ENTRIES + 1)).ok()?;
    (is_known && entries as u64 <= MAX_ENTRIES).then_some((number(header, 32, 8)?, entries))
}

/// A part of the program that is loaded into memory, apart from its code.
struct Part {
    address: u64,
    offset: u64,
    is_writable: bool,
    bytes: Vec<u8>,
}

impl Part {
    /// Reads the part of a program header; `None` for code and for what is not loaded.
    fn read(file: &File, entry: &[u8]) -> io::Result<Option<Self>> {
        const PF_X: u64 = 1;
        let field = |at, bytes| number(entry, at, bytes).unwrap_or_default();
        let flags = field(4, 4);
        if field(0, 4) != PT_LOAD || flags & PF_X != 0 {
            return Ok(None);
        }
        let (offset, size) = (field(8, 8), field(32, 8));
        let whole = file.metadata()?.len();
        if offset.checked_add(size).is_none_or(|end| end > whole) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut bytes = vec![0; usize::try_from(size).map_err(io::Error::other)?];
        file.read_exact_at(&mut bytes, offset)?;
        Ok(Some(Self {
            address: field(16, 8),
            offset,
            is_writable: flags & PF_W != 0,
            bytes,
        }))
    }
}

/// A program, of which only code is not in memory.
struct Program<'a> {
    header: &'a mut [u8],
    table: &'a mut [u8],
    parts: &'a mut [Part],
}

impl Program<'_> {
    /// `None` if it is of another kind; it is then half moved.
    fn move_to(&mut self, base: u64) -> Option<()> {
        let list_size_at = self.relocate(base)?;
        // The start then finds an empty list.
        self.put(list_size_at, 0)?;
        put(self.header, 16, 2, ET_EXEC)?;
        add(self.header, 24, base)?;
        for entry in self.table.chunks_exact_mut(ENTRY_BYTES) {
            if number(entry, 0, 4)? != PT_GNU_STACK {
                add(entry, 16, base)?;
                add(entry, 24, base)?;
            }
        }
        Some(())
    }

    /// Adds `base` to each pointer; returns the address of the list's size.
    fn relocate(&mut self, base: u64) -> Option<u64> {
        let mut entries = self.table.chunks_exact(ENTRY_BYTES);
        let dynamic = entries.find(|entry| number(entry, 0, 4) == Some(PT_DYNAMIC))?;
        let mut at = number(dynamic, 16, 8)?;
        let (mut list, mut size) = (None, None);
        loop {
            match self.word(at)? {
                0 => break,
                DT_RELA | DT_REL | DT_JMPREL => return None,
                DT_RELR => list = Some(self.word(at.checked_add(WORD)?)?),
                DT_RELRSZ => size = Some(at.checked_add(WORD)?),
                _ => {}
            }
            at = at.checked_add(2 * WORD)?;
        }
        let (list, size_at) = (list?, size?);
        let size = self.word(size_at)?;
        let mut next = 0_u64;
        for at in (0..size).step_by(8) {
            next = self.apply(self.word(list.checked_add(at)?)?, next, base)?;
        }
        Some(size_at)
    }

    /// Applies one word of the list, an address or the 63 bits of the words from `next` on; returns what then is next.
    fn apply(&mut self, word: u64, next: u64, base: u64) -> Option<u64> {
        if word & 1 == 0 {
            self.add(word, base)?;
            return word.checked_add(WORD);
        }
        for bit in 0..63 {
            if word >> (bit + 1) & 1 == 1 {
                self.add(next.checked_add(bit * WORD)?, base)?;
            }
        }
        next.checked_add(63 * WORD)
    }

    fn add(&mut self, address: u64, base: u64) -> Option<()> {
        self.put(address, self.word(address)?.checked_add(base)?)
    }

    fn word(&self, address: u64) -> Option<u64> {
        let mut words = self.parts.iter().filter_map(|part| {
            let at = usize::try_from(address.checked_sub(part.address)?).ok()?;
            number(&part.bytes, at, 8)
        });
        words.next()
    }

    fn put(&mut self, address: u64, value: u64) -> Option<()> {
        let mut parts = self.parts.iter_mut().filter(|part| part.is_writable);
        parts.find_map(|part| {
            let at = usize::try_from(address.checked_sub(part.address)?).ok()?;
            put(&mut part.bytes, at, 8, value)
        })
    }
}

/// Returns the number of `length` bytes at `at`.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let found = bytes.get(at..at.checked_add(length)?)?;
    let mut word = [0; 8];
    word.get_mut(..length)?.copy_from_slice(found);
    Some(u64::from_le_bytes(word))
}

fn put(bytes: &mut [u8], at: usize, length: usize, value: u64) -> Option<()> {
    let place = bytes.get_mut(at..at.checked_add(length)?)?;
    place.copy_from_slice(value.to_le_bytes().get(..length)?);
    Some(())
}

fn add(bytes: &mut [u8], at: usize, base: u64) -> Option<()> {
    put(bytes, at, 8, number(bytes, at, 8)?.checked_add(base)?)
}

#[cfg(test)]
mod tests {
    use nix::sys::memfd::{MFdFlags, memfd_create};

    use super::*;

    /// The address of a made-up program's data, which begins at the same place in its file.
    const DATA: u64 = 0x1000;

    /// Its words: pointers at 0, 2 and 65, what is no pointer at 1, then the dynamic section and the list.
    fn program(extra_tag: Option<u64>) -> Vec<u8> {
        let mut words = vec![0_u64; 66];
        words[0] = 0x1100;
        words[1] = 7;
        words[2] = 0x2200;
        words[65] = 0x3300;
        let dynamic = DATA + words.len() as u64 * 8;
        let tags = [
            DT_RELR,
            0,
            DT_RELRSZ,
            3 * 8,
            extra_tag.unwrap_or(30),
            1,
            0,
            0,
        ];
        words.extend(tags);
        let list = DATA + words.len() as u64 * 8;
        words[67] = list;
        // The first word, the second after it, and the sixty-fifth.
        words.extend([DATA, 1 | 1 << 2, 1 | 1 << 2]);
        let mut bytes = vec![0; usize::try_from(DATA).unwrap()];
        bytes[..6].copy_from_slice(&IDENTITY);
        let entry = |kind, flags, at, size| {
            let mut entry = vec![0; ENTRY_BYTES];
            for (place, length, value) in [
                (0, 4, kind),
                (4, 4, flags),
                (8, 8, at),
                (16, 8, at),
                (24, 8, at),
                (32, 8, size),
            ] {
                put(&mut entry, place, length, value).unwrap();
            }
            entry
        };
        let size = words.len() as u64 * 8;
        let table = [
            entry(PT_LOAD, PF_W | 4, DATA, size),
            entry(PT_DYNAMIC, PF_W | 4, dynamic, 64),
            entry(PT_GNU_STACK, PF_W | 4, 0, 0),
        ];
        for (at, length, value) in [
            (16, 2, ET_DYN),
            (24, 8, 0x500),
            (32, 8, 64),
            (54, 2, 56),
            (56, 2, 3),
        ] {
            put(&mut bytes, at, length, value).unwrap();
        }
        bytes[64..64 + 3 * ENTRY_BYTES].copy_from_slice(&table.concat());
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        bytes
    }

    fn moved(bytes: &[u8], base: u64) -> (bool, Vec<u8>) {
        let file = memfd_create(c"program", MFdFlags::MFD_CLOEXEC).unwrap();
        let file = File::from(file);
        file.write_all_at(bytes, 0).unwrap();
        let done = relocate(&file, base).unwrap_or(false);
        let mut after = vec![0; bytes.len()];
        file.read_exact_at(&mut after, 0).unwrap();
        (done, after)
    }

    #[test]
    fn each_pointer_of_the_list_is_moved_and_nothing_else() {
        let base = base_from(u64::MAX);
        let before = program(None);
        let (done, after) = moved(&before, base);
        assert!(done);
        let at =
            |word: usize| number(&after, usize::try_from(DATA).unwrap() + word * 8, 8).unwrap();
        assert_eq!(
            [at(0), at(1), at(2), at(65)],
            [0x1100 + base, 7, 0x2200 + base, 0x3300 + base]
        );
        // The list is empty for the start; the rest of the data is as it was.
        assert_eq!(at(69), 0);
        let same = |word: usize| {
            number(&before, usize::try_from(DATA).unwrap() + word * 8, 8) == Some(at(word))
        };
        let differs: Vec<usize> = (0..77).filter(|word| !same(*word)).collect();
        assert_eq!(differs, [0, 2, 65, 69]);
        assert_eq!(number(&after, 16, 2), Some(ET_EXEC));
        assert_eq!(number(&after, 24, 8), Some(0x500 + base));
        assert_eq!(number(&after, 64 + 16, 8), Some(DATA + base));
        assert_eq!(number(&after, 64 + 2 * 56 + 16, 8), Some(0));
    }

    #[test]
    fn a_program_with_other_relocations_stays_as_it_is() {
        for tag in [DT_RELA, DT_REL, DT_JMPREL] {
            let before = program(Some(tag));
            assert_eq!(moved(&before, LOWEST_BASE), (false, before));
        }
    }

    #[test]
    fn no_bytes_make_it_panic_or_change_a_file_that_it_does_not_move() {
        let before = program(None);
        for at in 0..before.len() {
            for value in [0, 0x7f, 0xff] {
                let mut broken = before.clone();
                broken[at] = value;
                let (done, after) = moved(&broken, LOWEST_BASE);
                assert!(done || after == broken);
            }
            let (done, after) = moved(&before[..at], LOWEST_BASE);
            assert!(done || after == before[..at]);
        }
    }

    #[test]
    fn a_base_is_a_multiple_of_the_largest_page_below_256_gib() {
        for random in [0, 1, 0xffff, u64::MAX, 0x1234_5678_9abc_def0] {
            let base = base_from(random);
            assert!(base.is_multiple_of(0x1_0000) && (LOWEST_BASE..1 << 38).contains(&base));
        }
    }
}
