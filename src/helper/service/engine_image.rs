//! What an engine knows about a container's image, and about the image that has the same name now.

use gatewren_wire::operations::{ContainerImage, ContainerRef, OperationEnd, OperationRefusal};

use crate::context::operation_context::OperationContext;
use crate::engines::clients::refusal;
use crate::engines::{EngineApi, EngineError, ImageFacts, InspectedContainer};
use crate::processes::commands::require_root;
use crate::processes::printing::print;
use crate::processes::step_error::StepError;

/// Prints the facts as JSON ([`ContainerImage`]).
pub async fn print_image(
    context: &mut OperationContext<'_>,
    container: &ContainerRef,
) -> Result<OperationEnd, StepError> {
    require_root()?;
    let helper = context.helper;
    let asked = async {
        let api = helper.containers.api(container).await?;
        let inspected = helper.containers.inspect(container).await?;
        let image = image_of(&api, inspected).await;
        image.map_err(|error| refusal(&error))
    };
    let image = context.relay.wait(asked).await??;
    let facts = move || {
        let facts = serde_json::to_vec(&image);
        facts.map_err(|cause| OperationRefusal::failed(format!("the image's facts: {cause}")))
    };
    Ok(print(context.relay, facts).await?)
}

async fn image_of(
    api: &EngineApi,
    container: InspectedContainer,
) -> Result<ContainerImage, EngineError> {
    let own = match &container.image_id {
        Some(id) => existing(api.image(id).await)?,
        None => None,
    };
    let has_name = |own: &&ImageFacts| own.tags.contains(&container.image);
    let named = match own.as_ref().filter(has_name) {
        // The engine has just listed the name among those of this image.
        Some(own) => Some(own.id.clone()),
        None => existing(api.named_image(&container.image).await)?.map(|named| named.id),
    };
    Ok(ContainerImage {
        image: container.image,
        image_id: container.image_id.map(|id| id.as_str().to_owned()),
        digests: own.map(|own| own.digests).unwrap_or_default(),
        named_image_id: named.map(|id| id.as_str().to_owned()),
    })
}

/// Returns `None` for an image that the engine does not have, or whose name cannot be looked up.
fn existing(answer: Result<ImageFacts, EngineError>) -> Result<Option<ImageFacts>, EngineError> {
    match answer {
        Ok(image) => Ok(Some(image)),
        Err(EngineError::NotFound(_) | EngineError::Invalid(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
