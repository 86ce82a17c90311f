//! Whether a tool's call may continue after its answer, as a task.

/// Whether a tool's calls may become tasks, for a client that supports tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TaskSupport {
    /// Its calls are answered when they end.
    #[default]
    Never,
    /// A call that takes long becomes a task; other clients wait for its answer.
    Offered,
    /// A call that does not end at once becomes a task; other clients cannot call it.
    Required,
}
