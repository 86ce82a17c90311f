//! The host name, as the kernel reports it.

use std::fs;

/// Returns the host name; `None` if there is none, or it cannot be read.
pub fn host_name() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    let name = name.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_uname_says() {
        let name = nix::unistd::gethostname().unwrap();
        assert_eq!(host_name(), name.into_string().ok());
    }
}
