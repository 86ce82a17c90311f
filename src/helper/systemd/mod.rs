//! Units, the journal and power, through systemd.

pub mod journal;
pub mod manager_bus;
pub mod power;
pub mod unit_client;
pub mod units;
