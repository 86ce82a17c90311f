//! Puts gatewren's table into the text of a TOML file, and keeps its other tables and comments.

use toml::Table as Values;
use toml_edit::{DocumentMut, Item, Table};

/// Returns `text` with the table of `addition`, such as `[mcp_servers.gatewren]`; `None` if it has that table.
pub fn merge_toml(text: &str, addition: &str) -> Result<Option<String>, String> {
    let mut document: DocumentMut = text.parse().map_err(|cause| wrong(text, &cause))?;
    let own: DocumentMut = addition.parse().map_err(|cause| wrong(addition, &cause))?;
    for (section, entries) in own.iter() {
        let servers = document.entry(section).or_insert_with(empty_section);
        let servers = servers.as_table_like_mut();
        let servers = servers.ok_or_else(|| format!("its \"{section}\" is not a table"))?;
        for (name, entry) in entries
            .as_table_like()
            .into_iter()
            .flat_map(|table| table.iter())
        {
            let mut entry = entry.clone();
            if let Some(new) = entry.as_table_mut() {
                let old = servers.get(name).and_then(Item::as_table);
                new.set_position(old.and_then(Table::position));
                new.decor_mut().clear();
                if let Some(old) = old {
                    new.decor_mut().clone_from(old.decor());
                }
            }
            servers.insert(name, entry);
        }
    }
    let merged = document.to_string();
    let is_same = merged.parse::<Values>() == text.parse::<Values>();
    Ok((!is_same).then_some(merged))
}

/// A section without a header of its own.
fn empty_section() -> Item {
    let mut table = Table::new();
    table.set_implicit(true);
    Item::Table(table)
}

/// The error in a text, with its line.
fn wrong(text: &str, cause: &toml_edit::TomlError) -> String {
    let start = cause.span().and_then(|span| text.get(..span.start));
    let line = 1 + start.unwrap_or_default().matches('\n').count();
    format!("it is not TOML ({} on line {line})", cause.message())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "[mcp_servers.gatewren]\nurl = \"u\"\n";

    fn merged(text: &str) -> String {
        let merged = merge_toml(text, OWN).unwrap().unwrap();
        assert_eq!(merge_toml(&merged, OWN), Ok(None), "{merged}");
        merged
    }

    #[test]
    fn a_new_table_follows_the_others_and_all_other_lines_stay() {
        assert_eq!(merged(""), OWN);
        let text =
            "# mine\nmodel = \"m\"   # why\n\n[a]\nb = \"\"\"\n[mcp_servers.gatewren]\n\"\"\"\n";
        assert_eq!(merged(text), format!("{text}\n{OWN}"));
        let text =
            "[mcp_servers.other]\nurl = \"o\" # o\n\n# about x\n[x]\ny = [ 1,\n 2 ]\n# end\n";
        let with_own = merged(text);
        for part in text.split("\n\n") {
            assert!(with_own.contains(part), "{with_own}");
        }
        assert!(with_own.contains(&format!("\n{OWN}")), "{with_own}");
    }

    #[test]
    fn an_old_table_is_replaced_with_its_parts_and_in_its_place() {
        let text = "a = 1\n# ours\n[mcp_servers.gatewren]\ncommand = \"c\"\n[mcp_servers.gatewren.env]\nA = \"b\"\n\n\
                    # about x\n[x]\ny = 1\n";
        let expected = format!("a = 1\n# ours\n{OWN}\n# about x\n[x]\ny = 1\n");
        assert_eq!(merged(text), expected);
    }

    #[test]
    fn every_form_of_a_table_is_understood() {
        for text in [
            "[mcp_servers]\ngatewren = { url = \"o\" }\n[x]\ny = 1\n",
            "mcp_servers = { other = { url = \"o\" } }\n[x]\ny = 1\n",
            "[ mcp_servers . gatewren ]\nurl = \"o\"\n[x]\ny = 1\n",
            "mcp_servers.gatewren.url = \"o\"\nmcp_servers.other.url = \"o\"\nx.y = 1\n",
        ] {
            let values: Values = merged(text).parse().unwrap();
            let own = &values["mcp_servers"]["gatewren"];
            assert_eq!(own.as_table().unwrap().len(), 1, "{text}");
            assert_eq!(own["url"].as_str(), Some("u"), "{text}");
            assert_eq!(values["x"]["y"].as_integer(), Some(1), "{text}");
            let has_other = values["mcp_servers"].get("other").is_some();
            assert_eq!(has_other, text.contains("other"), "{text}");
        }
    }

    #[test]
    fn what_it_cannot_edit_is_rejected() {
        let words = merge_toml("a = 1\nb = \n", OWN).unwrap_err();
        assert!(
            words.starts_with("it is not TOML (") && words.contains("line 2"),
            "{words}"
        );
        let words = merge_toml("mcp_servers = 3\n", OWN).unwrap_err();
        assert_eq!(words, "its \"mcp_servers\" is not a table");
        assert!(merge_toml("a = 1\na = 2\n", OWN).is_err());
    }
}
