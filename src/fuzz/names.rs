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
    let read = ContainerRef::try_from(name.to_owned());
    assert_eq!(read.is_ok(), is_reference(name), "{name:?}");
    if let Ok(read) = read {
        assert_eq!(read.as_str(), name.strip_prefix("lxc:").unwrap_or(name));
    }
    let fine = (1..=256).contains(&pattern.len())
        && pattern
            .bytes()
            .all(|b| is_sound(b) || br"@:\*?".contains(&b));
    let glob = Glob::from_str(pattern);
    assert_eq!(glob.is_ok(), fine, "{pattern:?}");
    if let Ok(glob) = glob {
        assert_eq!(glob.to_string(), pattern);
        let matches = covers(pattern.as_bytes(), name.as_bytes());
        assert_eq!(glob.matches(name), matches, "{pattern:?} {name:?}");
    }
}

fn is_sound(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._-".contains(&byte)
}

/// `NAME` and `lxc:NAME`, or another runtime with a name and perhaps a place.
fn is_reference(text: &str) -> bool {
    let is_name = |text: &str, most: usize| {
        (1..=most).contains(&text.len())
            && text.bytes().all(is_sound)
            && !text.starts_with(['.', '_', '-'])
    };
    let (runtime, rest) = text.split_once(':').unwrap_or(("lxc", text));
    let (name, place) = match rest.split_once('@') {
        Some((name, place)) => (name, Some(place)),
        None => (rest, None),
    };
    match runtime {
        "lxc" => place.is_none() && is_name(name, 64),
        "docker" | "podman" => is_name(name, 128) && place.is_none_or(|place| is_name(place, 64)),
        _ => false,
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
