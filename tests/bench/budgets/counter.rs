//! gatewren under callgrind: counts what it does from one moment to another.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::Error;
use crate::common::args::Common;
use crate::common::machine::Pinning;
use crate::common::servers::{Directory, Gatewren, Home, Running};
use crate::profile::Profile;

/// gatewren, counted.
pub struct Counter {
    /// It.
    pub ours: Gatewren,
    /// How.
    pub grind: Grind,
    _helper: Running,
}

/// A program under callgrind.
pub struct Grind {
    pid: u32,
    counts: Directory,
}

/// What its threads did.
#[derive(Debug, Clone, Default)]
pub struct Counted {
    /// The thread of every connection.
    pub front: Profile,
    /// All others: the writers of the databases.
    pub behind: Profile,
}

impl Counter {
    /// Starts it without counting. It has one core, and so one thread for all connections. Its helper runs beside it:
    /// it would start one with a pidfd, which Debian 12's valgrind does not know.
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
    /// Starts what stands behind, without counting yet.
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

    /// Counts from now on; the program is up.
    pub fn begin(pid: u32, counts: Directory) -> Result<Self, Error> {
        let grind = Self { pid, counts };
        grind.ask("instrumentation on")?;
        Ok(grind)
    }

    /// What follows is counted from nothing.
    pub fn reset(&self) -> Result<(), Error> {
        self.ask("zero")
    }

    /// What was done since.
    pub fn take(&self) -> Result<Counted, Error> {
        self.ask("dump")?;
        let mut counted = Counted::default();
        for file in self.files()? {
            let text = fs::read_to_string(&file)?;
            // The one without a number stays empty.
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

    /// What it wrote: a file a thread, named for the dump and the thread.
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
