//! The numbers of the series: rows name a series by its number.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension as _, params};

/// The most names of containers that are kept; for one more, the one that was sampled longest ago is forgotten.
const MAX_NAMES: i64 = 4096;

/// How long a name is kept after its last sample: a day longer than its samples.
const KEPT_NAMES_S: i64 = 31 * 86_400;

/// How often it is noted that a series is still sampled. Rarely: each note is a write.
const NOTE_EVERY_S: i64 = 3600;

/// How many names are forgotten at one time at most: a clock that is wrong for a minute then costs few.
const FORGOTTEN_AT_ONCE: i64 = 8;

/// The series that were sampled since the file was opened.
#[derive(Debug, Default)]
pub struct SeriesCache(BTreeMap<String, KnownSeries>);

#[derive(Debug, Clone, Copy)]
struct KnownSeries {
    id: u32,
    seen_s: i64,
}

impl SeriesCache {
    /// Returns the number of a series that is sampled now; a new one gets a number.
    pub fn number(
        &mut self,
        connection: &Connection,
        name: &str,
        now_s: i64,
    ) -> Result<u32, rusqlite::Error> {
        let known = self.0.get(name).copied();
        if let Some(known) = known
            && (known.seen_s..known.seen_s.saturating_add(NOTE_EVERY_S)).contains(&now_s)
        {
            return Ok(known.id);
        }
        if known.is_none() && find(connection, name)?.is_none() {
            make_room(connection)?;
        }
        let id = connection.query_row(
            "INSERT INTO series (name, seen_s) VALUES (?1, ?2)
             ON CONFLICT (name) DO UPDATE SET seen_s = excluded.seen_s RETURNING id",
            params![name, now_s],
            |row| row.get(0),
        )?;
        let seen = KnownSeries { id, seen_s: now_s };
        self.0.insert(name.to_owned(), seen);
        Ok(id)
    }

    /// Forgets the names whose samples are all deleted.
    pub fn forget_old(
        &mut self,
        connection: &Connection,
        now_s: i64,
    ) -> Result<(), rusqlite::Error> {
        let before_s = now_s.saturating_sub(KEPT_NAMES_S);
        let deleted = connection.execute(
            "DELETE FROM series WHERE id IN
             (SELECT id FROM series WHERE seen_s < ?1 ORDER BY seen_s LIMIT ?2)",
            params![before_s, FORGOTTEN_AT_ONCE],
        )?;
        if deleted > 0 {
            self.0.clear();
        }
        Ok(())
    }

    /// Clears the cache, after a change that was not committed.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// Returns the number of a series; `None` if it has no samples.
pub fn find(connection: &Connection, name: &str) -> Result<Option<u32>, rusqlite::Error> {
    connection
        .query_row("SELECT id FROM series WHERE name = ?1", [name], |row| {
            row.get(0)
        })
        .optional()
}

fn make_room(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.execute(
        "DELETE FROM series WHERE (SELECT count(*) FROM series) >= ?1
         AND id = (SELECT id FROM series WHERE name != '' ORDER BY seen_s LIMIT 1)",
        [MAX_NAMES],
    )?;
    Ok(())
}
