//! Commands that start processes, and the ways in which all calls of a helper end: nothing may be left.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::helper::{Call, Helper};
use super::machine::{
    IN_TIME, call_cgroups, exit_of, holds_within, is_alive, wait_until, with_time_enough,
};

/// The shortest timeout of a call that must expire while all of its processes run.
const SHORTEST: Duration = Duration::from_secs(4);

/// How many times in a row no process may be found: one that forks without end can be missed by a single look.
const LOOKS: usize = 3;

/// How all calls of a helper end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallsEnd {
    Timeout,
    ConnectionClosed,
    HelperSigterm,
    HelperSigkill,
    FrontSigkill,
}

/// A command whose processes can be found.
pub struct MarkedCommand {
    pub what: &'static str,
    /// What finds its processes.
    pub mark: String,
    pub operation: Value,
    /// The minimum number of its processes when all run.
    pub processes: usize,
}

/// Where the commands run, and how their processes are found.
pub struct KillCase<'a> {
    /// Starts a helper, for [`CallsEnd::FrontSigkill`] with a front.
    pub start: &'a dyn Fn(CallsEnd) -> Helper,
    /// Makes the commands, each time with new marks.
    pub commands: &'a dyn Fn() -> Vec<MarkedCommand>,
    /// Finds the processes that the command is about.
    pub running: fn(&str) -> Vec<i32>,
    /// Finds all of its processes.
    pub left: fn(&str) -> Vec<i32>,
}

impl KillCase<'_> {
    /// Runs all commands at once in one helper, ends them in one way, and asserts that nothing is left.
    pub fn run(&self, end: CallsEnd) {
        let mut helper = (self.start)(end);
        let pid = helper.pid();
        let (commands, calls) = if end == CallsEnd::Timeout {
            with_time_enough(SHORTEST, |time| self.start_all(&helper, time))
        } else {
            self.start_all(&helper, IN_TIME)
                .expect("all commands to run")
        };
        end_calls(end, &mut helper, calls);
        for command in &commands {
            let mut looks = 0;
            wait_until(command.what, IN_TIME, || {
                let is_gone = (self.left)(&command.mark).is_empty();
                looks = if is_gone { looks + 1 } else { 0 };
                looks == LOOKS
            });
        }
        if end == CallsEnd::HelperSigkill {
            // The killed helper cannot clean up; the next helper does.
            let next = (self.start)(CallsEnd::ConnectionClosed);
            next.run(&json!({ "do": "ping" }));
        }
        wait_until("its cgroups are gone", IN_TIME, || {
            call_cgroups(pid).is_empty()
        });
    }

    /// Starts all commands at once; `None` if they do not all run within `time`.
    fn start_all(
        &self,
        helper: &Helper,
        time: Duration,
    ) -> Option<(Vec<MarkedCommand>, Vec<Call>)> {
        let begun = Instant::now();
        let timeout_ms = u64::try_from(time.as_millis()).unwrap();
        let commands = (self.commands)();
        let calls = commands.iter();
        let calls = calls.map(|command| helper.ask(&command.operation, timeout_ms));
        let calls: Vec<Call> = calls.collect();
        let all_run = commands.iter().all(|command| {
            let left = time.saturating_sub(begun.elapsed());
            holds_within(left, || {
                (self.running)(&command.mark).len() >= command.processes
            })
        });
        all_run.then_some((commands, calls))
    }
}

/// Ends all calls of a helper, and asserts how they end.
fn end_calls(end: CallsEnd, helper: &mut Helper, calls: Vec<Call>) {
    match end {
        CallsEnd::Timeout => {
            for call in calls {
                let finished = call.finish();
                assert_eq!(finished.ending, json!({ "killed": { "why": "timeout" } }));
                assert!(finished.stdout.is_empty() || finished.stdout() == "said\n");
            }
        }
        CallsEnd::ConnectionClosed => drop(calls),
        CallsEnd::HelperSigterm => {
            kill(Pid::from_raw(helper.pid()), Signal::SIGTERM).unwrap();
            for call in calls {
                let ending = call.finish().ending;
                assert_eq!(ending, json!({ "killed": { "why": "shutdown" } }));
            }
            assert!(exit_of("the helper", &mut helper.process).success());
        }
        CallsEnd::HelperSigkill => {
            helper.process.kill().unwrap();
            helper.process.wait().unwrap();
            assert!(calls.into_iter().all(|call| call.try_finish().is_none()));
        }
        CallsEnd::FrontSigkill => {
            helper.kill_front();
            wait_until("the helper ends", IN_TIME, || !is_alive(helper.pid()));
            assert!(exit_of("the helper", &mut helper.process).success());
            drop(calls);
        }
    }
}
