//! A line on the terminal while something takes long.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a command may be silent.
const SILENT: Duration = Duration::from_secs(2);

/// The pause between two updates of the line.
const UPDATE: Duration = Duration::from_secs(1);

/// Clears the line of the cursor.
const CLEAR: &str = "\r\x1b[K";

/// The line on standard error, which goes when this is dropped.
pub struct Progress {
    shown: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Prints after two seconds what the command does and for how long, if standard error is a terminal.
    pub fn begin(what: &'static str) -> Self {
        let (end, ended) = channel::<()>();
        let show = move || {
            let begun = Instant::now();
            let mut pause = SILENT;
            while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                pause = UPDATE;
                let seconds = begun.elapsed().as_secs();
                // An error is ignored: the line is only for a person who waits.
                let _ = write!(io::stderr(), "{CLEAR}{what}: {seconds} s");
            }
            if begun.elapsed() >= SILENT {
                let _ = write!(io::stderr(), "{CLEAR}");
            }
        };
        let thread = std::thread::Builder::new().name("progress".to_owned());
        let shown = io::stderr().is_terminal().then(|| thread.spawn(show).ok());
        Self {
            shown: shown.flatten().map(|thread| (end, thread)),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.shown.take() {
            drop(end);
            // It only writes, so it has nothing to report.
            let _ = thread.join();
        }
    }
}
