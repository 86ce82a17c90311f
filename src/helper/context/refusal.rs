//! Why an operation does not start, as a message for the caller.

pub use gatewren_wire::operations::OperationRefusal;
