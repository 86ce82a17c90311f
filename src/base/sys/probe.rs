//! Checks whether another host answers: an echo request, a TCP connection, a query to a name server.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::time::{Duration, Instant};

use nix::sys::socket::{
    AddressFamily, SockFlag, SockProtocol, SockType, SockaddrStorage, connect, socket,
};

use gatewren_portable::random_bytes;

/// The length of the token that identifies our answer.
const TOKEN_BYTES: usize = 8;

/// The most bytes of an echo answer that are read, including the IPv4 header.
const ANSWER_BYTES: usize = 256;

/// The largest answer of a name server by UDP; a server with a longer one marks it as truncated, and is queried by
/// TCP.
const DATAGRAM_BYTES: usize = 4096;

/// The bit that marks a DNS message as an answer (RFC 1035, 4.1.1), in its third byte.
const IS_ANSWER: u8 = 0x80;

/// The bit that marks the answer as truncated, in the same byte.
const IS_CUT: u8 = 0x02;

/// Sends one echo request (ICMP) and waits for its answer. Returns how long it took; `None` if no answer came.
///
/// An unprivileged process needs the kernel's permission (`net.ipv4.ping_group_range`, icmp(7)); `raw` needs
/// `CAP_NET_RAW`. An answer that reports the destination unreachable counts as none.
///
/// # Errors
/// `PermissionDenied`, and the kernel's error if it has no route.
pub fn echo(address: IpAddr, wait: Duration, raw: bool) -> io::Result<Option<Duration>> {
    let socket = echo_socket(address, raw)?;
    let token = random_bytes::<TOKEN_BYTES>().map_err(io::Error::other)?;
    let started_at = Instant::now();
    socket.send(&request(address, token))?;
    let mut bytes = [0; ANSWER_BYTES];
    loop {
        let left = wait.saturating_sub(started_at.elapsed());
        if left.is_zero() {
            return Ok(None);
        }
        socket.set_read_timeout(Some(left))?;
        match socket.recv(&mut bytes) {
            Ok(length) => {
                let answer = bytes.get(..length).unwrap_or_default();
                if answers(address, answer, raw, token) {
                    return Ok(Some(started_at.elapsed()));
                }
            }
            Err(cause) if is_timeout(&cause) => return Ok(None),
            Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause),
        }
    }
}

fn echo_socket(address: IpAddr, raw: bool) -> io::Result<UdpSocket> {
    let kind = if raw {
        SockType::Raw
    } else {
        SockType::Datagram
    };
    let (family, protocol) = match address {
        IpAddr::V4(_) => (AddressFamily::Inet, SockProtocol::Icmp),
        IpAddr::V6(_) => (AddressFamily::Inet6, SockProtocol::IcmpV6),
    };
    let descriptor: OwnedFd = socket(family, kind, SockFlag::SOCK_CLOEXEC, protocol)?;
    let to = SockaddrStorage::from(SocketAddr::new(address, 0));
    connect(descriptor.as_raw_fd(), &to)?;
    // Everything needed here works as with a UDP socket: connect, send, receive, timeouts.
    Ok(UdpSocket::from(descriptor))
}

/// Builds an echo request (RFC 792, RFC 4443) with the token as its data.
fn request(address: IpAddr, token: [u8; TOKEN_BYTES]) -> Vec<u8> {
    let kind = if address.is_ipv4() { 8 } else { 128 };
    let mut message = vec![kind, 0, 0, 0, 0x67, 0x77, 0, 1];
    message.extend(token);
    // The kernel computes the checksum of ICMPv6.
    let sum = checksum(&message).to_be_bytes();
    if let (true, Some(place)) = (address.is_ipv4(), message.get_mut(2..4)) {
        place.copy_from_slice(&sum);
    }
    message
}

/// The internet checksum (RFC 1071).
fn checksum(message: &[u8]) -> u16 {
    let words = message.chunks(2).map(|pair| match pair {
        [high, low] => u32::from(u16::from_be_bytes([*high, *low])),
        [high] => u32::from(*high) << 8,
        _ => 0,
    });
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    u16::try_from(!sum & 0xffff).unwrap_or(u16::MAX)
}

fn answers(address: IpAddr, bytes: &[u8], raw: bool, token: [u8; TOKEN_BYTES]) -> bool {
    // A raw IPv4 socket also returns the header, whose length is in its first byte.
    let header = match (address, bytes.first()) {
        (IpAddr::V4(_), Some(first)) if raw => usize::from(first & 0x0f) * 4,
        _ => 0,
    };
    let kind = if address.is_ipv4() { 0 } else { 129 };
    let message = bytes.get(header..).unwrap_or_default();
    message.first() == Some(&kind) && message.get(8..) == Some(&token[..])
}

/// Opens a connection and closes it again.
///
/// # Errors
/// `ConnectionRefused`, `TimedOut`, and the kernel's error if it has no route.
pub fn connect_tcp(address: SocketAddr, wait: Duration) -> io::Result<()> {
    TcpStream::connect_timeout(&address, wait).map(drop)
}

