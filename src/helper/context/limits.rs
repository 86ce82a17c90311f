//! The helper's upper limits. They apply whatever the front asks, as the front may be compromised.

use std::time::Duration;

use gatewren_wire::operations::{
    Command, Operation, OperationLimits, OperationRefusal, Program, TimeClass,
};

use super::operation_slots::{MAX_OPERATIONS, MAX_WAITING};

/// Concurrent event streams. They are counted separately because they stay open. One more is rejected as busy.
pub const MAX_EVENT_STREAMS: usize = 4;

/// Concurrent streams of the enabled classes or of job ends, counted separately for the same reason. One more is
/// rejected as busy.
pub const MAX_BOUNDS_STREAMS: usize = 6;

/// Concurrent callers that wait for the end of a job, counted separately because nothing runs for them. One more is
/// rejected as busy, and the front then answers with the job's current state. Enough for four agents with 16 calls
/// each.
pub const MAX_JOB_WAITS: usize = 64;

/// Concurrent connections. One more waits in the socket's backlog.
pub const MAX_CONNECTIONS: usize =
    MAX_OPERATIONS + MAX_WAITING + MAX_JOB_WAITS + MAX_EVENT_STREAMS + MAX_BOUNDS_STREAMS + 16;

/// How long a connection may take to send its request. Then it is closed.
pub const REQUEST_TIME: Duration = Duration::from_secs(5);

/// The longest that a command may run. Then it is killed with `timeout`.
const COMMAND_TIME: Duration = Duration::from_mins(5);

/// The same for a job that is a command.
const JOB_TIME: Duration = Duration::from_hours(24);

/// The most that a job may print. Then it is killed with `output`. Much less of it is kept.
const JOB_OUTPUT_BYTES: u64 = 1 << 30;

/// The longest that an lxc tool may run, the grace period of a stop included.
const TOOL_TIME: Duration = Duration::from_secs(150);

/// The longest that copying, creating or removing a container may take, and installing packages.
const COPY_TIME: Duration = Duration::from_hours(2);

/// The longest that refreshing the package lists may take.
const REFRESH_TIME: Duration = Duration::from_mins(20);
/// The longest that creating, reading or restoring a backup may take: enough for some terabytes.
const BACKUP_TIME: Duration = Duration::from_hours(12);
/// The longest that a check or repair of a disk may take.
const REPAIR_TIME: Duration = Duration::from_hours(48);

/// The longest grace period of a stop. A longer one is reduced to this.
pub const GRACE_SECONDS: u32 = 120;

/// The most that a command may print. Then it is killed with `output`.
const OUTPUT_BYTES: u64 = 4 << 30;

/// The most processes that a command may have, if the kernel's controller is available.
const PROCESSES: u32 = 8192;

/// The memory limit of a client's command: half of the host's memory, and at least the second of these constants. The
/// kernel kills a command that needs more, and its call ends with `memory`.
const MEMORY_PART: u64 = 2;
const LEAST_MEMORY_BYTES: u64 = 256 << 20;

/// The CPU weight of a call when others compete: a service has 100.
const CPU_WEIGHT: u64 = 50;

/// One argument: the kernel's own limit (`MAX_ARG_STRLEN` with its NUL).
const ARGUMENT_BYTES: usize = 128 * 1024 - 1;
const ARGUMENTS: usize = 4096;
const VARIABLES: usize = 256;

/// Arguments and environment together. A request with all of them fits into one frame.
const COMMAND_BYTES: usize = 192 * 1024;
const CWD_BYTES: usize = 4095;
const USER_BYTES: usize = 64;

/// The limits of one call's cgroup, where the kernel's controllers are available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLimits {
    /// The most processes.
    pub processes: u32,
    /// The most bytes of memory; `None` for what the helper runs itself, such as installing packages.
    pub memory_bytes: Option<u64>,
}

