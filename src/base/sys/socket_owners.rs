//! Which program has which socket, as far as the open files of processes are visible.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::source::{names, word};

/// The most open files that are searched for sockets; the owners of sockets beyond it stay unknown.
const MAX_FILES: usize = 100_000;

/// Returns the names of the programs that have these sockets, among the processes in `proc`, by the sockets' inode
/// numbers.
pub fn socket_programs(proc: &Path, mut sockets: BTreeSet<u64>) -> BTreeMap<u64, String> {
    let mut found = BTreeMap::new();
    let mut left = MAX_FILES;
    let names = names(proc);
    for pid in names.iter().filter(|name| name.parse::<u32>().is_ok()) {
        let files = fs::read_dir(proc.join(pid).join("fd"));
        for file in files.into_iter().flatten().flatten() {
            if left == 0 || sockets.is_empty() {
                return found;
            }
            left -= 1;
            let link = fs::read_link(file.path()).unwrap_or_default();
            let socket = link
                .to_str()
                .and_then(inode)
                .filter(|one| sockets.remove(one));
            let program = || word(proc.join(pid).join("comm"));
            if let Some((socket, program)) = socket.and_then(|socket| Some((socket, program()?))) {
                found.insert(socket, program);
            }
        }
    }
    found
}

/// Parses a link such as `socket:[4711]`.
fn inode(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?
        .strip_suffix(']')?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_links_are_no_sockets() {
        for odd in [
            "",
            "socket:[]",
            "socket:[x]",
            "socket:7",
            "pipe:[7]",
            "/socket:[7]",
        ] {
            assert_eq!(inode(odd), None, "{odd}");
        }
    }
}
