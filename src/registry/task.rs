//! Whether a call of a tool may go on after its answer, as a task.

/// How a tool may run as a task, for a client that knows of tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TaskSupport {
    /// Its calls are answered when they end.
    #[default]
    Never,
    /// A call that takes long becomes a task; for other clients it simply takes long.
    Offered,
    /// A call that does not end at once becomes a task; other clients cannot call it.
    Required,
}
