//! The cost of starting a program and reading its output without any server: the anchor of every command.

use std::ffi::CString;
use std::io::Read as _;
use std::os::fd::AsRawFd as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, posix_spawn};
use nix::sys::wait::{WaitStatus, waitpid};
use serde::{Deserialize, Serialize};

use crate::common::Error;
use crate::common::machine::{Pinning, cpu_with_children_us};
use crate::common::servers::Running;
use crate::common::spread::percentile;

/// Standard output.
const STDOUT: i32 = 1;

/// A program to start repeatedly, in several threads.
#[derive(Debug, Serialize, Deserialize)]
pub struct Spawned {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The length of the measurement.
    pub seconds: f64,
    /// The number of threads.
    pub parallel: u32,
}

/// The figures of the loop.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Loop {
    /// CPU of one start, including the parent's, in microseconds.
    pub cpu_us: f64,
    /// The median, in microseconds.
    pub p50_us: f64,
}

/// Runs the loop in a separate process, on the servers' core.
pub fn measure(spawned: &Spawned, pinning: Pinning) -> Result<Loop, Error> {
    let mut command = pinning.server(&std::env::current_exe()?);
    command
        .arg("--spawn")
        .arg(serde_json::to_string(spawned)?)
        .stdout(Stdio::piped());
    Ok(serde_json::from_str(
        &Running::start(command)?.first_line()?,
    )?)
}

/// The main function of the separate process.
pub fn run(spawned: &str) -> Result<String, Error> {
    let spawned: Spawned = serde_json::from_str(spawned)?;
    let own = std::process::id();
    let (cpu, began) = (cpu_with_children_us(own)?, Instant::now());
    let end = began + Duration::from_secs_f64(spawned.seconds);
    let mut took = Vec::new();
    std::thread::scope(|scope| -> Result<(), Error> {
        let threads: Vec<_> = (0..spawned.parallel)
            .map(|_| scope.spawn(|| until(&spawned.argv, end)))
            .collect();
        for thread in threads {
            took.extend(thread.join().map_err(|_| "a thread has panicked")??);
        }
        Ok(())
    })?;
    took.sort_unstable();
    let calls = f64::from(u32::try_from(took.len())?);
    let p50 = percentile(&took, 50).unwrap_or_default();
    Ok(serde_json::to_string(&Loop {
        cpu_us: (cpu_with_children_us(own)? - cpu) / calls,
        p50_us: p50.as_secs_f64() * 1e6,
    })?)
}

fn until(argv: &[String], end: Instant) -> Result<Vec<Duration>, Error> {
    let argv = argv.iter().map(|word| CString::new(word.as_str()));
    let argv = argv.collect::<Result<Vec<_>, _>>()?;
    let mut took = Vec::new();
    while took.is_empty() || Instant::now() < end {
        let began = Instant::now();
        once(&argv)?;
        took.push(began.elapsed());
    }
    Ok(took)
}

fn once(argv: &[CString]) -> Result<(), Error> {
    let (mut output, into) = std::io::pipe()?;
    let mut actions = PosixSpawnFileActions::init()?;
    actions.add_dup2(into.as_raw_fd(), STDOUT)?;
    let program = argv.first().ok_or("nothing to start")?;
    let environment = [c"PATH=/usr/sbin:/usr/bin:/sbin:/bin"];
    let attributes = PosixSpawnAttr::init()?;
    let pid = posix_spawn(
        program.as_c_str(),
        &actions,
        &attributes,
        argv,
        &environment,
    )?;
    drop(into);
    let mut text = Vec::new();
    output.read_to_end(&mut text)?;
    let status = waitpid(pid, None)?;
    if !matches!(status, WaitStatus::Exited(_, 0)) || text != b"hi\n" {
        let text = String::from_utf8_lossy(&text);
        return Err(format!("{}: {status:?}, {text}", program.to_string_lossy()).into());
    }
    Ok(())
}
