//! The processes of one call: finds them in the host's process table, wherever they moved to, and kills them.
//!
//! A command in a container can leave its cgroup and kill its reaper. It is then a child of the container's init,
//! like any service. Its audit session still identifies its call: all descendants inherit the number, and no other
//! process has it. On a kernel without audit, or in a login session that the helper must stay in, other signs decide.
//! They are descent from the reaper, now or at the helper's last scan, and the call's variable in the environment.
//! Only processes that started during the call are considered.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{sleep, timeout};

use super::surviving_processes::SurvivingProcesses;
use gatewren_base::sys::{
    ProcessStat, REAPER_NAME, all_processes, audit_session, descendants, descendants_among,
    has_in_environment, has_only, kill_exactly, lock, offspring, own_pid, process, process_name,
    random_letters, user_processes, wait_for_end,
};

/// The variable in a command's environment if its call has no audit session of its own.
const VARIABLE: &str = "GATEWREN_CALL";

/// The length of its value in letters: 130 random bits, which another call cannot guess.
const VALUE_LETTERS: usize = 26;

/// The most descendants that are remembered. Any others are found only by the other signs.
const MAX_REMEMBERED: usize = 16_384;

/// The pauses between two scans for a call without its own session: the first and the longest.
const FIRST_LOOK: Duration = Duration::from_millis(10);
const LONGEST_LOOK: Duration = Duration::from_millis(250);

/// The descriptor of a reaper's pipe for reports.
const REPORTS_FD: i32 = 4;

/// How long reports are still read after the reaper has ended. They were sent before its end; this process only has to
/// notice them.
const LAST_REPORTS: Duration = Duration::from_millis(10);

/// The pause between two rounds of killing.
const PAUSE: Duration = Duration::from_millis(1);

/// The processes of a call.
#[derive(Debug)]
pub struct CallProcesses {
    /// Clock ticks from boot to the call's first process.
    started_at: u64,
    /// The call's own audit session.
    session: Option<u32>,
    /// The call's variable, as `NAME=value`; only without a session.
    variable: Option<String>,
    found: Mutex<KnownProcesses>,
}

/// The processes that were found so far.
#[derive(Debug, Default)]
struct KnownProcesses {
    /// The reaper and, in a container, the processes that lead to it.
    keepers: Vec<ProcessStat>,
    /// The reaper among them.
    reaper: Option<ProcessStat>,
    /// Those of them that lead to the reaper of a user's container. They end after it by themselves.
    leading: Vec<ProcessStat>,
    /// Start times of descendants by process id.
    remembered: BTreeMap<i32, u64>,
    survivors: SurvivingProcesses,
}

impl CallProcesses {
    /// The processes that descend from `child`, which has just been started. On the host it is the reaper.
    pub fn of(child: i32, is_reaper: bool) -> Self {
        let session = audit_session(child).filter(|own| audit_session(own_pid()) != Some(*own));
        let first = process(child);
        let value = random_letters::<VALUE_LETTERS>();
        let variable = value.ok().map(|value| format!("{VARIABLE}={value}"));
        Self {
            // A child that has already ended started nothing that is still to be found.
            started_at: first.map_or(u64::MAX, |first| first.started),
            session,
            variable: variable.filter(|_| session.is_none()),
            found: Mutex::new(KnownProcesses {
                keepers: first.into_iter().collect(),
                reaper: first.filter(|_| is_reaper),
                ..KnownProcesses::default()
            }),
        }
    }

    /// Records the processes that run now as the reaper in a container and the processes that lead to it. Must be called
    /// before the command is sent.
    pub fn reaper_is_ready(&self) {
        let mut found = self.lock_found();
        let Some(child) = found.keepers.first().copied() else {
            return;
        };
        // Nothing else below the child has that name yet.
        let is_reaper =
            |keeper: &ProcessStat| process_name(keeper.pid).as_bytes() == REAPER_NAME.to_bytes();
        found.keepers.extend(below_until(child.pid, is_reaper));
        found.reaper = found.keepers.iter().copied().find(is_reaper);
    }

