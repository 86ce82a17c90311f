//! What all subcommands share: output, tables, runtime, and which gatewren they are about.

pub mod listen;
pub mod listener;
pub mod moment;
pub mod output;
pub mod program;
pub mod progress;
pub mod runtime;
pub mod selected;
pub mod style;
pub mod table;
pub mod target;
