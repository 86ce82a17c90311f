//! The socket of a service manager (`NOTIFY_SOCKET`) that receives notifications.

use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::time::Instant;

use super::machine::IN_TIME;
use super::server::Directory;

/// The socket of a service manager.
pub struct NotifySocket {
    /// The socket that receives the notifications.
    pub socket: UnixDatagram,
    path: PathBuf,
    _home: Directory,
}

impl NotifySocket {
    pub fn new() -> Self {
        let home = Directory::new();
        let path = home.join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(IN_TIME)).unwrap();
        Self {
            socket,
            path,
            _home: home,
        }
    }

    /// Returns the value of `NOTIFY_SOCKET` for a service.
    pub fn path(&self) -> &str {
        self.path.to_str().unwrap()
    }

    pub fn notice(&self) -> String {
        let mut bytes = [0; 4096];
        let length = self.socket.recv(&mut bytes).expect("a notice in time");
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }

    /// Waits for a notification with this line; others may precede it.
    pub fn expect(&self, line: &str) {
        self.expect_line(line, |said| said == line);
    }

    /// Waits for a notification with a matching line; others may precede it.
    pub fn expect_line(&self, what: &str, is_it: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let notice = self.notice();
            if let Some(line) = notice.lines().find(|line| is_it(line)) {
                return line.to_owned();
            }
            assert!(begun.elapsed() < IN_TIME, "{what} did not come");
        }
    }
}