/// Sends a message to a name server by UDP, and again by TCP when the answer is truncated. Returns the answer.
///
/// # Errors
/// `TimedOut` when no answer came, and the kernel's error if it has no route.
pub fn ask_name_server(server: SocketAddr, message: &[u8], wait: Duration) -> io::Result<Vec<u8>> {
    let any: IpAddr = match server.ip() {
        IpAddr::V4(_) => [0; 4].into(),
        IpAddr::V6(_) => [0_u8; 16].into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(server)?;
    socket.send(message)?;
    let started_at = Instant::now();
    let mut bytes = vec![0; DATAGRAM_BYTES];
    loop {
        let left = wait.saturating_sub(started_at.elapsed());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        socket.set_read_timeout(Some(left))?;
        let length = match socket.recv(&mut bytes) {
            Ok(length) => length,
            Err(cause) if is_timeout(&cause) => return Err(ErrorKind::TimedOut.into()),
            Err(cause) if cause.kind() == ErrorKind::Interrupted => continue,
            Err(cause) => return Err(cause),
        };
        let answer = bytes.get(..length).unwrap_or_default();
        match answer.get(2) {
            // The answer to another query, or no DNS message at all.
            _ if answer.get(..2) != message.get(..2) => {}
            Some(flags) if flags & IS_ANSWER == 0 => {}
            Some(flags) if flags & IS_CUT != 0 => return ask_by_tcp(server, message, wait),
            Some(_) => return Ok(answer.to_vec()),
            None => {}
        }
    }
}

/// Queries by TCP, where a length precedes each message (RFC 1035, 4.2.2). The timeout covers the whole exchange: a
/// server that sends its answer slowly gains no time.
fn ask_by_tcp(server: SocketAddr, message: &[u8], wait: Duration) -> io::Result<Vec<u8>> {
    let deadline = Instant::now() + wait;
    let mut stream = TcpStream::connect_timeout(&server, wait)?;
    stream.set_write_timeout(Some(wait))?;
    let length = u16::try_from(message.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes()[..], message].concat())?;
    let mut length = [0; 2];
    read_before(&mut stream, &mut length, deadline)?;
    let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
    read_before(&mut stream, &mut answer, deadline)?;
    Ok(answer)
}

/// Fills the buffer before the deadline.
fn read_before(stream: &mut TcpStream, mut buffer: &mut [u8], deadline: Instant) -> io::Result<()> {
    while !buffer.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(buffer) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(length) => buffer = buffer.get_mut(length..).unwrap_or_default(),
            Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
            Err(cause) if is_timeout(&cause) => return Err(ErrorKind::TimedOut.into()),
            Err(cause) => return Err(cause),
        }
    }
    Ok(())
}

fn is_timeout(cause: &io::Error) -> bool {
    matches!(cause.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    /// Longer than any test waits.
    const LONG: Duration = Duration::from_mins(1);

    #[test]
    fn an_echo_request_has_its_checksum_and_its_answer_is_known() {
        let address = IpAddr::from(Ipv4Addr::LOCALHOST);
        let token = *b"12345678";
        let sent = request(address, token);
        assert_eq!(checksum(&sent), 0, "with the sum in it, the sum is 0");
        let mut answer = sent.clone();
        answer[0] = 0;
        assert!(answers(address, &answer, false, token));
        assert!(!answers(address, &sent, false, token), "it is no answer");
        assert!(!answers(address, &answer, false, *b"87654321"));
        let with_header = [&[0x45; 20][..], &answer].concat();
        assert!(answers(address, &with_header, true, token));
        assert!(!answers(address, b"", true, token));
    }

    #[test]
    fn a_port_is_open_or_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(connect_tcp(listener.local_addr().unwrap(), LONG).is_ok());
        // Nothing can listen on port 0.
        assert!(connect_tcp("127.0.0.1:0".parse().unwrap(), LONG).is_err());
    }

    #[test]
    fn a_name_server_is_asked_again_by_tcp_when_its_answer_was_cut() {
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = udp.local_addr().unwrap();
        // Another program may use the same port of the other protocol.
        let Ok(tcp) = TcpListener::bind(address) else {
            return super::super::skip::skip("the port is taken for TCP");
        };
        let server = std::thread::spawn(move || {
            let mut bytes = [0; 64];
            let (length, from) = udp.recv_from(&mut bytes).unwrap();
            assert_eq!(&bytes[..length], b"\x01\x02\x01\x00question");
            udp.send_to(b"\x09\x09\x80\x00of another", from).unwrap();
            udp.send_to(b"\x01\x02\x82\x00cut", from).unwrap();
            let (mut stream, _) = tcp.accept().unwrap();
            stream.read_exact(&mut bytes[..14]).unwrap();
            assert_eq!(&bytes[..14], b"\x00\x0c\x01\x02\x01\x00question");
            stream.write_all(b"\x00\x08\x01\x02\x80\x00long").unwrap();
        });
        let answer = ask_name_server(address, b"\x01\x02\x01\x00question", LONG).unwrap();
        assert_eq!(answer, b"\x01\x02\x80\x00long");
        server.join().unwrap();
    }

    #[test]
    fn a_name_server_that_drips_its_answer_gains_no_time() {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = tcp.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = tcp.accept().unwrap();
            // Until the other side closes the connection.
            while stream.write_all(b"\xff").is_ok() {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let answer = ask_by_tcp(address, b"question", Duration::from_millis(50));
        assert_eq!(answer.unwrap_err().kind(), ErrorKind::TimedOut);
        server.join().unwrap();
    }
}
