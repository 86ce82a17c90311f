//! URI templates, the part of RFC 6570 that resource templates use: `{name}` and `{+name}`.

/// A parsed template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UriTemplate {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    /// `{name}` matches no slash; `{+name}` matches anything.
    Variable {
        name: String,
        slashes: bool,
    },
}

impl UriTemplate {
    /// Parses a template; text in neither of the two forms is literal.
    pub fn parse(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((inside, tail)) = after.split_once('}') else {
                break;
            };
            if !before.is_empty() {
                parts.push(Part::Literal(before.to_owned()));
            }
            let slashes = inside.starts_with('+');
            parts.push(Part::Variable {
                name: inside.trim_start_matches('+').to_owned(),
                slashes,
            });
            rest = tail;
        }
        if !rest.is_empty() {
            parts.push(Part::Literal(rest.to_owned()));
        }
        Self { parts }
    }

    /// Returns the variables of a URI that matches the template.
    pub fn matches<'a>(&'a self, uri: &'a str) -> Option<Vec<(&'a str, &'a str)>> {
        let mut found = Vec::new();
        let mut rest = uri;
        let mut parts = self.parts.iter().peekable();
        while let Some(part) = parts.next() {
            match part {
                Part::Literal(text) => rest = rest.strip_prefix(text.as_str())?,
                Part::Variable { name, slashes } => {
                    let end = match parts.peek() {
                        Some(Part::Literal(next)) => rest.find(next.as_str())?,
                        _ => rest.len(),
                    };
                    let value = rest.get(..end)?;
                    if value.is_empty() || (!slashes && value.contains('/')) {
                        return None;
                    }
                    found.push((name.as_str(), value));
                    rest = rest.get(end..)?;
                }
            }
        }
        rest.is_empty().then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_holds_one_segment_unless_it_is_reserved() {
        let one = UriTemplate::parse("test://template/{id}/data");
        assert_eq!(
            one.matches("test://template/123/data").unwrap(),
            [("id", "123")]
        );
        assert!(one.matches("test://template//data").is_none());
        assert!(one.matches("test://template/1/2/data").is_none());
        let many = UriTemplate::parse("gatewren:///public/{+path}");
        assert_eq!(
            many.matches("gatewren:///public/a/b").unwrap(),
            [("path", "a/b")]
        );
        assert!(many.matches("gatewren:///private/a").is_none());
    }
}
