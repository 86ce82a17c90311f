//! gatewren under callgrind: counts its instructions and allocations in a period.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::Error;
use crate::common::args::Common;
use crate::common::machine::Pinning;
use crate::common::servers::{Directory, Gatewren, Home, Running};
use crate::profile::Profile;

/// A counted gatewren.
pub struct Counter {
    /// The server.
    pub ours: Gatewren,
    /// The control of callgrind.
    pub grind: Grind,
    _helper: Running,
}

/// A program under callgrind.
pub struct Grind {
    pid: u32,
    counts: Directory,
}

/// The counts of its threads.
#[derive(Debug, Clone, Default)]
pub struct Counted {
    /// The thread that serves all connections.
    pub front: Profile,
    /// All other threads: the writers of the databases.
    pub behind: Profile,
}

impl Counter {
    /// Starts gatewren without counting. It has one core, and therefore one thread for all connections. The helper is
    /// started separately: gatewren would start it with a pidfd, which Debian 12's valgrind does not support.
    pub fn start(args: &Common, pinning: Pinning) -> Result<Self, Error> {
        if !pinning.is_held() {
            return Err(
                "two cores and taskset are needed: on a core of its own gatewren has one thread"
                    .into(),
            );
        }
        let home = Home::new(args)?;
        let helper = home.start_helper(args)?;
        let counts = Directory::new()?;
        let mut command = Grind::command(pinning, &counts);
        command.arg(&args.binary);
        let process = home.start_with(command)?;
        let ours = Gatewren::of(home, process)?;
        Ok(Self {
            grind: Grind::begin(ours.pid(), counts)?,
            ours,
            _helper: helper,
        })
    }
}

impl Grind {
    /// Returns the command that starts a program under callgrind, without counting yet.
    pub fn command(pinning: Pinning, counts: &Directory) -> Command {
        let mut command = pinning.server(Path::new("valgrind"));
        let file = counts.join("counted");
        command
            .args([
                "--tool=callgrind",
                "--quiet",
                "--instr-atstart=no",
                "--separate-threads=yes",
            ])
            .arg(format!("--callgrind-out-file={}", file.display()));
        command
    }

    /// Starts counting; the program is up.
    pub fn begin(pid: u32, counts: Directory) -> Result<Self, Error> {
        let grind = Self { pid, counts };
        grind.ask("instrumentation on")?;
        Ok(grind)
    }

    /// Resets the counts.
    pub fn reset(&self) -> Result<(), Error> {
        self.ask("zero")
    }

    /// Returns the counts since the last reset.
    pub fn take(&self) -> Result<Counted, Error> {
        self.ask("dump")?;
        let mut counted = Counted::default();
        for file in self.files()? {
            let text = fs::read_to_string(&file)?;
            // The file without a number stays empty.
            if text.is_empty() {
                continue;
            }
            let profile = Profile::read(&text)?;
            fs::remove_file(&file)?;
            let name = file.to_string_lossy();
            if name.ends_with("-01") {
                counted.front.add(&profile);
            } else {
                counted.behind.add(&profile);
            }
        }
        if counted.front.instructions + counted.behind.instructions == 0 {
            return Err("callgrind has counted nothing".into());
        }
        Ok(counted)
    }

    /// Returns callgrind's files: one per thread, named for the dump and the thread.
    fn files(&self) -> Result<Vec<PathBuf>, Error> {
        let mut files = Vec::new();
        for entry in fs::read_dir(self.counts.path())? {
            files.push(entry?.path());
        }
        Ok(files)
    }

    fn ask(&self, what: &str) -> Result<(), Error> {
        let pid = format!("--pid={}", self.pid);
        let mut vgdb = Command::new("vgdb");
        vgdb.arg(pid).args(what.split(' '));
        let done = vgdb.stdin(Stdio::null()).output();
        let done = done.map_err(|e| format!("vgdb, which comes with valgrind: {e}"))?;
        if !done.status.success() {
            let words = String::from_utf8_lossy(&done.stderr);
            return Err(format!("vgdb {what}: {words}").into());
        }
        Ok(())
    }
}
