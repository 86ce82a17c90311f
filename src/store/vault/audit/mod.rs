//! The audit: its rows, their hash chain, trimming, and sealed arguments.

pub mod anchors;
pub mod call;
pub mod chain;
pub mod chain_tail;
pub mod checkpoint;
pub mod columns;
pub mod entry;
pub mod exact;
pub mod hours;
pub mod reader;
pub mod readers;
pub mod row;
pub mod row_job;
pub mod schema;
pub mod sealing;
pub mod table;
pub mod trim;
pub mod uses;