impl CallLimits {
    /// Returns the limits of a client's command or of one of the helper's programs, on a host with this much memory.
    pub fn of(processes: u32, is_clients_command: bool, total_memory_bytes: Option<u64>) -> Self {
        let memory_bytes = total_memory_bytes
            .map(|total| (total / MEMORY_PART).max(LEAST_MEMORY_BYTES))
            .filter(|_| is_clients_command);
        Self {
            processes,
            memory_bytes,
        }
    }

    /// The cgroup's files and their values.
    pub fn files(self) -> impl Iterator<Item = (&'static str, u64)> {
        let memory = self.memory_bytes.map(|bytes| ("memory.max", bytes));
        let others = [
            ("pids.max", self.processes.into()),
            ("cpu.weight", CPU_WEIGHT),
        ];
        others.into_iter().chain(memory)
    }
}

/// Returns the limits of a job: the caller's, or the helper's where those are lower.
pub fn job_limits(requested: OperationLimits, operation: &Operation) -> OperationLimits {
    let is_command = operation.facts().time == TimeClass::Command;
    let limits = limits(requested, operation);
    OperationLimits {
        timeout_ms: if is_command {
            let most = u64::try_from(JOB_TIME.as_millis()).unwrap_or(u64::MAX);
            requested.timeout_ms.min(most)
        } else {
            limits.timeout_ms
        },
        output_bytes: limits.output_bytes.min(JOB_OUTPUT_BYTES),
        ..limits
    }
}

/// Returns the limits in effect: the caller's, or the helper's where those are lower.
pub fn limits(requested: OperationLimits, operation: &Operation) -> OperationLimits {
    let most = match operation.facts().time {
        TimeClass::Unlimited => Duration::MAX,
        TimeClass::Command => COMMAND_TIME,
        // This limit does not end the second half of an upgrade either.
        TimeClass::Copy => COPY_TIME,
        TimeClass::Refresh => REFRESH_TIME,
        TimeClass::Repair => REPAIR_TIME,
        TimeClass::Backup => BACKUP_TIME,
        TimeClass::Tool => TOOL_TIME,
    };
    let most = u64::try_from(most.as_millis()).unwrap_or(u64::MAX);
    OperationLimits {
        timeout_ms: if most == u64::MAX {
            most
        } else {
            requested.timeout_ms.min(most)
        },
        output_bytes: requested.output_bytes.min(OUTPUT_BYTES),
        processes: requested.processes.min(PROCESSES),
    }
}

/// Checks that the parts of a command are of a form and size that can be run.
pub fn check(command: &Command) -> Result<(), OperationRefusal> {
    let arguments: Vec<&str> = match &command.program {
        Program::Shell(line) => vec![line],
        Program::Argv(argv) => argv.iter().map(String::as_str).collect(),
    };
    if arguments.first().is_none_or(|first| first.is_empty()) {
        return Err(OperationRefusal::bad_command(
            "the command is empty; name a program to run",
        ));
    }
    if arguments.len() > ARGUMENTS || command.env.len() > VARIABLES {
        return Err(too_big("arguments or variables", ARGUMENTS));
    }
    if arguments
        .iter()
        .any(|argument| argument.len() > ARGUMENT_BYTES)
    {
        return Err(too_big("bytes in one argument", ARGUMENT_BYTES));
    }
    let variables = command
        .env
        .iter()
        .map(|(name, value)| name.len() + value.len());
    let bytes = arguments
        .iter()
        .map(|a| a.len())
        .chain(variables)
        .sum::<usize>();
    if bytes > COMMAND_BYTES {
        return Err(too_big("bytes of command and environment", COMMAND_BYTES));
    }
    check_surroundings(command)?;
    let values = command.env.values().map(String::as_str);
    if arguments
        .into_iter()
        .chain(values)
        .any(|text| text.contains('\0'))
    {
        return Err(OperationRefusal::bad_command(
            "a command cannot contain a NUL character",
        ));
    }
    Ok(())
}

