//! The facts of an operation that are known without running it, and the form of a row of the table of operations.

use gatewren_base::config::HelperClass;

use super::container_ref::ContainerRef;

/// The facts of an operation.
#[derive(Debug, Clone, Copy)]
pub struct OperationFacts<'a> {
    /// The name in the wire format and in the log.
    pub name: &'static str,
    /// The class of `helper.toml` that must allow it; `None` if it needs none.
    pub class: Option<HelperClass>,
    /// Whether it is read-only.
    pub is_read_only: bool,
    /// How long it may take.
    pub time: TimeClass,
    /// The container that it is about, if any.
    pub container: Option<&'a ContainerRef>,
}

/// How long an operation may take; the helper's limits have the durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeClass {
    /// As long as a tool of the host that answers soon.
    Tool,
    /// As long as a command that a caller wrote.
    Command,
    /// As long as copying or deleting a file system, or an upgrade.
    Copy,
    /// As long as fetching package lists.
    Refresh,
    /// As long as a check of a file system.
    Repair,
    /// As long as reading or writing a whole backup.
    Backup,
    /// Until its caller disconnects.
    Unlimited,
}

/// Returns the facts of an operation that only reads.
pub(super) fn reads<'a>(
    name: &'static str,
    class: impl Into<Option<HelperClass>>,
) -> OperationFacts<'a> {
    OperationFacts {
        name,
        class: class.into(),
        is_read_only: true,
        time: TimeClass::Tool,
        container: None,
    }
}

/// Returns the facts of an operation that changes something.
pub(super) fn changes<'a>(
    name: &'static str,
    class: impl Into<Option<HelperClass>>,
) -> OperationFacts<'a> {
    OperationFacts {
        is_read_only: false,
        ..reads(name, class)
    }
}

impl<'a> OperationFacts<'a> {
    /// Sets how long it may take.
    pub(super) fn takes(self, time: TimeClass) -> Self {
        Self { time, ..self }
    }

    /// Sets the container that it is about.
    pub(super) fn on(self, container: impl Into<Option<&'a ContainerRef>>) -> Self {
        let container = container.into();
        Self { container, ..self }
    }

    /// Returns the facts of a job that runs the operation: the class and the container are those of the operation. The
    /// job has its own time limit; its caller may wait until it ends.
    pub(super) fn in_a_job(self) -> Self {
        Self {
            name: "job_start",
            is_read_only: false,
            time: TimeClass::Unlimited,
            ..self
        }
    }
}

/// Makes an enum of operations and its function `facts` from one row for each operation:
/// `Name { fields } with (the fields that the facts need) = facts;`.
macro_rules! operations {
    (
        $(#[$outer:meta])*
        pub enum $enum:ident {
            $(
                $(#[$doc:meta])*
                $name:ident $body:tt $(with ($($field:tt $(: $local:ident)?),+))? = $facts:expr;
            )+
        }
    ) => {
        $(#[$outer])*
        pub enum $enum { $($(#[$doc])* $name $body,)+ }

        impl $enum {
            /// The facts of the operation: its row in the table.
            pub fn facts(&self) -> OperationFacts<'_> {
                match self {
                    $(Self::$name { $($($field $(: $local)?,)+)? .. } => $facts,)+
                }
            }
        }
    };
}
pub(super) use operations;
