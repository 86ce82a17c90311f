//! Searches files by name and by text: a bounded walk that follows no link and stays on one file system.

use std::collections::VecDeque;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gatewren_base::config::fits;
use gatewren_wire::operations::{
    FileKind, FileMatch, FileMatches, HostFileSearch, OperationRefusal,
};

use super::allowed_paths::{AllowedDirectories, AllowedPath};

/// The most files and directories that one search visits.
const LOOKED_AT: u32 = 200_000;

/// The longest that one search runs.
const SEARCH_TIME: Duration = Duration::from_secs(30);

/// The most bytes of a file that are searched for a text.
const TEXT_BYTES: u64 = 1024 * 1024;

/// The longest pattern or text.
const QUESTION_BYTES: usize = 256;

/// The longest part of a line in the result, in characters.
const LINE_CHARS: usize = 200;

/// The most matches of one response.
const MATCHES: u32 = 1000;

/// Searches everything below a directory.
pub fn search(
    allowed: &AllowedDirectories,
    request: &HostFileSearch,
) -> Result<FileMatches, OperationRefusal> {
    let questions = [&request.name, &request.text];
    let questions: Vec<&String> = questions.into_iter().flatten().collect();
    let fits_in = |text: &&String| !text.is_empty() && text.len() <= QUESTION_BYTES;
    if questions.is_empty() || !questions.iter().all(fits_in) {
        return Err(OperationRefusal::bad_command(format!(
            "give a name or a text to search for, of 1 to {QUESTION_BYTES} bytes"
        )));
    }
    let start = allowed.find(&request.path)?;
    if !start.facts.is_dir() {
        return Err(start.is_no("directory"));
    }
    let mut walk = Walk {
        allowed,
        request,
        until: Instant::now() + SEARCH_TIME,
        open: VecDeque::from([PathBuf::new()]),
        found: FileMatches {
            matches: Vec::new(),
            looked_at: 0,
            truncated: false,
        },
    };
    while let Some(directory) = walk.open.pop_front() {
        // Skips a directory that is gone, has become a link, or is on another file system.
        let Ok(place) = start.open_below(&directory) else {
            continue;
        };
        walk.enter(&place, &directory);
        if walk.found.truncated {
            break;
        }
    }
    Ok(walk.found)
}

struct Walk<'a> {
    allowed: &'a AllowedDirectories,
    request: &'a HostFileSearch,
    until: Instant,
    /// The directories still to visit, relative to the start.
    open: VecDeque<PathBuf>,
    found: FileMatches,
}

impl Walk<'_> {
    fn enter(&mut self, place: &AllowedPath, directory: &Path) {
        let Ok(mut entries) = place.entries() else {
            return;
        };
        entries.sort_by_key(std::fs::DirEntry::file_name);
        let mut deeper = Vec::new();
        for entry in entries {
            if self.is_over() {
                self.found.truncated = true;
                return;
            }
            self.found.looked_at += 1;
            let Ok(facts) = entry.metadata() else {
                continue;
            };
            let path = place.path.join(entry.file_name());
            if self.allowed.excludes(&path, &facts) {
                continue;
            }
            if facts.is_dir() {
                deeper.push(directory.join(entry.file_name()));
            }
            let name = entry.file_name();
            self.check_entry(place, &name.to_string_lossy(), FileKind::of(&facts));
        }
        // Depth first, so that the matches of a directory are adjacent.
        for directory in deeper.into_iter().rev() {
            self.open.push_front(directory);
        }
    }

    fn is_over(&self) -> bool {
        let enough = self.request.limit.min(MATCHES) as usize;
        self.found.matches.len() >= enough
            || self.found.looked_at >= LOOKED_AT
            || Instant::now() >= self.until
    }

    fn check_entry(&mut self, directory: &AllowedPath, name: &str, kind: FileKind) {
        let pattern = self.request.name.as_deref();
        if !pattern.is_none_or(|pattern| fits(pattern, name)) {
            return;
        }
        let line = match self.request.text.as_deref() {
            None => None,
            // Opened only if it is still a regular file, so that opening cannot block.
            Some(text) if kind == FileKind::File => match line_with(directory, name, text) {
                None => return,
                found => found,
            },
            Some(_) => return,
        };
        let (line_number, line) = line.unzip();
        let size = directory.open_below(Path::new(name)).ok();
        self.found.matches.push(FileMatch {
            path: directory.path.join(name).to_string_lossy().into_owned(),
            kind,
            size_bytes: size
                .filter(|place| place.facts.is_file())
                .map(|place| place.facts.len()),
            line_number,
            line,
        });
    }
}

/// Returns the first line of a file that contains the text.
fn line_with(directory: &AllowedPath, name: &str, text: &str) -> Option<(u32, String)> {
    let file = directory.open_below(Path::new(name)).ok()?.open().ok()?;
    let mut bytes = Vec::new();
    file.take(TEXT_BYTES).read_to_end(&mut bytes).ok()?;
    let whole = String::from_utf8_lossy(&bytes);
    // Cheaper than splitting every file into lines.
    if !whole.contains(text) {
        return None;
    }
    let (number, line) = (1..)
        .zip(whole.lines())
        .find(|(_, line)| line.contains(text))?;
    Some((number, line.chars().take(LINE_CHARS).collect()))
}
