//! Which containers are defined on this host, and in which files: LXC's own directories, and Proxmox's.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use gatewren_base::config::RuntimeKind;
use gatewren_wire::operations::ContainerRef;

/// The suffix after a container's number in its file name on Proxmox.
const PROXMOX_SUFFIX: &str = ".conf";

/// The file in a directory that makes it a container.
pub const CONFIG: &str = "config";

/// Where containers are defined.
///
/// On Proxmox VE a container is a number, and its file in `/etc/pve/lxc` is authoritative. Proxmox generates the
/// directory below the lxcpath from it at each start. The directory is missing before the first start, and stays when
/// the container moves to another node.
#[derive(Debug, Clone)]
pub struct ContainerDefinitions {
    lxcpath: PathBuf,
    proxmox: PathBuf,
}

impl ContainerDefinitions {
    /// Definitions below `lxcpath`, and in the directory `proxmox` if it exists.
    pub fn new(lxcpath: PathBuf, proxmox: PathBuf) -> Self {
        Self { lxcpath, proxmox }
    }

    /// The directory of LXC's containers.
    pub fn lxcpath(&self) -> &Path {
        &self.lxcpath
    }

    /// The directory of Proxmox's files, if this host has one.
    pub fn proxmox(&self) -> Option<&Path> {
        Some(self.proxmox.as_path()).filter(|path| path.is_dir())
    }

    /// Returns the names of the containers, sorted. A missing directory counts as empty.
    ///
    /// # Errors
    /// Fails if a directory exists but cannot be read.
    pub fn names(&self) -> io::Result<Vec<ContainerRef>> {
        let plain = entries(&self.lxcpath)?;
        let plain = plain.iter().filter_map(|name| name.parse().ok());
        let mut names: Vec<ContainerRef> = plain.filter(|name| self.is_plain(name)).collect();
        if let Some(proxmox) = self.proxmox() {
            let files = entries(proxmox)?;
            names.extend(files.iter().filter_map(|file| proxmox_container(file)));
        }
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// Returns the file that defines a container.
    pub fn file(&self, name: &ContainerRef) -> PathBuf {
        if is_number(name) && self.proxmox().is_some() {
            self.proxmox.join(format!("{name}{PROXMOX_SUFFIX}"))
        } else {
            self.directory(name).join(CONFIG)
        }
    }

    /// Returns LXC's directory of a container.
    pub fn directory(&self, name: &ContainerRef) -> PathBuf {
        self.lxcpath.join(name.as_str())
    }

    fn is_plain(&self, name: &ContainerRef) -> bool {
        // A directory with the name of another runtime's container is not that container.
        let is_lxc = name.runtime() == RuntimeKind::Lxc;
        let ours = is_lxc && (!is_number(name) || self.proxmox().is_none());
        ours && self.directory(name).join(CONFIG).is_file()
    }
}

/// Returns the container that a Proxmox file defines, such as `101.conf`.
pub fn proxmox_container(file: &str) -> Option<ContainerRef> {
    let name = file.strip_suffix(PROXMOX_SUFFIX)?.parse().ok()?;
    is_number(&name).then_some(name)
}

fn is_number(name: &ContainerRef) -> bool {
    name.as_str().bytes().all(|byte| byte.is_ascii_digit())
}

fn entries(folder: &Path) -> io::Result<Vec<String>> {
    let found = match fs::read_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        found => found?,
    };
    let names = found.map(|entry| Ok(entry?.file_name().into_string().ok()));
    let names: io::Result<Vec<Option<String>>> = names.collect();
    Ok(names?.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use gatewren_base::sys::Scratch;

    use super::super::definitions::*;

    fn places(scratch: &Scratch) -> ContainerDefinitions {
        let define = |file: &str| {
            let file = scratch.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        };
        for file in [
            "lxc/alpha/config",
            "lxc/101/config",
            "lxc/docker:web/config",
            "lxc/empty/rootfs",
            "lxc/.lab",
        ] {
            define(file);
        }
        ContainerDefinitions::new(scratch.join("lxc"), scratch.join("pve"))
    }

    fn names(definitions: &ContainerDefinitions) -> Vec<String> {
        let names = definitions.names().unwrap();
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_directory_with_a_configuration_is_a_container() {
        let scratch = Scratch::new();
        let definitions = places(&scratch);
        assert_eq!(names(&definitions), ["101", "alpha"]);
        let file = definitions.file(&"101".parse().unwrap());
        assert_eq!(file, scratch.join("lxc/101/config"));
        let nowhere = ContainerDefinitions::new(scratch.join("a"), scratch.join("b"));
        assert_eq!(names(&nowhere), [""; 0]);
    }

    #[test]
    fn on_proxmox_its_files_define_the_numbers() {
        let scratch = Scratch::new();
        let definitions = places(&scratch);
        fs::create_dir(scratch.join("pve")).unwrap();
        for file in ["102.conf", "103.conf.tmp.7", "x.conf", ".conf", "104"] {
            fs::write(scratch.join("pve").join(file), "").unwrap();
        }
        assert_eq!(names(&definitions), ["102", "alpha"]);
        let file = definitions.file(&"102".parse().unwrap());
        assert_eq!(file, scratch.join("pve/102.conf"));
    }
}
