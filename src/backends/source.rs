//! Small files of the kernel, read whole; one that is not there is simply not known.

pub use crate::sys::source::{field, names, text, word};