    /// Records the reaper that a user's Podman has started, and the processes that lead to it. It is no descendant of the
    /// call's first process: Podman's monitor detaches itself. `pipe` is the pipe of its reports, which no process of
    /// another call has.
    pub fn find_reaper(&self, pipe: &Path) {
        let has_pipe = |process: &ProcessStat| {
            let own = fs::read_link(format!("/proc/{}/fd/{REPORTS_FD}", process.pid));
            own.is_ok_and(|own| own == pipe)
        };
        let is_reaper = |process: &ProcessStat| {
            self.could_be(process)
                && process_name(process.pid).as_bytes() == REAPER_NAME.to_bytes()
                && has_pipe(process)
        };
        let reaper = all_processes().find(is_reaper);
        let mut leading = Vec::new();
        let mut above = reaper.and_then(|reaper| process(reaper.parent));
        while let Some(next) = above.filter(|next| self.could_be(next) && !contains(&leading, next))
        {
            leading.push(next);
            above = process(next.parent);
        }
        let mut found = self.lock_found();
        found.keepers.extend(reaper);
        found.keepers.extend(leading.iter().copied());
        found.leading = leading;
        found.reaper = reaper;
    }

    /// The reaper, if it was found.
    pub fn reaper(&self) -> Option<ProcessStat> {
        self.lock_found().reaper
    }

    /// Waits until the processes that led to a reaper have ended, and what they start afterwards, at most `time`: they
    /// record the end of the command.
    pub async fn wait_for_leading(&self, time: Duration) {
        let leading = self.lock_found().leading.clone();
        let ended = async {
            for process in &leading {
                // An error means that it has ended already.
                let _ = wait_for_end(process).await;
            }
            while all_processes().any(|one| self.could_be(&one) && self.is_in_session(&one)) {
                sleep(FIRST_LOOK).await;
            }
        };
        let _ = timeout(time, ended).await;
    }

    /// Name and value of the variable for the command's environment, if the call needs one.
    pub fn variable(&self) -> Option<(&str, &str)> {
        self.variable.as_deref()?.split_once('=')
    }

    /// The audit session, for the log.
    pub fn session(&self) -> Option<u32> {
        self.session
    }

    /// Returns whether the reaper, or a process that leads to it, is stopped by a signal or a tracer.
    pub fn is_reaper_stopped(&self) -> bool {
        let keepers = self.lock_found().keepers.clone();
        let mut now = keepers
            .iter()
            .filter_map(|sink| process(sink.pid).filter(|process| process.started == sink.started));
        now.any(|process| process.is_stopped())
    }

    /// Waits until the reaper has ended and its last reports can be read. The program that started it can outlive it:
    /// runc waits until nobody holds the command's output any more.
    pub async fn reaper_ended(&self) {
        let reaper = self.lock_found().reaper;
        let has_ended = match &reaper {
            Some(reaper) => wait_for_end(reaper).await.is_ok(),
            None => false,
        };
        if !has_ended {
            std::future::pending::<()>().await;
        }
        sleep(LAST_REPORTS).await;
    }

