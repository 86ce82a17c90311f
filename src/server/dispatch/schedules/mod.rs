//! Schedules: calls that the server makes at times that their agent chose.

pub mod check;
pub mod resources;
mod run;
pub mod runner;
pub mod times;
pub mod tools;
pub mod view;
