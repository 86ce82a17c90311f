//! The catalog of all fixtures: those of the conformance suite, and those of the MCP project's reference server,
//! by their names.

use std::sync::Arc;

use super::{
    about::ABOUT,
    prompts, prompts_reference,
    resources::{self, Fixtures},
    tools_client, tools_content, tools_input, tools_lists, tools_notes, tools_plain,
    tools_resources, tools_rounds, tools_schema, tools_slow, tools_tasks, tools_toggles,
};
use crate::protocol::Implementation;
use crate::registry::{Catalog, CatalogError};

/// Returns a catalog of fixtures, which every transport can serve.
pub fn catalog() -> Result<Catalog, CatalogError> {
    let mut catalog = Catalog::new(Implementation {
        name: "gatewren-everything".to_owned(),
        title: Some("gatewren's reference fixtures".to_owned()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    });
    catalog.instructions = Some(ABOUT.to_owned());
    catalog.offer_logging();
    let lists = catalog.announce_list_changes();
    let logs = catalog.log_to_sessions();
    let fixtures = Arc::new(Fixtures::new());
    catalog.add(tools_plain::tools())?;
    catalog.add(tools_content::tools())?;
    catalog.add(tools_notes::tools())?;
    catalog.add(tools_input::tools())?;
    catalog.add(tools_rounds::tools())?;
    catalog.add(tools_schema::tools())?;
    catalog.add(tools_tasks::tools())?;
    catalog.add(tools_lists::tools(lists.clone()))?;
    catalog.add(tools_resources::tools(fixtures.clone(), lists))?;
    catalog.add(tools_toggles::tools(fixtures.clone(), logs))?;
    catalog.add(tools_slow::tools())?;
    catalog.add(tools_client::tools())?;
    for prompt in prompts::rows().into_iter().chain(prompts_reference::rows()) {
        catalog.add_prompt(prompt);
    }
    catalog.set_resources(fixtures);
    catalog.set_completer(Box::new(|_, asked| {
        let mut values = prompts::complete(asked);
        values.extend(prompts_reference::complete(asked));
        values.extend(resources::complete(asked));
        values
    }));
    Ok(catalog)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_tool_is_one_that_anybody_may_call() {
        // The suite sends its invalid headers with a call of the first tool, without arguments.
        let catalog = catalog().unwrap();
        let first = catalog.tools().next().unwrap();
        assert_eq!(first.name(), "about");
        assert!(first.definition().input_schema.get("required").is_none());
    }

    #[test]
    fn one_tool_repeats_a_parameter_as_a_header() {
        let catalog = catalog().unwrap();
        let tool = catalog.tool("test_header_parameter").unwrap();
        assert_eq!(
            tool.header_parameters(),
            [("Region".to_owned(), vec!["region".to_owned()])]
        );
    }
}
