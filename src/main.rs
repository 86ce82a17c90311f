//! Starts gatewren.

fn main() {}
