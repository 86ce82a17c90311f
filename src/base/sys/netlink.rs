//! Subscribes to announcements of the kernel over netlink; needs no privileges.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket,
};

/// Links, addresses and routes of this network namespace (rtnetlink(7)).
const NETWORK_GROUPS: i32 = libc::RTMGRP_LINK
    | libc::RTMGRP_IPV4_IFADDR
    | libc::RTMGRP_IPV6_IFADDR
    | libc::RTMGRP_IPV4_ROUTE
    | libc::RTMGRP_IPV6_ROUTE;

/// The kernel's announcements of its devices, and udev's announcements of the same devices.
const DEVICE_GROUPS: i32 = 1 | 2;

/// The mark in an announcement of a disk or a partition.
const BLOCK_DEVICE: &[u8] = b"SUBSYSTEM=block";

/// Longer announcements are truncated: the beginning is enough.
const MAX_BYTES: usize = 8192;

/// The most announcements read at once; after that the caller looks anyway, and the rest is read later.
const MAX_TAKEN: usize = 4096;

/// A socket that receives announcements.
#[derive(Debug)]
pub struct Netlink {
    socket: OwnedFd,
    /// The bytes that an announcement must contain to count; empty for any.
    mark: &'static [u8],
}

impl Netlink {
    /// Subscribes to network interfaces, their addresses, and routes.
    pub fn network() -> io::Result<Self> {
        Self::open(SockProtocol::NetlinkRoute, NETWORK_GROUPS, b"")
    }

    /// Subscribes to disks and partitions.
    pub fn block_devices() -> io::Result<Self> {
        Self::open(
            SockProtocol::NetlinkKObjectUEvent,
            DEVICE_GROUPS,
            BLOCK_DEVICE,
        )
    }

    /// Reads all pending announcements, and returns whether any of them counts. Announcements that were lost
    /// because the queue overflowed count.
    pub fn take(&self) -> io::Result<bool> {
        let mut bytes = [0; MAX_BYTES];
        let mut counts = false;
        for _ in 0..MAX_TAKEN {
            match recv(self.socket.as_raw_fd(), &mut bytes, MsgFlags::empty()) {
                Ok(length) => counts |= self.is_marked(bytes.get(..length).unwrap_or_default()),
                Err(Errno::ENOBUFS) => counts = true,
                Err(Errno::EAGAIN) => break,
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(counts)
    }

    fn open(protocol: SockProtocol, groups: i32, mark: &'static [u8]) -> io::Result<Self> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, protocol)?;
        bind(
            socket.as_raw_fd(),
            &NetlinkAddr::new(0, groups.unsigned_abs()),
        )?;
        Ok(Self { socket, mark })
    }

    fn is_marked(&self, announcement: &[u8]) -> bool {
        self.mark.is_empty()
            || announcement
                .windows(self.mark.len())
                .any(|part| part == self.mark)
    }
}

impl AsRawFd for Netlink {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_disks_and_partitions_count_among_devices() {
        let devices = Netlink::block_devices().unwrap();
        let disk = b"change@/devices/virtual/block/loop0\0ACTION=change\0SUBSYSTEM=block\0";
        assert!(devices.is_marked(disk));
        for other in [&b"add@/devices/x\0SUBSYSTEM=usb\0"[..], b"", b"SUBSYSTEM="] {
            assert!(!devices.is_marked(other));
        }
        assert!(Netlink::network().unwrap().is_marked(b""));
    }

    #[test]
    fn a_silent_socket_does_not_hold_its_reader_up() {
        let network = Netlink::network().unwrap();
        while network.take().unwrap() {}
    }
}