    /// Remembers the descendants periodically while it is polled. A call without its own session is identified by
    /// them if its reaper was killed.
    pub async fn watch(self: &Arc<Self>) {
        if self.session.is_some() {
            return std::future::pending().await;
        }
        let mut pause = FIRST_LOOK;
        loop {
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_LOOK);
            let processes = Arc::clone(self);
            // If no thread is available, this scan is skipped.
            let _ = spawn_blocking(move || processes.remember()).await;
        }
    }

    /// Kills everything but the reaper once; the reaper then exits on its own.
    pub async fn kill_commands(self: &Arc<Self>) {
        let processes = Arc::clone(self);
        let _ = spawn_blocking(move || processes.kill_round(true)).await;
    }

    /// Kills all processes until `enough` rounds in a row have found none. Call it after the reaper has exited:
    /// processes found then have survived it.
    ///
    /// Where nothing can fork, one round is enough. Otherwise a round can miss a process that forks and exits while
    /// the table is read, or one in the middle of `execve`, which has no environment for a moment.
    pub async fn kill_all(self: &Arc<Self>, enough: u32) {
        let mut missing = enough;
        while missing > 0 {
            let processes = Arc::clone(self);
            let round = spawn_blocking(move || processes.kill_round(false).len());
            // If no thread was available, nothing is known; the next round may get one.
            missing = match round.await {
                Ok(0) => missing - 1,
                _ => enough,
            };
            if missing > 0 {
                sleep(PAUSE).await;
            }
        }
    }

    /// Begins to look, while the reaper still ends, whether the call's session has no other process; `None` without a
    /// session. All others that the reaper then finds, it kills before it ends. In a container this look says too
    /// little: root there can make a reaper start a process at its end.
    pub fn look_early(&self) -> Option<JoinHandle<bool>> {
        let (session, keepers) = (self.session?, self.known_processes().0);
        let known: Vec<i32> = keepers.iter().map(|keeper| keeper.pid).collect();
        Some(spawn_blocking(move || has_only(session, &known)))
    }

    /// The survivors that [`Self::kill_all`] found.
    pub fn survivors(&self) -> SurvivingProcesses {
        self.lock_found().survivors.clone()
    }

    /// Kills each process of the call once and returns those that were alive. A process that a sign of its own
    /// identifies is killed as soon as it is seen. This outruns a process that forks endlessly, as its children have
    /// higher ids. Processes that only their parents identify are killed afterwards.
    fn kill_round(&self, spare_keepers: bool) -> Vec<ProcessStat> {
        let (keepers, remembered) = self.known_processes();
        let is_spared = |process: &ProcessStat| spare_keepers && contains(&keepers, process);
        let (mut table, mut shown, mut killed) = (None, Vec::new(), Vec::new());
        for process in self.candidates(&keepers) {
            if !self.is_shown(&process, &keepers, &remembered) {
                continue;
            }
            // Read before the first one dies: afterwards its children have another parent.
            table.get_or_insert_with(|| all_processes().collect::<Vec<_>>());
            shown.push(process);
            if !is_spared(&process) {
                self.kill(&process, spare_keepers);
                killed.push(process);
            }
        }
        for process in self.descendants(&table.unwrap_or_default(), &shown) {
            if !contains(&shown, &process) {
                self.kill(&process, spare_keepers);
                killed.push(process);
            }
        }
        killed
    }

    /// Returns the processes that could have a sign of this call. The number of a session is read first, and fast.
    fn candidates(&self, keepers: &[ProcessStat]) -> impl Iterator<Item = ProcessStat> {
        let has_sign = |pid: &i32| {
            self.session.is_none()
                || audit_session(*pid) == self.session
                || keepers.iter().any(|keeper| keeper.pid == *pid)
        };
        // All numbers are read before the first process dies.
        user_processes()
            .into_iter()
            .filter(has_sign)
            .filter_map(process)
    }

    /// Kills a process. Counts it as a survivor unless the reaper is still spared.
    fn kill(&self, process: &ProcessStat, is_reaper_spared: bool) {
        if !is_reaper_spared {
            let mut found = self.lock_found();
            if !contains(&found.leading, process) {
                found.survivors.count(process);
            }
        }
        if let Err(cause) = kill_exactly(process) {
            tracing::warn!(%cause, pid = process.pid, "a process of a call cannot be killed");
        }
    }

    fn is_in_session(&self, process: &ProcessStat) -> bool {
        self.session.is_some() && audit_session(process.pid) == self.session
    }

    /// Whether it is alive and started during the call.
    fn could_be(&self, process: &ProcessStat) -> bool {
        !process.is_ending && process.started >= self.started_at
    }

    /// Whether a sign of its own identifies it: the session, an earlier scan, or the variable.
    fn is_shown(
        &self,
        process: &ProcessStat,
        keepers: &[ProcessStat],
        remembered: &BTreeMap<i32, u64>,
    ) -> bool {
        self.could_be(process)
            && (self.is_in_session(process)
                || contains(keepers, process)
                || remembered.get(&process.pid) == Some(&process.started)
                || self.has_variable(process))
    }

    /// The processes of the table that descend from `ancestors`.
    fn descendants(&self, table: &[ProcessStat], ancestors: &[ProcessStat]) -> Vec<ProcessStat> {
        let numbers: Vec<i32> = ancestors.iter().map(|process| process.pid).collect();
        let mut below = descendants_among(table, &numbers);
        below.retain(|process| self.could_be(process));
        below
    }

    fn known_processes(&self) -> (Vec<ProcessStat>, BTreeMap<i32, u64>) {
        let found = self.lock_found();
        (found.keepers.clone(), found.remembered.clone())
    }

    fn has_variable(&self, process: &ProcessStat) -> bool {
        let variable = self.variable.as_deref();
        variable.is_some_and(|variable| has_in_environment(process.pid, variable))
    }

    fn remember(&self) {
        let table: Vec<ProcessStat> = all_processes().collect();
        let (keepers, remembered) = self.known_processes();
        let is_shown = |process: &&ProcessStat| self.is_shown(process, &keepers, &remembered);
        let shown: Vec<ProcessStat> = table.iter().filter(is_shown).copied().collect();
        let below = self.descendants(&table, &shown);
        let members = [shown, below].concat();
        let mut found = self.lock_found();
        found.remembered = members
            .iter()
            .take(MAX_REMEMBERED)
            .map(|process| (process.pid, process.started))
            .collect();
    }

    fn lock_found(&self) -> MutexGuard<'_, KnownProcesses> {
        // Lists of numbers are consistent even if their last holder panicked.
        lock(&self.found)
    }
}

