//! The table of mounts as the kernel writes it.

/// Returns every mount point in `/proc/self/mountinfo` (proc(5)).
pub fn mount_places(mountinfo: &str) -> impl Iterator<Item = String> {
    let place = |line: &str| line.split(' ').nth(4).map(unescape_mount);
    mountinfo.lines().filter_map(place)
}

/// Decodes a field of the table, in which spaces, tabs, newlines, hashes and backslashes are written in octal.
pub fn unescape_mount(word: &str) -> String {
    let plain = [
        (r"\040", " "),
        (r"\011", "\t"),
        (r"\012", "\n"),
        (r"\043", "#"),
        (r"\134", r"\"),
    ];
    plain.iter().fold(word.to_owned(), |word, (code, plain)| {
        word.replace(code, plain)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_as_they_are_called() {
        let table = "29 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
                     30 29 0:40 / /mnt/a\\040b rw - tmpfs data rw\nshort\n";
        let places: Vec<String> = mount_places(table).collect();
        assert_eq!(places, ["/", "/mnt/a b"]);
    }
}
