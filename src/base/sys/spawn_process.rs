//! Starts the process of a [`Spawn`], and reports why it could not be started.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsRawFd as _;

use nix::sys::signal::{SigSet, SigmaskHow};

use super::child::Child;
use super::descriptors::pipe;
use super::spawn::{Spawn, SpawnError, SpawnStage};
use super::spawn_plan::SpawnPlan;

impl Spawn<'_> {
    /// Starts it. Returns when the program itself runs (after `execve`), or the error of the step that failed.
    ///
    /// The program gets a new session, umask 022 and default signals. With `OnParentExit::Dies` it gets SIGKILL when
    /// its parent's thread ends. All data for the child is prepared before the fork: between fork and exec only
    /// system calls are allowed, because another thread may have held the allocator's lock.
    pub fn spawn(&self) -> Result<Child, SpawnError> {
        let fork_failed = |cause: io::Error| SpawnError {
            stage: SpawnStage::Fork,
            cause,
        };
        let (error_pipe, report) = pipe().map_err(fork_failed)?;
        let plan = SpawnPlan::of(self, report.as_raw_fd(), None);
        let old_mask = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK);
        let old_mask = old_mask.map_err(|e| fork_failed(e.into()))?;
        let forked = plan.start();
        let restored = old_mask.thread_set_mask();
        let child = forked.map_err(fork_failed)?;
        restored.map_err(|e| fork_failed(e.into()))?;
        drop(report);
        match read_spawn_error(File::from(error_pipe)) {
            None => Ok(child),
            Some(error) => {
                // The child exits right after its report, so this wait is short.
                let _ = child.wait_blocking();
                Err(error)
            }
        }
    }

    /// Forks a process that runs `run` instead of a program, and exits with its result. Its parent is the parent of this
    /// process, which must have no other thread. Returns its process id when it runs.
    pub(super) fn fork_sibling(&self, run: fn() -> u8) -> Result<i32, SpawnError> {
        let fork_failed = |cause: io::Error| SpawnError {
            stage: SpawnStage::Fork,
            cause,
        };
        let (error_pipe, report) = pipe().map_err(fork_failed)?;
        let plan = SpawnPlan::of(self, report.as_raw_fd(), Some(run));
        let pid = plan.fork_sibling().map_err(fork_failed)?;
        drop(report);
        match read_spawn_error(File::from(error_pipe)) {
            None => Ok(pid),
            Some(error) => Err(error),
        }
    }
}

/// Reads the error that the child reported; `None` when `execve` closed the pipe.
fn read_spawn_error(mut pipe: File) -> Option<SpawnError> {
    let mut bytes = [0; 5];
    pipe.read_exact(&mut bytes).ok()?;
    let [stage, a, b, c, d] = bytes;
    let stage = match stage {
        1 => SpawnStage::Cgroup,
        2 => SpawnStage::Descriptors,
        3 => SpawnStage::Identity,
        4 => SpawnStage::Directory,
        _ => SpawnStage::Program,
    };
    let cause = io::Error::from_raw_os_error(i32::from_ne_bytes([a, b, c, d]));
    Some(SpawnError { stage, cause })
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::os::fd::AsFd as _;
    use std::thread;

    use super::super::child::Exit;
    use super::super::spawn::{HugePages, OnParentExit};
    use super::*;

    /// What a shell sees of itself after it was started.
    const SEEN: &str = "grep -e SigBlk -e SigIgn -e SigCgt -e THP /proc/self/status; ls /proc/self/fd; umask; pwd; env; \
                        cut -d' ' -f6 /proc/$$/stat | sed s/^$$\\$/own/";

    fn shell<'a>(line: &str, fds: Vec<std::os::fd::BorrowedFd<'a>>) -> Spawn<'a> {
        let words = ["sh", "-c", line].map(|word| CString::new(word).unwrap());
        Spawn {
            programs: vec![c"/bin/sh".to_owned()],
            argv: words.into(),
            env: vec![c"PATH=/bin:/usr/bin".to_owned(), c"A=1".to_owned()],
            fds,
            directories: vec![c"/usr".to_owned()],
            with_parent: OnParentExit::Dies,
            ..Spawn::default()
        }
    }

    fn seen(start: impl Fn(&SpawnPlan<'_>) -> Child) -> String {
        let (mut reading, writing) = {
            let (reading, writing) = pipe().unwrap();
            (File::from(reading), writing)
        };
        let nothing = File::open("/dev/null").unwrap();
        let spawn = shell(
            SEEN,
            vec![nothing.as_fd(), writing.as_fd(), nothing.as_fd()],
        );
        let (errors, report) = pipe().unwrap();
        let child = start(&SpawnPlan::of(&spawn, report.as_raw_fd(), None));
        drop((report, spawn));
        drop(writing);
        assert!(read_spawn_error(File::from(errors)).is_none());
        let mut text = String::new();
        reading.read_to_string(&mut text).unwrap();
        assert_eq!(child.wait_blocking().unwrap(), Exit::Code(0));
        text
    }

    #[test]
    fn a_program_sees_no_difference_between_shared_memory_and_a_copy() {
        let copied = seen(|plan| plan.fork().unwrap());
        assert!(copied.contains("A=1") && copied.contains("own"), "{copied}");
        // Not on every processor, and not below an emulator.
        if cfg!(target_arch = "x86_64") {
            assert_eq!(seen(|plan| plan.share_memory().unwrap()), copied);
        }
        assert_eq!(seen(|plan| plan.start().unwrap()), copied);
    }

    #[test]
    fn threads_that_start_programs_and_use_memory_do_not_disturb_each_other() {
        thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || {
                    for round in 0..50 {
                        let code = thread * 50 + round;
                        let mut spawn = shell(&format!("exit {code}"), Vec::new());
                        spawn.huge_pages = HugePages::Inherited;
                        let kept: Vec<String> = (0..200).map(|n| format!("{n} {code}")).collect();
                        let child = spawn.spawn().unwrap();
                        assert_eq!(child.wait_blocking().unwrap(), Exit::Code(code));
                        assert!(kept.iter().all(|text| text.ends_with(&format!(" {code}"))));
                    }
                });
            }
        });
    }

    #[test]
    fn a_failed_step_is_reported_from_shared_memory_too() {
        let mut spawn = shell("exit 0", Vec::new());
        spawn.huge_pages = HugePages::Inherited;
        spawn.programs = vec![c"/nowhere/sh".to_owned()];
        assert_eq!(spawn.spawn().unwrap_err().stage, SpawnStage::Program);
        spawn.programs = vec![c"/bin/sh".to_owned()];
        spawn.directories = vec![c"/nowhere".to_owned()];
        assert_eq!(spawn.spawn().unwrap_err().stage, SpawnStage::Directory);
    }
}
