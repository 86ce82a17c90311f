//! The processes of a call that survived its reaper, counted for the log.

use std::collections::BTreeMap;

use gatewren_base::sys::{ProcessStat, process_name};

/// The most survivors that are counted. Further ones are killed all the same.
const MAX_COUNTED: usize = 16_384;

/// The most survivors that the log names.
const MAX_NAMED: usize = 8;

/// Processes of a call that survived its reaper.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SurvivingProcesses {
    /// How many were killed.
    pub killed: usize,
    /// The first of them, each with its process id on the host and its own process name.
    pub first: Vec<String>,
    /// Process id and start time of each, so that none is counted twice.
    counted: BTreeMap<i32, u64>,
}

impl SurvivingProcesses {
    /// Counts a process, once.
    pub fn count(&mut self, process: &ProcessStat) {
        if self.counted.len() >= MAX_COUNTED
            || self.counted.insert(process.pid, process.started) == Some(process.started)
        {
            return;
        }
        self.killed += 1;
        if self.first.len() < MAX_NAMED {
            let ProcessStat { pid, .. } = process;
            self.first.push(format!("{pid} {}", process_name(*pid)));
        }
    }
}

#[cfg(test)]
mod tests {
    use gatewren_base::sys::{own_pid, process};

    use super::*;

    #[test]
    fn a_survivor_is_counted_once_and_a_few_are_named() {
        let mut survivors = SurvivingProcesses::default();
        let process = process(own_pid()).unwrap();
        for pid in 0..20 {
            let process = ProcessStat { pid, ..process };
            survivors.count(&process);
            survivors.count(&process);
        }
        assert_eq!(survivors.killed, 20);
        assert_eq!(survivors.first.len(), MAX_NAMED);
    }
}
