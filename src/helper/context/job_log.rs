//! A job's output on disk, in pieces: the first and the last pieces are kept, those between are deleted.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use gatewren_base::sys::files::create_private;

/// The prefix of a piece's file name, before its number.
const PIECE: &str = "output.";

/// Bytes of a piece.
const PIECE_BYTES: u64 = 2 << 20;

/// How many of the last pieces are kept in addition to the first: at most 10 MiB of one job. Older pieces are
/// deleted, so that the end of a long output is always available.
const LAST_PIECES: u64 = 4;

/// The most disk space of one job's output.
pub const MOST_BYTES: u64 = PIECE_BYTES * (LAST_PIECES + 1);

/// The writer of a job's output.
#[derive(Debug)]
pub struct JobLog {
    directory: PathBuf,
    open: Option<(u64, File)>,
    written: u64,
    lost: u64,
}

impl JobLog {
    /// Creates an empty log in its own directory.
    pub fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            open: None,
            written: 0,
            lost: 0,
        }
    }

    /// Writes output. Bytes that cannot be written are counted as lost, and the job goes on.
    pub fn write(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let within = self.written % PIECE_BYTES;
            let room = usize::try_from(PIECE_BYTES - within).unwrap_or(usize::MAX);
            let (now, later) = rest.split_at(room.min(rest.len()));
            if let Err(cause) = self.put(now, within) {
                if self.lost == 0 {
                    tracing::warn!(%cause, directory = %self.directory.display(), "output of a job is lost");
                }
                self.lost += rest.len() as u64;
                return;
            }
            self.written += now.len() as u64;
            rest = later;
        }
    }

    /// Bytes written so far, including those deleted since.
    pub fn written_bytes(&self) -> u64 {
        self.written
    }

    /// Bytes that could not be written.
    pub fn lost_bytes(&self) -> u64 {
        self.lost
    }

    fn put(&mut self, bytes: &[u8], within: u64) -> io::Result<()> {
        let number = self.written / PIECE_BYTES;
        let file = match self.open.take() {
            Some((open, file)) if open == number => file,
            _ => next_piece(&self.directory, number)?,
        };
        let (_, file) = self.open.insert((number, file));
        file.write_all_at(bytes, within)
    }
}

fn next_piece(directory: &Path, number: u64) -> io::Result<File> {
    if let Some(old) = number.checked_sub(LAST_PIECES).filter(|old| *old > 0) {
        fs::remove_file(path(directory, old))?;
    }
    create_private(&path(directory, number)).map_err(io::Error::other)
}

/// Reads at most `most` bytes from `offset` of an output that is `written` bytes long. If that part was deleted,
/// reads from where the output continues. Returns the offset actually read from.
pub fn read(
    directory: &Path,
    offset: u64,
    written: u64,
    most: usize,
) -> io::Result<(u64, Vec<u8>)> {
    let mut begin = offset.min(written);
    let mut bytes = vec![0; most];
    let mut filled = 0;
    while filled < most {
        let at = begin + filled as u64;
        let end = written.min((at / PIECE_BYTES + 1) * PIECE_BYTES);
        if at >= end {
            break;
        }
        match File::open(path(directory, at / PIECE_BYTES)) {
            Ok(file) => {
                let room = usize::try_from(end - at).unwrap_or(usize::MAX);
                let until = filled + room.min(most - filled);
                let part = bytes.get_mut(filled..until).unwrap_or_default();
                file.read_exact_at(part, at % PIECE_BYTES)?;
                filled = until;
            }
            // A gap ends the response; the bytes after it are in a further one.
            Err(gone) if gone.kind() == io::ErrorKind::NotFound && filled > 0 => break,
            Err(gone) if gone.kind() == io::ErrorKind::NotFound => begin = end,
            Err(cause) => return Err(cause),
        }
    }
    bytes.truncate(filled);
    Ok((begin, bytes))
}

/// Returns the length of an output that a dead helper left: the end of its last piece.
pub fn saved_length(directory: &Path) -> u64 {
    let pieces = fs::read_dir(directory).into_iter().flatten().flatten();
    let ends = pieces.filter_map(|piece| {
        let name = piece.file_name().into_string().ok()?;
        let number: u64 = name.strip_prefix(PIECE)?.parse().ok()?;
        let length = piece.metadata().ok()?.len();
        number.checked_mul(PIECE_BYTES)?.checked_add(length)
    });
    ends.max().unwrap_or_default()
}

fn path(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{PIECE}{number}"))
}

#[cfg(test)]
mod tests {
    use gatewren_base::sys::Scratch;
    use gatewren_base::sys::files::mode;

    use super::super::job_log::*;

    /// The byte at each offset of a long output.
    fn byte(at: u64) -> u8 {
        u8::try_from((at ^ (at >> 13)) & 0xff).unwrap()
    }

    fn write_log(scratch: &Scratch, bytes: u64) -> u64 {
        let mut log = JobLog::new(scratch.path().to_owned());
        let mut at = 0;
        while at < bytes {
            let chunk = (bytes - at).min(60_001);
            let text: Vec<u8> = (at..at + chunk).map(byte).collect();
            log.write(&text);
            at += chunk;
        }
        assert_eq!((log.written_bytes(), log.lost_bytes()), (bytes, 0));
        bytes
    }

    #[test]
    fn an_output_is_read_from_any_place_in_pieces_of_any_size() {
        let scratch = Scratch::new();
        let all = write_log(&scratch, 3 * PIECE_BYTES + 17);
        for (offset, most) in [(0, 10), (PIECE_BYTES - 3, 6), (all - 1, 100), (0, 5 << 20)] {
            let (begin, bytes) = read(scratch.path(), offset, all, most).unwrap();
            assert_eq!(begin, offset);
            assert_eq!(bytes.len() as u64, (most as u64).min(all - offset));
            let as_written = |(at, b): (u64, &u8)| byte(at) == *b;
            assert!((begin..).zip(&bytes).all(as_written), "{offset} {most}");
        }
        for beyond in [all, all + 1, u64::MAX] {
            assert_eq!(read(scratch.path(), beyond, all, 9).unwrap(), (all, vec![]));
        }
        let file = scratch.join("output.0");
        assert_eq!(mode(&file).unwrap(), 0o600);
    }

    #[test]
    fn of_a_long_output_beginning_and_end_are_kept_and_the_gap_is_stepped_over() {
        let scratch = Scratch::new();
        let all = write_log(&scratch, 20 * PIECE_BYTES + 1);
        let kept = fs::read_dir(scratch.path()).unwrap();
        let kept: u64 = kept.map(|f| f.unwrap().metadata().unwrap().len()).sum();
        assert!(kept <= MOST_BYTES, "{kept}");
        let (begin, bytes) = read(scratch.path(), 0, all, 3 << 20).unwrap();
        assert_eq!(
            (begin, bytes.len() as u64),
            (0, PIECE_BYTES),
            "up to the gap"
        );
        let (begin, bytes) = read(scratch.path(), PIECE_BYTES, all, 100).unwrap();
        assert_eq!((begin, bytes.len()), (17 * PIECE_BYTES, 100));
        assert_eq!(bytes[0], byte(begin));
        let (begin, bytes) = read(scratch.path(), all - 5, all, 100).unwrap();
        assert_eq!((begin, bytes.len()), (all - 5, 5));
    }

    #[test]
    fn what_the_disk_does_not_take_is_counted() {
        let mut log = JobLog::new("/nonexistent/place".into());
        log.write(b"12345");
        log.write(b"678");
        assert_eq!((log.written_bytes(), log.lost_bytes()), (0, 8));
    }
}
