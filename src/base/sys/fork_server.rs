//! A fork server: a copy of this process, from before it had threads, that forks again whenever it is asked to. A program
//! that forks need not be loaded and relocated, which takes most of the time of starting it.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd as _, AsRawFd, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::time::Duration;

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::prctl::{set_name, set_pdeathsig};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg,
    sendmsg, setsockopt, socketpair, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike as _};
use nix::unistd::{self, ForkResult, Pid};

use super::audit_session::AuditSession;
use super::child::Child;
use super::descriptors::close_all_but;
use super::proc_dir::{hold_proc, threads};
use super::spawn::{OnParentExit, Spawn};
use super::spawn_plan::exit_now;

/// Its name in process lists.
const NAME: &std::ffi::CStr = c"gatewren-fork";

/// The descriptors of each child: 0 to 4.
pub const FORKED_FDS: usize = 5;

/// How long it may take to answer. One that a signal has stopped does not answer; it is replaced by slower ways.
const PATIENCE: Duration = Duration::from_secs(2);

/// A request is one byte: whether a cgroup follows the descriptors of the child. An answer is a number: the process id,
/// or the negative number of an error.
const ANSWER_BYTES: usize = size_of::<i32>();

/// A running fork server. It ends when this is dropped, or when the thread that started it ends.
///
/// Fast path: a command on the host takes 2.48 ms instead of 3.29, where `posix_spawn` takes 0.57.
#[derive(Debug)]
pub struct ForkServer {
    socket: OwnedFd,
}

/// Why a fork server forked nothing.
#[derive(Debug)]
pub enum ForkError {
    /// The kernel refused the new process.
    Refused(io::Error),
    /// The server does not answer.
    Gone(io::Error),
}

impl ForkServer {
    /// Starts the server, which runs `run` in each process that it forks, and its process as a child of this one.
    ///
    /// # Errors
    /// Fails in a process that has further threads: a lock that one of them holds would stay locked in the copy.
    pub fn start(run: fn() -> u8) -> io::Result<(Self, Child)> {
        let proc = hold_proc()?.as_raw_fd();
        let flags = SockFlag::SOCK_CLOEXEC;
        let (family, kind) = (AddressFamily::Unix, SockType::SeqPacket);
        let (ours, theirs) = socketpair(family, kind, None, flags)?;
        let patience = TimeVal::seconds(i64::try_from(PATIENCE.as_secs()).unwrap_or(i64::MAX));
        setsockopt(&ours, sockopt::ReceiveTimeout, &patience)?;
        if threads()? != 1 {
            return Err(io::Error::other("this process has further threads"));
        }
        let parent = unistd::getpid();
        #[expect(unsafe_code, reason = "fork is unsafe in a process with threads")]
        // SAFETY: this process has no other thread that could hold a lock.
        let forked = unsafe { unistd::fork() }?;
        match forked {
            ForkResult::Child => serve(&theirs, proc, parent, run),
            ForkResult::Parent { child } => {
                Child::open(child.as_raw()).map(|child| (Self { socket: ours }, child))
            }
        }
    }

    /// Forks a process with these descriptors as 0 to 4, in this cgroup, with an audit session of its own. It is a child
    /// of this process, and is killed when the thread that started the server ends.
    pub fn fork(
        &self,
        fds: [BorrowedFd<'_>; FORKED_FDS],
        cgroup: Option<BorrowedFd<'_>>,
    ) -> Result<Child, ForkError> {
        let all: Vec<RawFd> = fds.iter().chain(&cgroup).map(AsRawFd::as_raw_fd).collect();
        let request = [u8::from(cgroup.is_some())];
        let sent = uninterrupted(|| {
            sendmsg::<()>(
                self.socket.as_raw_fd(),
                &[IoSlice::new(&request)],
                &[ControlMessage::ScmRights(&all)],
                MsgFlags::MSG_NOSIGNAL,
                None,
            )
        });
        sent.map_err(|errno| ForkError::Gone(errno.into()))?;
        let mut answer = [0; ANSWER_BYTES];
        match uninterrupted(|| unistd::read(&self.socket, &mut answer)) {
            Ok(ANSWER_BYTES) => {}
            Ok(_) => return Err(ForkError::Gone(io::ErrorKind::UnexpectedEof.into())),
            Err(errno) => return Err(ForkError::Gone(errno.into())),
        }
        match i32::from_ne_bytes(answer) {
            pid @ 1.. => Child::open(pid).map_err(ForkError::Refused),
            error => Err(ForkError::Refused(io::Error::from_raw_os_error(-error))),
        }
    }
}

/// Repeats a system call that a signal has interrupted. The kernel does not, where a time limit is set (signal(7)).
fn uninterrupted<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::EINTR) => {}
            done => return done,
        }
    }
}

/// Runs in the server: forks until the other side closes the socket.
fn serve(socket: &OwnedFd, proc: RawFd, parent: Pid, run: fn() -> u8) -> ! {
    // Only SIGKILL ends it before its parent.
    let _ = SigSet::all().thread_block();
    let is_tied = set_pdeathsig(Signal::SIGKILL).is_ok() && unistd::getppid() == parent;
    let _ = set_name(NAME);
    close_all_but(0, [socket.as_raw_fd(), proc]);
    while is_tied && let Some((fds, has_cgroup)) = receive(socket) {
        let answer = fork_one(&fds, has_cgroup, run)
            .unwrap_or_else(|cause| -cause.raw_os_error().unwrap_or(Errno::EINVAL as i32));
        if unistd::write(socket, &answer.to_ne_bytes()).is_err() {
            break;
        }
    }
    exit_now(0)
}

