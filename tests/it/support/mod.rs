//! What tests share: the helper as a black box, the containers, and the loud way to leave a test out.

pub mod container;
pub mod helper;
pub mod machine;
