//! Sends one datagram to a Unix socket, by a path or by an abstract name.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Sends the bytes as one datagram. An address that begins with `@` is an abstract name (unix(7)).
pub fn send_datagram(address: &OsStr, bytes: &[u8]) -> io::Result<()> {
    let address = match address.as_bytes().split_first() {
        Some((b'@', name)) => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(address)?,
    };
    let sent = UnixDatagram::unbound()?.send_to_addr(bytes, &address)?;
    if sent == bytes.len() {
        Ok(())
    } else {
        Err(io::ErrorKind::WriteZero.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewren_portable::Scratch;

    fn received(socket: &UnixDatagram) -> Vec<u8> {
        let mut bytes = [0; 64];
        let length = socket.recv(&mut bytes).unwrap();
        bytes[..length].to_vec()
    }

    #[test]
    fn it_arrives_by_path_and_by_abstract_name() {
        let scratch = Scratch::new();
        let path = scratch.join("socket");
        let socket = UnixDatagram::bind(&path).unwrap();
        send_datagram(path.as_os_str(), b"READY=1\n").unwrap();
        assert_eq!(received(&socket), b"READY=1\n");

        let name = format!("gatewren{}", scratch.path().display());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        send_datagram(OsStr::new(&format!("@{name}")), b"STOPPING=1\n").unwrap();
        assert_eq!(received(&socket), b"STOPPING=1\n");
    }

    #[test]
    fn nobody_there_is_an_error() {
        assert!(send_datagram(OsStr::new("/nonexistent/socket"), b"x").is_err());
        assert!(send_datagram(OsStr::new("@gatewren nobody"), b"x").is_err());
    }
}