/// Returns the processes below `child`. If `is_last` accepts none of them, the kernel's lists of children missed some
/// (see [`offspring`]), and the whole process table is read.
fn below_until(child: i32, is_last: impl Fn(&ProcessStat) -> bool) -> Vec<ProcessStat> {
    let below: Vec<ProcessStat> = offspring(child).into_iter().filter_map(process).collect();
    if below.iter().any(is_last) {
        below
    } else {
        descendants(child)
    }
}

fn contains(processes: &[ProcessStat], wanted: &ProcessStat) -> bool {
    let is_same = |one: &ProcessStat| one.pid == wanted.pid && one.started == wanted.started;
    processes.iter().any(is_same)
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::thread;
    use std::time::Instant;

    use super::super::call_processes::*;

    fn sleeper() -> std::process::Child {
        Command::new("sleep").arg("600").spawn().unwrap()
    }

    fn number(child: &std::process::Child) -> i32 {
        i32::try_from(child.id()).unwrap()
    }

    #[test]
    fn a_child_that_stayed_in_our_session_is_known_by_other_signs_alone() {
        let mut child = sleeper();
        let call = CallProcesses::of(number(&child), true);
        assert_eq!(call.session(), None);
        let (name, value) = call.variable().unwrap();
        assert_eq!(name, VARIABLE);
        // The variable identifies it, although it is not below the child.
        let mut marked = Command::new("sleep")
            .arg("600")
            .env(name, value)
            .spawn()
            .unwrap();
        let mut other = sleeper();
        let variable = format!("{name}={value}");
        // In the middle of execve it has no environment for a moment.
        let deadline = Instant::now() + Duration::from_secs(10);
        while !has_in_environment(number(&marked), &variable) {
            assert!(Instant::now() < deadline, "it has no such variable");
            thread::sleep(Duration::from_millis(1));
        }
        let killed = call.kill_round(true);
        assert!(!marked.wait().unwrap().success());
        assert_eq!(killed.len(), 1, "{killed:?}");
        assert!(child.try_wait().unwrap().is_none(), "the reaper is spared");
        call.kill_round(false);
        assert!(!child.wait().unwrap().success());
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn what_was_born_before_the_call_is_never_of_it() {
        let mut older = sleeper();
        let process = process(number(&older)).unwrap();
        let call = CallProcesses {
            started_at: process.started + 1,
            session: None,
            variable: None,
            found: Mutex::new(KnownProcesses {
                keepers: vec![process],
                remembered: [(process.pid, process.started)].into(),
                ..KnownProcesses::default()
            }),
        };
        assert!(call.kill_round(false).is_empty());
        assert!(older.try_wait().unwrap().is_none());
        older.kill().unwrap();
        older.wait().unwrap();
    }
}
