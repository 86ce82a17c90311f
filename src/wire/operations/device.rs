//! Names of disks, tunnels and pools that are safe as arguments.

use super::text_type::text_type;

const INVALID: &str = "invalid device name";

text_type!(
    /// The kernel's name of a disk or partition, such as `sda`, `nvme0n1p1` or `dm-0`: lowercase letters, digits and
    /// `-`, beginning with a letter. It is never parsed as an option or a path.
    DiskName,
    { "pattern": "^[a-z][a-z0-9-]{0,30}$" },
    |name| {
        let all = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        name.starts_with(|c: char| c.is_ascii_lowercase()) && name.len() <= 31 && name.bytes().all(all)
    },
    INVALID
);

text_type!(
    /// The name of a tunnel: 1 to 15 of `A-Z a-z 0-9 _ = + . -`, as in wg-quick(8), beginning with a letter or a digit.
    TunnelName,
    { "pattern": "^[A-Za-z0-9][A-Za-z0-9_=+.-]{0,14}$" },
    |name| {
        let all = |b: u8| b.is_ascii_alphanumeric() || b"_=+.-".contains(&b);
        name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.len() <= 15 && name.bytes().all(all)
    },
    INVALID
);

text_type!(
    /// The name of a ZFS pool: 1 to 63 of `A-Z a-z 0-9 _ : . -`, beginning with a letter.
    PoolName,
    { "pattern": "^[A-Za-z][A-Za-z0-9_:.-]{0,62}$" },
    |name| {
        let all = |b: u8| b.is_ascii_alphanumeric() || b"_:.-".contains(&b);
        name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.len() <= 63 && name.bytes().all(all)
    },
    INVALID
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_neither_an_option_nor_a_path() {
        let disk = |name: &str| DiskName::try_from(name.to_owned()).is_ok();
        let tunnel = |name: &str| TunnelName::try_from(name.to_owned()).is_ok();
        let pool = |name: &str| PoolName::try_from(name.to_owned()).is_ok();
        assert!(pool("tank") && pool("Data_2") && !pool("2tank") && !disk(&"a".repeat(32)));
        assert!(
            disk("sda") && disk("nvme0n1") && disk("dm-0") && tunnel("wg0") && tunnel("home_v6.1")
        );
        for bad in ["", "-a", "a/b", "..", "a b", "a\0", "ä", &"a".repeat(64)] {
            assert!(!disk(bad) && !tunnel(bad) && !pool(bad), "{bad:?}");
        }
        assert!(!disk("Sda") && !tunnel(".wg0") && !tunnel("wg0123456789abcd"));
    }
}
