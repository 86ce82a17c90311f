//! Removes sentences that name a tool which is not in an agent's list: a model would call it, and be refused.

use std::collections::BTreeSet;

/// The tools that texts for an agent must not name.
pub(super) struct UnlistedTools<'c>(BTreeSet<&'c str>);

impl<'c> UnlistedTools<'c> {
    /// These tools.
    pub fn from_names(names: impl Iterator<Item = &'c str>) -> Self {
        Self(names.collect())
    }

    /// Returns a text without the sentences that name one of the tools. The first sentence stays: it states what the
    /// text is about.
    pub fn removed_from(&self, text: &str) -> String {
        let mut sentences = sentences(text).into_iter();
        let mut kept = sentences.next().unwrap_or_default().to_owned();
        kept.extend(sentences.filter(|sentence| !self.are_named_in(sentence)));
        kept.trim_end().to_owned()
    }

    /// Returns a list in Markdown without the sentences that name one of the tools, and without the items that have no
    /// other sentence.
    pub fn removed_from_items(&self, text: &str) -> String {
        let mut kept = String::new();
        for (index, item) in text.split("\n- ").enumerate() {
            let sentences = sentences(item).into_iter();
            let item: String = sentences
                .filter(|sentence| !self.are_named_in(sentence))
                .collect();
            if item.trim().is_empty() {
                continue;
            }
            if index > 0 {
                kept.push_str("\n- ");
            }
            kept.push_str(item.trim_end());
        }
        kept
    }

    /// Whether a text names one of the tools. A name that is also a word, such as `read`, counts only as code.
    pub fn are_named_in(&self, text: &str) -> bool {
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_name = |word: &str| word.contains('_') && self.0.contains(word);
        let code = text.split('`').skip(1).step_by(2);
        let mut words = text.split(|c| !is_of_name(c));
        words.any(is_name) || code.into_iter().any(|word| self.0.contains(word))
    }
}

/// Returns a text without the sentences that begin with the name of a tool as code, and so only point to it. The first
/// sentence stays.
pub(super) fn without_pointers(text: &str, is_tool: impl Fn(&str) -> bool) -> String {
    let is_pointer = |sentence: &&str| {
        let code = sentence.strip_prefix('`');
        code.and_then(|rest| rest.split('`').next())
            .is_some_and(&is_tool)
    };
    let mut sentences = sentences(text).into_iter();
    let mut kept = sentences.next().unwrap_or_default().to_owned();
    kept.extend(sentences.filter(|sentence| !is_pointer(sentence)));
    kept.trim_end().to_owned()
}

/// Replaces the words of a text that have another name. A word consists of letters, digits and underscores.
pub(super) fn rename_words<'n>(text: &str, name_of: impl Fn(&str) -> Option<&'n str>) -> String {
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut renamed = String::with_capacity(text.len());
    for part in text.split_inclusive(|c| !is_of_word(c)) {
        let word = part.trim_end_matches(|c| !is_of_word(c));
        renamed.push_str(name_of(word).unwrap_or(word));
        renamed.push_str(part.get(word.len()..).unwrap_or_default());
    }
    renamed
}

/// Splits a text into its sentences, each with the white space after it.
fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(end) = end_of_sentence(rest) {
        let (sentence, after) = rest.split_at(end);
        found.push(sentence);
        rest = after;
    }
    if !rest.is_empty() {
        found.push(rest);
    }
    found
}

/// Returns where the text after the first sentence begins.
fn end_of_sentence(text: &str) -> Option<usize> {
    let ends = text.match_indices('.').map(|(at, dot)| at + dot.len());
    let mut ends = ends.filter_map(|at| {
        let after = text.get(at..)?;
        let begin = after.trim_start();
        // A small letter follows an abbreviation, such as "e.g.", or begins the name of a tool.
        let word = begin.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let is_name = word.take(1).any(|word| word.contains('_'));
        let is_begin = is_name || begin.starts_with(|c: char| !c.is_ascii_lowercase());
        let is_end = begin.len() < after.len() && is_begin;
        is_end.then(|| text.len() - begin.len())
    });
    ends.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without(names: &[&'static str], text: &str) -> String {
        UnlistedTools::from_names(names.iter().copied()).removed_from(text)
    }

    #[test]
    fn a_sentence_about_an_unlisted_tool_is_removed() {
        let text = "Stop a container. `container_start` starts it, e.g. later. Waits 10.5 s.";
        let kept = "Stop a container. Waits 10.5 s.";
        assert_eq!(without(&["container_start"], text), kept);
        assert_eq!(without(&["container"], text), text);
        assert_eq!(
            without(&["read"], "Find it. Then read it."),
            "Find it. Then read it."
        );
        assert_eq!(without(&["read"], "Find it. Then `read` it."), "Find it.");
        assert_eq!(without(&["a_b"], "Only a_b."), "Only a_b.");
        assert_eq!(without(&[], ""), "");
    }

    #[test]
    fn a_sentence_that_only_points_to_a_tool_is_removed() {
        let is_tool = |name: &str| name == "job_list";
        let text =
            "`job_list` ids. `job_list` lists them, `job_get` one. `job` is a job. See `job_list`.";
        let kept = "`job_list` ids. `job` is a job. See `job_list`.";
        assert_eq!(without_pointers(text, is_tool), kept);
        assert_eq!(without_pointers("", is_tool), "");
    }

    #[test]
    fn whole_words_are_renamed() {
        let renamed = rename_words("Use state_get, not state_get_all (or é).", |word| {
            (word == "state_get").then_some("db.dump")
        });
        assert_eq!(renamed, "Use db.dump, not state_get_all (or é).");
    }

    #[test]
    fn an_item_without_another_sentence_is_removed() {
        let unlisted = UnlistedTools::from_names(["job_start"].into_iter());
        let text = "Hello.\n\n- Use state_get. Or job_start\n  for long work.\n- Use job_start.\n- Look first.\n";
        let kept = "Hello.\n- Use state_get.\n- Look first.";
        assert_eq!(unlisted.removed_from_items(text), kept);
    }
}
