//! The terminal: its size, single keys, and reading a hidden line from it or from a pipe in its place.

use std::future::pending;
use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};

use nix::libc;
use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use tokio::sync::mpsc;

use gatewren_portable::{Secret, Zeroizing};

/// The longest line, in bytes; a longer one is truncated, and is not a password.
const MAX_BYTES: usize = 4096;

/// The number of pressed keys that wait; then the terminal keeps the rest.
const MAX_KEYS: usize = 16;

/// Reads a line from standard input. On a terminal, the question is shown and the answer is not echoed. A pipe is
/// read unchanged, up to the end of its first line.
pub fn read_hidden(question: &str) -> io::Result<Secret> {
    let input = io::stdin();
    let hidden = if input.is_terminal() {
        // Standard output may be read by a program.
        write!(io::stderr(), "{question}: ")?;
        Some(ChangedTerminal::without(LocalFlags::ECHO)?)
    } else {
        None
    };
    // A text that grows would leave copies behind.
    let mut line = Zeroizing::new(String::with_capacity(MAX_BYTES));
    input.lock().take(MAX_BYTES as u64).read_line(&mut line)?;
    if hidden.is_some() {
        drop(hidden);
        writeln!(io::stderr())?;
    }
    Ok(Secret::new(line.trim_end_matches(['\r', '\n'])))
}

/// Returns whether standard input is a terminal, so that a person can be asked twice.
pub fn is_asked() -> bool {
    io::stdin().is_terminal()
}

/// Returns whether to write colors and bold text to a stream: to a terminal that knows them, unless `NO_COLOR` is set
/// (no-color.org).
pub fn wants_color(stream: &impl io::IsTerminal) -> bool {
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let is_off = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    stream.is_terminal() && !is_dumb && !is_off
}

/// Returns the rows and columns of the terminal at standard output; `None` if it is not a terminal, or reports no
/// size.
pub fn terminal_size() -> Option<(usize, usize)> {
    let mut size = libc::winsize {
        ws_row: 0,
        ws_col: 0,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    #[expect(unsafe_code, reason = "the ioctl has no safe wrapper")]
    // SAFETY: the call writes one `winsize` to the pointer, which is valid until it returns.
    let result = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &raw mut size) };
    let size = (usize::from(size.ws_row), usize::from(size.ws_col));
    (result == 0 && size.0 > 0 && size.1 > 0).then_some(size)
}

/// The keys that are pressed on the terminal at standard input. Dropping it gives the terminal back.
pub struct PressedKeys {
    keys: mpsc::Receiver<u8>,
    _changed: Option<ChangedTerminal>,
}

impl PressedKeys {
    /// Receives each key at once from now on, without showing it. Ctrl-C stays a signal. There are no keys if standard
    /// input is not a terminal.
    pub fn receive() -> io::Result<Self> {
        let (sender, keys) = mpsc::channel(MAX_KEYS);
        let changed = if io::stdin().is_terminal() {
            let changed = ChangedTerminal::without(LocalFlags::ICANON | LocalFlags::ECHO)?;
            // It waits in a read of the terminal until the process ends.
            std::thread::Builder::new()
                .name("keys".to_owned())
                .spawn(move || send_keys(&sender))?;
            Some(changed)
        } else {
            None
        };
        Ok(Self {
            keys,
            _changed: changed,
        })
    }

    /// Waits for the next key, a byte; without a terminal for ever.
    pub async fn next(&mut self) -> u8 {
        match self.keys.recv().await {
            Some(key) => key,
            None => pending().await,
        }
    }
}

fn send_keys(sender: &mpsc::Sender<u8>) {
    let mut key = [0];
    while matches!(io::stdin().lock().read(&mut key), Ok(1)) {
        if sender.blocking_send(key[0]).is_err() {
            return;
        }
    }
}

/// The previous terminal settings; dropping it restores them.
struct ChangedTerminal(Termios);

impl ChangedTerminal {
    fn without(flags: LocalFlags) -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut changed = before.clone();
        changed.local_flags.remove(flags);
        tcsetattr(io::stdin(), SetArg::TCSAFLUSH, &changed)?;
        Ok(Self(before))
    }
}

impl Drop for ChangedTerminal {
    fn drop(&mut self) {
        // An error cannot be reported here.
        let _ = tcsetattr(io::stdin(), SetArg::TCSAFLUSH, &self.0);
    }
}
