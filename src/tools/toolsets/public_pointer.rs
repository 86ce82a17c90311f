//! What the tools about the state share: a pointer into its public part, and the caller's view.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use gatewren_store::state::{Pointer, StateView, StateViews};
use gatewren_wire::registry::Cx;

/// A pointer into the public state.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", description = "", extend("pattern" = "^/public(/.*)?$"))]
pub struct PublicPointer(Pointer);

impl TryFrom<String> for PublicPointer {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let pointer = Pointer::parse(&text).map_err(|error| error.to_string())?;
        if pointer.tokens().first().map(String::as_str) == Some("public") {
            Ok(Self(pointer))
        } else {
            Err(
                "must be a JSON Pointer that begins with /public, such as /public/packageData"
                    .to_owned(),
            )
        }
    }
}

impl From<PublicPointer> for String {
    fn from(place: PublicPointer) -> Self {
        place.0.to_string()
    }
}

impl PublicPointer {
    /// The pointer.
    pub fn pointer(&self) -> &Pointer {
        &self.0
    }
}

impl Default for PublicPointer {
    fn default() -> Self {
        Self(Pointer::root().child("public"))
    }
}

/// Returns the caller's view of the state.
pub fn view_for(views: &StateViews, cx: &Cx) -> StateView {
    let caller = cx.caller();
    views.view_for(&caller.agent, &caller.reach)
}