/// Returns the descriptors of a request, and whether the last one is a cgroup; `None` when the other side is gone.
fn receive(socket: &OwnedFd) -> Option<(Vec<OwnedFd>, bool)> {
    let mut request = [0; 1];
    let mut space = cmsg_space!([RawFd; FORKED_FDS + 1]);
    let mut parts = [IoSliceMut::new(&mut request)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut space), flags).ok()?;
    let mut fds = Vec::new();
    for part in message.cmsgs().ok()? {
        if let ControlMessageOwned::ScmRights(numbers) = part {
            #[expect(unsafe_code, reason = "descriptors arrive as bare numbers")]
            // SAFETY: the kernel has just opened them for this message; nothing else owns them.
            fds.extend(
                numbers
                    .into_iter()
                    .map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }),
            );
        }
    }
    (message.bytes == 1).then_some((fds, request == [1]))
}

fn fork_one(fds: &[OwnedFd], has_cgroup: bool, run: fn() -> u8) -> io::Result<i32> {
    let (fds, cgroup) = match fds.split_last() {
        Some((cgroup, fds)) if has_cgroup => (fds, Some(cgroup.as_fd())),
        _ => (fds, None),
    };
    if fds.len() != FORKED_FDS {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let spawn = Spawn {
        fds: fds.iter().map(|fd| fd.as_fd()).collect(),
        directories: vec![c"/".to_owned()],
        cgroup,
        with_parent: OnParentExit::Dies,
        audit_session: AuditSession::Own,
        ..Spawn::default()
    };
    spawn.fork_sibling(run).map_err(|error| error.cause)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::{Read as _, Write as _};

    use nix::sys::signal::{SaFlags, SigAction, SigHandler, sigaction};

    use super::super::child::Exit;
    use super::super::descriptors::{launch_pipes, pipe};
    use super::super::process_table::{own_pid, process};
    use super::*;

    /// Answers with what it reads on 3, and its parent.
    fn echo() -> u8 {
        let (input, output) = launch_pipes().unwrap();
        let mut said = String::new();
        File::from(input).read_to_string(&mut said).unwrap();
        let parent = unistd::getppid();
        let open = fs::read_dir("/proc/self/fd").unwrap().count();
        write!(File::from(output), "{said} {parent} {open}").unwrap();
        7
    }

    /// A process of one thread, as the test's own threads allow no fork server.
    fn alone(test: impl FnOnce()) {
        // Opened now: another thread could be opening it while this process forks.
        hold_proc().unwrap();
        #[expect(unsafe_code, reason = "fork is unsafe in a process with threads")]
        // SAFETY: the test program's other threads wait for this one, and hold no lock that it takes.
        match unsafe { unistd::fork() }.unwrap() {
            ForkResult::Child => {
                let passed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(test)).is_ok();
                exit_now(i32::from(!passed))
            }
            ForkResult::Parent { child } => {
                let exit = Child::open(child.as_raw())
                    .unwrap()
                    .wait_blocking()
                    .unwrap();
                assert_eq!(exit, Exit::Code(0));
            }
        }
    }

    #[test]
    fn what_is_forked_is_a_child_of_the_one_that_asked_and_has_what_it_was_given() {
        alone(|| {
            let (server, child) = ForkServer::start(echo).unwrap();
            for word in ["one", "two"] {
                let nothing = File::open("/dev/null").unwrap();
                let (input, mut to_it) = {
                    let (input, to_it) = pipe().unwrap();
                    (input, File::from(to_it))
                };
                let (from_it, output) = pipe().unwrap();
                let none = nothing.as_fd();
                let fds = [none, none, none, input.as_fd(), output.as_fd()];
                let forked = server.fork(fds, None).unwrap();
                drop((input, output));
                to_it.write_all(word.as_bytes()).unwrap();
                drop(to_it);
                let mut said = String::new();
                File::from(from_it).read_to_string(&mut said).unwrap();
                // 0 to 2, 4, /proc, and the folder that is read; 3 is closed by then.
                assert_eq!(said, format!("{word} {} 6", own_pid()));
                assert_eq!(forked.wait_blocking().unwrap(), Exit::Code(7));
            }
            drop(server);
            assert_eq!(child.wait_blocking().unwrap(), Exit::Code(0));
        });
    }

    extern "C" fn nothing(_: i32) {}

    #[test]
    fn a_signal_ends_no_request() {
        alone(|| {
            let (server, _child) = ForkServer::start(|| 0).unwrap();
            let handler = SigHandler::Handler(nothing);
            let action = SigAction::new(handler, SaFlags::SA_RESTART, SigSet::empty());
            #[expect(unsafe_code, reason = "handlers are unsafe")]
            // SAFETY: the handler does nothing.
            unsafe { sigaction(Signal::SIGUSR1, &action) }.unwrap();
            let mut storm = std::process::Command::new("sh")
                .args(["-c", "while kill -USR1 $0; do :; done"])
                .arg(own_pid().to_string())
                .spawn()
                .unwrap();
            let nothing = File::open("/dev/null").unwrap();
            for _ in 0..500 {
                let forked = server.fork([nothing.as_fd(); FORKED_FDS], None).unwrap();
                while forked.wait_blocking().is_err() {}
            }
            storm.kill().unwrap();
            storm.wait().unwrap();
        });
    }

    #[test]
    fn a_server_that_was_killed_is_gone() {
        alone(|| {
            let (server, child) = ForkServer::start(echo).unwrap();
            child.kill();
            child.wait_blocking().unwrap();
            assert!(process(child.pid()).is_none());
            let nothing = File::open("/dev/null").unwrap();
            let fds = [nothing.as_fd(); FORKED_FDS];
            assert!(matches!(server.fork(fds, None), Err(ForkError::Gone(_))));
        });
    }

    #[test]
    fn a_process_with_threads_gets_none() {
        assert!(ForkServer::start(echo).is_err());
    }
}
