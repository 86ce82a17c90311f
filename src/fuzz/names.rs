//! Container names and the patterns of `helper.toml`: a name is never an option or a path, a pattern matches
//! exactly.

use std::str::FromStr as _;

use super::input::{parts, text};
use gatewren_base::config::Glob;
use gatewren_wire::operations::ContainerRef;

/// First part: a pattern; second part: a name.
pub fn mean_what_they_say(data: &[u8]) {
    let [pattern, name] = parts(data);
    let (Some(pattern), Some(name)) = (text(pattern), text(name)) else {
        return;
    };
    let sound = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    let fine = (1..=64).contains(&name.len())
        && name.bytes().all(sound)
        && !name.starts_with(['.', '_', '-']);
    let read = ContainerRef::try_from(name.to_owned());
    assert_eq!(read.is_ok(), fine, "{name:?}");
    if let Ok(read) = read {
        assert_eq!(read.as_str(), name);
    }
    let fine = (1..=128).contains(&pattern.len())
        && pattern.bytes().all(|b| sound(b) || b == b'*' || b == b'?');
    let glob = Glob::from_str(pattern);
    assert_eq!(glob.is_ok(), fine, "{pattern:?}");
    if let Ok(glob) = glob {
        assert_eq!(glob.to_string(), pattern);
        let matches = covers(pattern.as_bytes(), name.as_bytes());
        assert_eq!(glob.matches(name), matches, "{pattern:?} {name:?}");
    }
}

/// Dynamic programming: for each piece of the pattern, the prefixes of the name that it can end at.
fn covers(pattern: &[u8], name: &[u8]) -> bool {
    let mut reached = vec![false; name.len() + 1];
    if let Some(start) = reached.first_mut() {
        *start = true;
    }
    for piece in pattern {
        let mut next = vec![false; name.len() + 1];
        let mut any_before = false;
        for (end, place) in next.iter_mut().enumerate() {
            let here = reached.get(end) == Some(&true);
            any_before |= here;
            let letter = end.checked_sub(1).and_then(|at| Some((at, name.get(at)?)));
            *place = match (piece, letter) {
                (b'*', _) => any_before,
                (_, Some((at, letter))) => {
                    reached.get(at) == Some(&true) && (*piece == b'?' || piece == letter)
                }
                (_, None) => false,
            };
        }
        reached = next;
    }
    reached.last() == Some(&true)
}