fn check_surroundings(command: &Command) -> Result<(), OperationRefusal> {
    if let Some(name) = command.env.keys().find(|name| !is_variable(name)) {
        let name = name.escape_debug();
        return Err(OperationRefusal::bad_command(format!(
            "'{name}' is not a valid variable name: use letters, digits and '_', and do not start with a digit"
        )));
    }
    let good_cwd =
        |cwd: &str| cwd.starts_with('/') && cwd.len() <= CWD_BYTES && !cwd.contains('\0');
    if !command.cwd.as_deref().is_none_or(good_cwd) {
        return Err(OperationRefusal::bad_command(
            "cwd must be an absolute path, such as /srv",
        ));
    }
    let good_user = |user: &str| {
        let plain = |c: char| !c.is_control() && !c.is_whitespace() && c != ':';
        !user.is_empty() && user.len() <= USER_BYTES && user.chars().all(plain)
    };
    if !command.user.as_deref().is_none_or(good_user) {
        return Err(OperationRefusal::bad_command(
            "user must be a login name or a number",
        ));
    }
    Ok(())
}

fn too_big(what: &str, most: usize) -> OperationRefusal {
    OperationRefusal::bad_command(format!(
        "the command is too big: more than {most} {what}; write it to a file first and run that"
    ))
}

fn is_variable(name: &str) -> bool {
    let first_good = !name.starts_with(|c: char| c.is_ascii_digit());
    let all_good = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    !name.is_empty() && first_good && all_good
}

#[cfg(test)]
mod tests {
    use super::super::limits::*;

    fn command(program: Program) -> Command {
        Command {
            program,
            user: None,
            cwd: None,
            env: [].into(),
        }
    }

    fn shell(line: &str) -> Command {
        command(Program::Shell(line.into()))
    }

    #[test]
    fn what_cannot_be_run_is_refused_here_and_not_by_the_kernel() {
        assert!(check(&shell("echo hi")).is_ok());
        let bad = [
            shell(""),
            shell("a\0b"),
            shell(&"x".repeat(ARGUMENT_BYTES + 1)),
            command(Program::Argv(vec![])),
            command(Program::Argv(vec!["x".into(); ARGUMENTS + 1])),
            command(Program::Argv(vec!["x".repeat(100_000); 2])),
            Command {
                cwd: Some("srv".into()),
                ..shell("x")
            },
            Command {
                cwd: Some("/a\0".into()),
                ..shell("x")
            },
            Command {
                user: Some("a:b".into()),
                ..shell("x")
            },
            Command {
                user: Some(String::new()),
                ..shell("x")
            },
            Command {
                env: [("1A".into(), "b".into())].into(),
                ..shell("x")
            },
            Command {
                env: [("A=B".into(), "b".into())].into(),
                ..shell("x")
            },
            Command {
                env: [("A".into(), "\0".into())].into(),
                ..shell("x")
            },
        ];
        for command in bad {
            assert!(check(&command).is_err(), "{command:?}");
        }
    }

    #[test]
    fn a_clients_command_may_use_half_of_the_memory_and_no_less_than_256_mib() {
        let memory = |total| CallLimits::of(10, true, total).memory_bytes;
        assert_eq!(memory(Some(8 << 30)), Some(4 << 30));
        assert_eq!(memory(Some(400 << 20)), Some(256 << 20));
        assert_eq!(memory(None), None);
        let ours = CallLimits::of(10, false, Some(8 << 30));
        let files: Vec<_> = ours.files().collect();
        assert_eq!(files, [("pids.max", 10), ("cpu.weight", 50)]);
    }

    #[test]
    fn the_lower_limit_holds() {
        let requested = OperationLimits {
            timeout_ms: u64::MAX,
            output_bytes: 7,
            processes: u32::MAX,
        };
        let got = limits(
            requested,
            &Operation::HostCommand {
                command: shell("x"),
            },
        );
        assert_eq!(
            (got.timeout_ms, got.output_bytes, got.processes),
            (300_000, 7, PROCESSES)
        );
        assert_eq!(
            limits(requested, &Operation::ContainerList {}).timeout_ms,
            150_000
        );
        assert_eq!(
            limits(requested, &Operation::ContainerEvents {}).timeout_ms,
            u64::MAX
        );
    }
}
