//! The typed client of the API of Docker and Podman. It can read, and change a container's state and three limits;
//! requests that create or enter containers do not exist here.

mod api;
mod client;
pub mod clients;
mod container_id;
mod endpoint;
mod error;
mod events;
mod exchange;
mod facts;
#[cfg(test)]
mod fake_engine;
mod host_rights;
mod image;
mod info;
mod inspect;
mod inspect_answer;
mod kind;
mod labels;
mod limits;
mod list;
mod log_lines;
mod log_reader;
mod log_request;
pub mod oci;
pub mod oci_process;
mod restart_policy;
mod socket;
mod text;
mod version;

pub use api::{EngineApi, EngineChange};
pub use container_id::{EngineContainerId, ImageId};
pub use endpoint::{MAX_GRACE_S, REQUEST_TIMEOUT};
pub use error::EngineError;
pub use events::{ChangedContainer, EngineEvents, MAX_EVENT_BYTES};
pub use exchange::MAX_ANSWER_BYTES;
pub use facts::{EngineMount, EnginePort, EngineStatus};
pub use host_rights::{HostRight, host_rights};
pub use image::ImageFacts;
pub use info::{EngineInfo, EngineVersion};
pub use inspect::{
    Confinement, EngineDevice, EngineHealth, HealthStatus, InspectedContainer, InspectedState,
};
pub use kind::EngineKind;
pub use labels::ContainerLabels;
pub use limits::EngineLimits;
pub use list::{ListedContainer, MAX_CONTAINERS};
pub use log_lines::MAX_LOG_LINE_BYTES;
pub use log_reader::{EngineLog, EngineLogLine, MAX_LOG_BYTES};
pub use log_request::{
    EngineLogOrder, EngineLogPosition, EngineLogRequest, EngineLogStream, MAX_LOG_LINES,
};
pub use restart_policy::RestartPolicy;
pub use socket::CONNECT_TIMEOUT;
pub use version::ApiVersion;
