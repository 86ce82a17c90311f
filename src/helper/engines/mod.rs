//! The typed client of the API of Docker and Podman. It can read, and change a container's state and three limits;
//! requests that create or enter containers do not exist here.

mod api;
mod client;
pub mod clients;
mod container_id;
mod endpoint;
mod error;
mod exchange;
mod facts;
#[cfg(test)]
mod fake_engine;
mod inspect;
mod inspect_answer;
mod kind;
mod labels;
mod list;
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
pub use exchange::MAX_ANSWER_BYTES;
pub use facts::{EngineMount, EnginePort, EngineStatus};
pub use inspect::{
    Confinement, EngineDevice, EngineHealth, HealthStatus, InspectedContainer, InspectedState,
};
pub use kind::EngineKind;
pub use labels::ContainerLabels;
pub use list::{ListedContainer, MAX_CONTAINERS};
pub use restart_policy::RestartPolicy;
pub use socket::CONNECT_TIMEOUT;
pub use version::ApiVersion;
