//! Where programs are looked up.

use std::ffi::{CString, NulError};
use std::path::{Path, PathBuf};

use gatewren_wire::operations::{OperationRefusal, RefusalCode};

/// The default PATH of commands, and that of the helper's own tools.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// [`PATH`] as a variable.
pub fn path_variable() -> CString {
    CString::new(format!("PATH={PATH}")).unwrap_or_default()
}

/// Returns the files that `name` may refer to: the name itself if it contains a slash, else one in each directory of
/// `path`.
pub fn candidates(name: &str, path: &str) -> impl Iterator<Item = Result<CString, NulError>> {
    let folders: Vec<&str> = if name.contains('/') {
        Vec::new()
    } else {
        path.split(':')
            .filter(|folder| folder.starts_with('/'))
            .collect()
    };
    let itself = folders.is_empty().then(|| name.to_owned());
    let found = folders
        .into_iter()
        .map(move |folder| format!("{folder}/{name}"));
    let all: Vec<String> = itself.into_iter().chain(found).collect();
    all.into_iter().map(CString::new)
}

/// Finds one of the tools that the helper runs.
///
/// # Errors
/// A refusal that names the package to install.
pub fn find(name: &str) -> Result<PathBuf, OperationRefusal> {
    let files = PATH.split(':').map(|folder| Path::new(folder).join(name));
    files
        .into_iter()
        .find(|file| file.is_file())
        .ok_or_else(|| {
            let package = package(name);
            let message =
                format!("{name} is not installed; install it with: apt install {package}");
            OperationRefusal::new(RefusalCode::MissingProgram, message)
        })
}

/// Returns the Debian package of a tool.
fn package(name: &str) -> &'static str {
    match name {
        "busctl" | "journalctl" | "systemctl" => "systemd",
        "apt-get" => "apt",
        "locale" => "libc-bin",
        "locale-gen" => "locales",
        "setupcon" => "console-setup",
        "du" => "coreutils",
        "mount" | "umount" | "swapon" | "swapoff" => "mount",
        "modprobe" => "kmod",
        "fwupdmgr" => "fwupd",
        "mount.cifs" => "cifs-utils",
        "sendmail" => "msmtp-mta",
        "restic" => "restic",
        "tar" => "tar",
        "zstd" => "zstd",
        "nft" => "nftables",
        "smartctl" => "smartmontools",
        "zpool" => "zfsutils-linux",
        "btrfs" => "btrfs-progs",
        "e2fsck" | "tune2fs" | "dumpe2fs" => "e2fsprogs",
        "xfs_repair" => "xfsprogs",
        "blkid" | "mkswap" => "util-linux",
        "nmcli" => "network-manager",
        "iw" => "iw",
        "wg" | "wg-quick" => "wireguard-tools",
        _ => "lxc",
    }
}

#[cfg(test)]
mod tests {
    use super::super::programs::*;
    #[test]
    fn a_name_with_a_slash_is_a_path_and_relative_folders_are_not_searched() {
        let all = |name, path| {
            candidates(name, path)
                .collect::<Result<Vec<_>, _>>()
                .unwrap()
        };
        assert_eq!(all("./x", "/bin"), [c"./x".to_owned()]);
        assert_eq!(
            all("x", "/a:.:b:/c"),
            [c"/a/x".to_owned(), c"/c/x".to_owned()]
        );
        assert!(candidates("a\0b", PATH).any(|c| c.is_err()));
    }

    #[test]
    fn a_missing_tool_is_named_with_its_remedy() {
        let OperationRefusal { code, message } = find("lxc-no-such-tool").unwrap_err();
        assert_eq!(code, RefusalCode::MissingProgram);
        assert_eq!(
            message,
            "lxc-no-such-tool is not installed; install it with: apt install lxc"
        );
    }
}
