//! The order in which the containers of a stack start: those that others depend on first.

use std::collections::{BTreeMap, BTreeSet};

use super::stacks::StackMember;

/// Returns the members in groups. The members of a group depend only on services of the groups before it. Services
/// that depend on each other in a circle, which Compose rejects, are in the last group.
pub fn start_order(members: &[StackMember]) -> Vec<Vec<&StackMember>> {
    let mut waiting = dependencies(members);
    let mut groups = Vec::new();
    while !waiting.is_empty() {
        let is_ready = |needs: &BTreeSet<&str>| !needs.iter().any(|s| waiting.contains_key(s));
        let ready = waiting.iter().filter(|(_, needs)| is_ready(needs));
        let mut ready: BTreeSet<&str> = ready.map(|(service, _)| *service).collect();
        if ready.is_empty() {
            ready = waiting.keys().copied().collect();
        }
        let group = members.iter();
        let group = group.filter(|member| ready.contains(member.service.as_str()));
        groups.push(group.collect());
        waiting.retain(|service, _| !ready.contains(service));
    }
    groups
}

/// Returns each service of the members with the services that it depends on, except itself.
fn dependencies(members: &[StackMember]) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut all: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for member in members {
        let needs = member.depends_on.iter().map(|needed| &*needed.service);
        let needs = needs.filter(|needed| *needed != member.service);
        all.entry(&member.service).or_default().extend(needs);
    }
    all
}

#[cfg(test)]
mod tests {
    use crate::helper_client::{ComposeDependency, DependencyCondition, EngineFacts};

    use super::super::details::ContainerState;
    use super::*;

    fn member(name: &str, depends_on: &[&str]) -> StackMember {
        let service = name.trim_end_matches(char::is_numeric);
        let depends_on = depends_on.iter().map(|service| ComposeDependency {
            service: (*service).to_owned(),
            condition: DependencyCondition::Started,
        });
        StackMember {
            container: format!("docker:{name}").parse().unwrap(),
            service: service.to_owned(),
            depends_on: depends_on.collect(),
            state: ContainerState::Stopped,
            engine: EngineFacts::default(),
        }
    }

    fn order(members: &[StackMember]) -> Vec<Vec<&str>> {
        fn names(group: Vec<&StackMember>) -> Vec<&str> {
            let names = group.into_iter().map(|member| member.container.name());
            names.collect()
        }
        start_order(members).into_iter().map(names).collect()
    }

    #[test]
    fn what_others_depend_on_starts_first_and_all_containers_of_a_service_start_together() {
        let members = [
            member("web1", &["api", "other"]),
            member("api1", &["db"]),
            member("api2", &["db"]),
            member("db", &[]),
            member("cache", &["cache"]),
        ];
        let expected = [&["db", "cache"][..], &["api1", "api2"], &["web1"]];
        assert_eq!(order(&members), expected);
        assert_eq!(order(&[]), [&[""; 0]; 0]);
    }

    #[test]
    fn services_that_depend_on_each_other_start_together_after_the_others() {
        let members = [
            member("a", &["b"]),
            member("b", &["a"]),
            member("c", &["a"]),
            member("d", &[]),
        ];
        assert_eq!(order(&members), [&["d"][..], &["a", "b", "c"]]);
    }
}
