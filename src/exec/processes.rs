//! The processes of the host that use most, as the helper reads them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Of what processes use most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProcessOrder {
    /// The processor's time, now.
    #[default]
    Cpu,
    /// Memory.
    Memory,
}

/// Those that use most, and how many there are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Processes {
    /// Those that use most come first.
    pub processes: Vec<ProcessSeen>,
    /// How many there are in all, threads of the kernel among them.
    pub total: u32,
}

/// One process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcessSeen {
    /// Its number.
    pub pid: i32,
    /// Its parent's number.
    pub parent: i32,
    /// Whose it is.
    pub uid: u32,
    /// `R`, `S`, `D` and so on, as proc(5) has it.
    pub state: char,
    /// What it calls itself.
    pub name: String,
    /// The beginning of its command line, a space between two words, without what looks secret.
    pub command: String,
    /// The processor's time that it used in a moment, in percent of one processor.
    pub cpu_percent: f64,
    /// Memory that is in use for it alone or with others (RSS), in bytes.
    pub memory_bytes: u64,
    /// How many threads it has.
    pub threads: u32,
    /// For how many seconds it has been there.
    pub age_s: u64,
    /// Its cgroup, version 2, from the root of the machine.
    pub cgroup: String,
}
