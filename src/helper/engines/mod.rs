//! The typed client of the API of Docker and Podman. It can read, change a container's state and three limits, and
//! delete what no container uses;
//! requests that create or enter containers do not exist here.

mod api;
mod archive;
mod client;
pub mod clients;
mod container_id;
mod definition;
mod disk_use;
mod endpoint;
mod engine_socket;
mod error;
mod events;
mod exchange;
mod facts;
#[cfg(test)]
mod fake_engine;
mod host_rights;
mod image;
mod image_name;
mod info;
pub mod inner_container;
mod inner_socket;
mod inspect;
mod inspect_answer;
mod kept_answers;
mod kind;
mod labels;
mod limits;
mod list;
mod log_lines;
mod log_reader;
mod log_request;
pub mod oci;
pub mod oci_process;
pub mod podman_user;
mod real_mounts;
mod restart_policy;
mod socket;
mod text;
pub mod user_container;
mod user_exec;
mod user_rights;
mod version;

pub use api::{EngineApi, EngineChange};
pub use archive::{MAX_ARCHIVE_BYTES, PathKind};
pub use container_id::{EngineContainerId, ImageId};
pub use definition::{DefinedMount, DefinedMountKind, EngineDefinition};
pub use disk_use::EngineSizes;
pub use engine_socket::EngineSocket;
pub use error::EngineError;
#[cfg(feature = "testing")]
pub use events::read_events;
pub use events::{ChangedContainer, EngineEvents};
pub use facts::{EngineMount, EnginePort, EngineStatus};
pub use host_rights::host_rights;
pub use image::ImageFacts;
pub use inner_socket::InnerSocket;
pub use inspect::InspectedContainer;
pub use kept_answers::{AnswerWatch, BeforeList, KeptAnswers};
pub use kind::EngineKind;
pub use limits::EngineLimits;
pub use list::ListedContainer;
#[cfg(feature = "testing")]
pub use log_lines::{MAX_LOG_LINE_BYTES, RawLogLine, read_log_lines};
pub use log_reader::{EngineLog, EngineLogLine};
pub use log_request::{
    EngineLogOrder, EngineLogPosition, EngineLogRequest, EngineLogStream, MAX_LOG_LINES,
};
pub use real_mounts::running_host_rights;
pub use restart_policy::RestartPolicy;
pub use user_rights::{running_user_rights, user_rights};
