//! Updates `/etc/hosts` when the host is renamed: afterwards it has the new name exactly once.

use gatewren_wire::operations::HostName;

/// The address that Debian gives the host's own name (Debian Reference 5.1.1).
const OWN_ADDRESS: &str = "127.0.1.1";

/// Returns the file with the old name replaced by the new one on the lines of loopback addresses. Names of other
/// hosts stay.
pub fn renamed(hosts: &str, old: &str, new: &HostName) -> String {
    let old_short = old.split('.').next().unwrap_or(old);
    let mut is_there = false;
    let mut lines = Vec::new();
    for line in hosts.lines() {
        let (entry, comment) = line.split_at(line.find('#').unwrap_or(line.len()));
        let mut words = entry.split_whitespace();
        let address = words.next().unwrap_or_default();
        let names: Vec<&str> = words.collect();
        let is_ours = |name: &str| {
            let of_old = !old.is_empty() && (name == old || name == old_short);
            let of_new = name == new.as_str() || name == new.short();
            name != "localhost" && (of_old || of_new || address == OWN_ADDRESS)
        };
        let own = address.starts_with("127.") || address == "::1";
        if !own || !names.iter().any(|name| is_ours(name)) {
            lines.push(line.to_owned());
            continue;
        }
        let others = names.iter().copied().filter(|name| !is_ours(name));
        let mut kept: Vec<&str> = others.collect();
        if !is_there {
            is_there = true;
            kept.splice(..0, own_names(new));
        }
        if !kept.is_empty() {
            let line = format!("{address}\t{} {comment}", kept.join(" "));
            lines.push(line.trim_end().to_owned());
        }
    }
    if !is_there {
        let at = lines.iter().rposition(|line| line.starts_with("127."));
        let line = format!("{OWN_ADDRESS}\t{}", own_names(new).join(" "));
        lines.insert(at.map_or(0, |at| at + 1), line);
    }
    lines.iter().flat_map(|line| [line, "\n"]).collect()
}

/// The full name first, as in hosts(5).
fn own_names(new: &HostName) -> Vec<&str> {
    let mut names = vec![new.as_str()];
    if new.short() != new.as_str() {
        names.push(new.short());
    }
    names
}

#[cfg(test)]
mod tests {
    use super::super::hosts_file::*;

    fn to(hosts: &str, old: &str, new: &str) -> String {
        renamed(hosts, old, &new.to_owned().try_into().unwrap())
    }

    #[test]
    fn the_new_name_takes_the_place_of_the_old_one() {
        let hosts = "127.0.0.1\tlocalhost\n127.0.1.1\tbox.lan box\n\n# others\n10.0.0.2 box-2 boxes\n::1 localhost ip6-localhost\n";
        let named = to(hosts, "box", "nas");
        assert_eq!(
            named,
            "127.0.0.1\tlocalhost\n127.0.1.1\tnas\n\n# others\n10.0.0.2 box-2 boxes\n::1 localhost ip6-localhost\n"
        );
        assert_eq!(to(&named, "nas", "nas"), named, "it stands there once");
        let whole = to(&named, "nas", "nas.home.arpa");
        assert!(whole.contains("127.0.1.1\tnas.home.arpa nas\n"), "{whole}");
        assert_eq!(to(&whole, "nas.home.arpa", "nas"), named);
    }

    #[test]
    fn a_name_beside_localhost_is_found_and_localhost_stays() {
        let named = to(
            "127.0.0.1 localhost box # mine\n::1 box localhost\n",
            "box",
            "nas",
        );
        assert_eq!(named, "127.0.0.1\tnas localhost # mine\n::1\tlocalhost\n");
    }

    #[test]
    fn where_no_line_has_it_one_is_added() {
        assert_eq!(to("", "box", "nas"), "127.0.1.1\tnas\n");
        let named = to("# x\n127.0.0.1 localhost\n10.0.0.1 gate\n", "", "nas");
        assert_eq!(
            named,
            "# x\n127.0.0.1 localhost\n127.0.1.1\tnas\n10.0.0.1 gate\n"
        );
    }
}
